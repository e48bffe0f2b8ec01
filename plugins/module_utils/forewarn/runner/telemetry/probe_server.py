# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A listener for load balancers, on any address. It answers with a status and one word, and nothing else."""

from __future__ import annotations

from collections.abc import Callable

from .http_listener import HttpAnswer, HttpListener, ListenAddress, parse_place

_OK = HttpAnswer(200, b"ok\n")
_UNAVAILABLE = HttpAnswer(503, b"unavailable\n")


class ProbeServer(HttpListener):
    """Answers ``/healthz`` and ``/readyz`` with 200, or with 503 if ``alive`` or ``ready`` returns False.

    ``address`` is HOST:PORT, the host an address of this machine, 0.0.0.0 or [::] for all, or localhost. Raises
    InputError for anything else.
    """

    purpose = "probes"
    option = "--probe-listen"

    def __init__(self, address: str, alive: Callable[[], bool], ready: Callable[[], bool]) -> None:
        routes = {
            b"/healthz": lambda: _OK if alive() else _UNAVAILABLE,
            b"/readyz": lambda: _OK if ready() else _UNAVAILABLE,
        }
        super().__init__(address, probe_place(address), routes)


def probe_place(address: str) -> ListenAddress:
    """Return where a ``ProbeServer`` listens. Raises InputError if ``address`` is not that of a listener."""
    return parse_place(address, "For example, write 0.0.0.0:9780 or [::]:9780, or the address of one interface.")
