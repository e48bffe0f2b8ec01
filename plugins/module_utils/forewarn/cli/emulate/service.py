# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn emulate switch-off`` and ``reset``: switch the emulated service off, or start over."""

from __future__ import annotations

import argparse

from .control import add_control_arguments, client_of, report_state

_DONE = {
    "switch-off": "The service is off. The next request switches it on again.",
    "reset": "The scenario begins again. Events, faults and the log are forgotten.",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_control_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Switch the service off, or reset the emulation."""
    with client_of(args) as client:
        {"switch-off": client.switch_off, "reset": client.reset}[args.command]()
        return report_state(args, client, lambda console, _state: console.line(_DONE[args.command]))
