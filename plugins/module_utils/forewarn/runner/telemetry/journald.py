# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The log as entries of systemd's journal with separate fields: ``journalctl FOREWARN_RULE=drain`` finds its lines.

Entries are datagrams of the journal's native protocol (https://systemd.io/JOURNAL_NATIVE_PROTOCOL).
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from errno import EMSGSIZE
from typing import Any, TextIO

from . import log
from .log import Log, text_line, to_json

FORMATS = ("auto", "journald", *log.FORMATS)
SOCKET = "/run/systemd/journal/socket"
# journald usually reads at once. If it does not, neither a line nor the end of --once is worth a longer wait.
PATIENCE_SECONDS = 0.25
_LAST_PATIENCE_SECONDS = 5.0

_PRIORITIES = {"info": 6, "warning": 4, "error": 3}  # syslog's
# How many bytes of a value are sent: at first, then while the entry is too large for a datagram.
_BOUNDS = (32_768, 4_096, 512)
# The bytes of a datagram that any Linux takes, and those that one with a raised limit takes.
_SURE_DATAGRAM, _LARGEST_DATAGRAM = 65_536, 262_144
_MOST_IDS = 500  # journald drops an entry of more than 1024 fields
_NOT_IN_NAMES = re.compile("[^A-Z0-9_]")
_LONGEST_NAME = 64


def open_log(form: str | None, environ: Mapping[str, str], stream: TextIO) -> Log:
    """Return the log of one of ``FORMATS``.

    None and ``auto`` are the journal if ``stream`` or standard error leads there anyway, otherwise text.
    """
    if form in (None, "auto"):
        form = "journald" if _leads_to_journal(environ.get("JOURNAL_STREAM", ""), stream) else "text"
    return JournalLog(stream) if form == "journald" else Log(stream, str(form))


class JournalLog(Log):
    """Sends entries to the journal, or a text line to ``stream`` if the journal does not take one.

    A line that neither takes is counted in ``lost``. Nothing here raises: the runner goes on without its log.
    """

    def __init__(self, stream: TextIO, address: str = SOCKET) -> None:
        super().__init__(stream)
        self._address = address
        self._socket: socket.socket | None = None
        self._patience = PATIENCE_SECONDS

    def _write(self, level: str, name: str, fields: Mapping[str, Any]) -> None:
        try:
            super()._write(level, name, fields)
        except BrokenPipeError:  # journald read the stream too
            self._lost += 1

    def close(self, seconds: float | None) -> None:
        """Let lines that wait be taken, for ``seconds`` at most, or with None for 5 s: journald may never read."""
        super().close(_LAST_PATIENCE_SECONDS if seconds is None else seconds)

    def _forms(self, level: str, name: str, fields: Mapping[str, Any]) -> Sequence[bytes]:
        """Return the entry, in shorter and shorter forms until one surely fits, and the line for the stream."""
        entries = []
        for bound in _BOUNDS:
            entry = _entry(level, name, fields, bound)
            if len(entry) <= _LARGEST_DATAGRAM or bound == _BOUNDS[-1]:
                entries.append(entry)
            if len(entry) <= _SURE_DATAGRAM:
                break
        return (*entries, *super()._forms(level, name, fields))

    def _deliver_at_once(self, forms: Sequence[bytes]) -> None:
        try:
            self._send(forms[:-1], self._patience)
            self._patience = PATIENCE_SECONDS
        except (BlockingIOError, socket.timeout):
            # journald is there but does not read. The stream may lead to it too, and a write to it would never end.
            self._patience = 0.0  # waiting once is enough
            raise
        except OSError:
            super()._deliver_at_once(forms)

    def _deliver(self, forms: Sequence[bytes]) -> None:
        try:
            self._send(forms[:-1], None)
        except OSError:
            try:
                super()._deliver(forms)
            except BrokenPipeError as error:  # journald read the stream too, and may come back
                raise OSError("nobody reads the log") from error  # with EPIPE it would be a BrokenPipeError again

    def _send(self, entries: Sequence[bytes], patience: float | None) -> None:
        for entry in entries[:-1]:
            try:
                return self._send_one(entry, patience)
            except OSError as error:  # noqa: PERF203 - twice at most
                if error.errno != EMSGSIZE:
                    raise
        return self._send_one(entries[-1], patience)

    def _send_one(self, entry: bytes, patience: float | None) -> None:
        if self._socket is not None:
            try:
                self._socket.settimeout(patience)
                self._socket.send(entry)
                return
            except ConnectionError:  # journald has restarted
                self._socket.close()
                self._socket = None
        self._socket = _connect(self._address, patience)
        self._socket.send(entry)


def _connect(address: str, patience: float | None) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        connection.settimeout(patience)
        connection.connect(address)
    except OSError:
        connection.close()
        raise
    return connection


def _entry(level: str, name: str, fields: Mapping[str, Any], bound: int) -> bytes:
    return b"".join(_assignment(key, value, bound) for key, value in _assignments(level, name, fields))


def _assignments(level: str, name: str, fields: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "MESSAGE", text_line(name, fields)
    yield "PRIORITY", str(_PRIORITIES[level])
    yield "SYSLOG_IDENTIFIER", "forewarn"
    yield "FOREWARN_LINE", name
    for key, value in fields.items():
        if key == "event_ids" and isinstance(value, (list, tuple)):  # each is found like a single event_id
            for each in value[:_MOST_IDS]:
                yield "FOREWARN_EVENT_ID", str(each)
        elif value is not None:
            yield "FOREWARN_" + _NOT_IN_NAMES.sub("_", key.upper()), _plain(value)


def _plain(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return to_json(value)
    return str(value)


def _assignment(key: str, value: str, bound: int) -> bytes:
    data = value.encode("utf-8", "backslashreplace")
    if len(data) > bound:
        data = data[:bound].decode("utf-8", "ignore").encode() + "…".encode()
    name = key[:_LONGEST_NAME].encode()
    if b"\n" in data:  # any value is safe in this form; the other is readable on the wire
        return name + b"\n" + len(data).to_bytes(8, "little") + data + b"\n"
    return name + b"=" + data + b"\n"


def _leads_to_journal(journal_stream: str, stream: TextIO) -> bool:
    """Return whether systemd has connected the stream, or standard error, to the journal.

    ``journal_stream`` is JOURNAL_STREAM: device and inode. A child inherits it even if its output goes elsewhere.
    """
    for descriptor in (stream.fileno, lambda: 2):
        with suppress(OSError, ValueError):  # closed, or not a file at all
            status = os.fstat(descriptor())
            if journal_stream == f"{status.st_dev}:{status.st_ino}":
                return True
    return False
