# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn --print-completion``: what a shell completes of the commands and their options, by shtab."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import InputError


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return the text that a shell (bash, zsh, fish) sources. Raises InputError without shtab."""
    try:
        import shtab  # here, for it may be missing
    except ImportError as error:
        hint = f"Install it: {sys.executable} -m pip install shtab"
        raise InputError("completion needs shtab, which is not installed.", hint) from error
    for action in _actions(parser):
        if action.type is Path or action.metavar in ("FILE", "PATH", "DIR"):
            vars(action)["complete"] = shtab.DIRECTORY if action.metavar == "DIR" else shtab.FILE
    return str(shtab.complete(parser, shell))


def _actions(parser: argparse.ArgumentParser) -> Iterator[Any]:
    for action in parser._actions:  # there is no public list of them; shtab reads this one too
        yield action
        if isinstance(action.choices, dict):  # the commands below
            for below in action.choices.values():
                yield from _actions(below)
