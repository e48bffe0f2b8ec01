# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The log as the system keeps that of a service: each line is an entry with separate fields."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TextIO

from ...system.log_destination import LogDestination
from . import log
from .log import Log, text_line, to_json

FORMATS = ("auto", LogDestination.FORM, *log.FORMATS)
# The system usually takes a line at once. If it does not, neither a line nor the end of --once is worth a longer wait.
PATIENCE_SECONDS = 0.25
_LAST_PATIENCE_SECONDS = 5.0
_MOST_IDS = 500  # journald drops an entry of more than 1024 fields


def open_log(form: str | None, environ: Mapping[str, str], stream: TextIO) -> Log:
    """Return the log of one of ``FORMATS``.

    None and ``auto`` are the system's where ``LogDestination.is_usual``, otherwise text.
    """
    if form in (None, "auto"):
        form = LogDestination.FORM if LogDestination.is_usual(environ, stream) else "text"
    return SystemLog(stream, LogDestination()) if form == LogDestination.FORM else Log(stream, str(form))


class SystemLog(Log):
    """Sends entries to the system's log, or a line to ``stream`` if that does not take one.

    A line that neither takes is counted in ``lost``. Nothing here raises: the runner goes on without its log.
    """

    def __init__(self, stream: TextIO, destination: LogDestination) -> None:
        super().__init__(stream, destination.STREAM_FORM)
        self._destination = destination
        self._patience = PATIENCE_SECONDS

    def _write(self, level: str, name: str, fields: Mapping[str, Any]) -> None:
        try:
            super()._write(level, name, fields)
        except BrokenPipeError:  # the system's log read the stream too
            self._lost += 1

    def close(self, seconds: float | None) -> None:
        """Let lines that wait be taken, for ``seconds`` at most, or with None for 5 s: nobody may ever take them."""
        super().close(_LAST_PATIENCE_SECONDS if seconds is None else seconds)

    def _forms(self, level: str, name: str, fields: Mapping[str, Any]) -> Sequence[bytes]:
        """Return the forms of the entry, and the line for the stream."""
        entries = self._destination.entries(level, name, text_line(name, fields), _plain_fields(fields))
        return (*entries, *super()._forms(level, name, fields))

    def _deliver_at_once(self, forms: Sequence[bytes]) -> None:
        try:
            self._destination.send(forms, self._patience)
            self._patience = PATIENCE_SECONDS
        except (BlockingIOError, socket.timeout):
            # The system is there but does not read. The stream may lead to it too, and a write to it would never end.
            self._patience = 0.0  # waiting once is enough
            raise
        except OSError:
            if self._destination.IS_LAST:
                raise
            super()._deliver_at_once(forms)

    def _deliver(self, forms: Sequence[bytes]) -> None:
        try:
            self._destination.send(forms, None)
        except OSError:
            if self._destination.IS_LAST:
                raise
            try:
                super()._deliver(forms)
            except BrokenPipeError as error:  # the system's log read the stream too, and may come back
                raise OSError("nobody reads the log") from error  # with EPIPE it would be a BrokenPipeError again


def _plain_fields(fields: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in fields.items():
        if key == "event_ids" and isinstance(value, (list, tuple)):  # each is found like a single event_id
            for each in value[:_MOST_IDS]:
                yield "event_id", str(each)
        elif value is not None:
            yield key, _plain(value)


def _plain(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return to_json(value)
    return str(value)
