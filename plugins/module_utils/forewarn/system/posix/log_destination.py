# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Entries of systemd's journal with separate fields: ``journalctl FOREWARN_RULE=drain`` finds its lines.

Entries are datagrams of the journal's native protocol (https://systemd.io/JOURNAL_NATIVE_PROTOCOL).
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from errno import EMSGSIZE
from typing import TextIO

SOCKET = "/run/systemd/journal/socket"

_PRIORITIES = {"info": 6, "warning": 4, "error": 3}  # syslog's
# How many bytes of a value are sent: at first, then while the entry is too large for a datagram.
_BOUNDS = (32_768, 4_096, 512)
# The bytes of a datagram that any Linux takes, and those that one with a raised limit takes.
_SURE_DATAGRAM, _LARGEST_DATAGRAM = 65_536, 262_144
_NOT_IN_NAMES = re.compile("[^A-Z0-9_]")
_LONGEST_NAME = 64


class LogDestination:
    """Sends entries to journald. What it does not take is for the stream."""

    FORM = "journald"  # its name as a format of the log
    STREAM_FORM = "text"  # of the line that comes with the entries
    IS_LAST = False  # the stream takes what this does not

    def __init__(self, address: str = SOCKET) -> None:
        self._address = address
        self._socket: socket.socket | None = None

    @staticmethod
    def is_usual(environ: Mapping[str, str], stream: TextIO) -> bool:
        """Return whether the log goes to journald if nobody says where: ``stream`` or standard error does anyway."""
        return _leads_to_journal(environ.get("JOURNAL_STREAM", ""), stream)

    def entries(self, level: str, name: str, text: str, fields: Iterable[tuple[str, str]]) -> Sequence[bytes]:
        """Return the entry of a line, in shorter and shorter forms until one surely fits. ``text`` is all of it."""
        pairs = [*_assignments(level, name, text, fields)]
        entries = []
        for bound in _BOUNDS:
            entry = b"".join(_assignment(key, value, bound) for key, value in pairs)
            if len(entry) <= _LARGEST_DATAGRAM or bound == _BOUNDS[-1]:
                entries.append(entry)
            if len(entry) <= _SURE_DATAGRAM:
                break
        return entries

    def send(self, forms: Sequence[bytes], seconds: float | None) -> None:
        """Send the first of the entries that fits, and wait for journald for ``seconds``, with None without end.

        The last of ``forms`` is the line for the stream. Raises OSError; BlockingIOError or socket.timeout if journald
        is there but does not read.
        """
        *longer, shortest = forms[:-1]
        for entry in longer:
            try:
                return self._send_one(entry, seconds)
            except OSError as error:  # noqa: PERF203 - twice at most
                if error.errno != EMSGSIZE:
                    raise
        return self._send_one(shortest, seconds)

    def _send_one(self, entry: bytes, seconds: float | None) -> None:
        if self._socket is not None:
            try:
                self._socket.settimeout(seconds)
                self._socket.send(entry)
                return
            except ConnectionError:  # journald has restarted
                self._socket.close()
                self._socket = None
        self._socket = _connect(self._address, seconds)
        self._socket.send(entry)


def _connect(address: str, seconds: float | None) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        connection.settimeout(seconds)
        connection.connect(address)
    except OSError:
        connection.close()
        raise
    return connection


def _assignments(level: str, name: str, text: str, fields: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    yield "MESSAGE", text
    yield "PRIORITY", str(_PRIORITIES[level])
    yield "SYSLOG_IDENTIFIER", "forewarn"
    yield "FOREWARN_LINE", name
    for key, value in fields:
        yield "FOREWARN_" + _NOT_IN_NAMES.sub("_", key.upper()), value


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
