# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A listener on loopback that serves the metrics and the probes of the runner's health."""

from __future__ import annotations

import socket
from collections.abc import Callable

from ...errors import InputError
from .http_listener import HttpAnswer, HttpListener, ListenAddress, parse_place
from .metrics import CONTENT_TYPE


class MetricsServer(HttpListener):
    """Answers ``/metrics`` with what ``render`` returns, and ``/healthz`` with 200 or 503 and ``healthy``'s sentence.

    ``address`` is HOST:PORT, with a loopback host: 127.0.0.1, [::1] or localhost. Raises InputError for any other.
    """

    purpose = "metrics"
    option = "--metrics-listen"
    patience_seconds = 5.0
    longest_head = 8192  # a browser sends this host's cookies

    def __init__(self, address: str, render: Callable[[], str], healthy: Callable[[], tuple[bool, str]]) -> None:
        self._render = render
        self._healthy = healthy
        super().__init__(address, metrics_place(address), {b"/metrics": self._metrics, b"/healthz": self._health})

    def _metrics(self) -> HttpAnswer:
        return HttpAnswer(200, self._render().encode("utf-8", "replace"), CONTENT_TYPE)

    def _health(self) -> HttpAnswer:
        well, reason = self._healthy()
        return _sentence(200, f"ok: {reason}") if well else _sentence(503, reason)

    def failed(self, error: Exception) -> HttpAnswer:
        """Name the error: only this machine may ask."""
        return _sentence(500, f"{type(error).__name__}: {error}")


def metrics_place(address: str) -> ListenAddress:
    """Return where a ``MetricsServer`` listens. Raises InputError unless that is an address on loopback."""
    hint = "For example, write 127.0.0.1:9750. Only this machine can ask; for others run node_exporter or a proxy."
    place = parse_place(address, hint)
    packed = socket.inet_pton(place.family, place.host)
    if packed != bytes(15) + b"\1" if place.family == socket.AF_INET6 else packed[0] != 127:
        raise InputError(f"{address!r} is not a loopback address.", hint)
    return place


def _sentence(status: int, text: str) -> HttpAnswer:
    return HttpAnswer(status, f"{text}\n".encode("utf-8", "replace"), "text/plain; charset=utf-8")
