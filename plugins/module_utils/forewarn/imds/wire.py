# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One kept connection, and HTTP/1.1 on it: what is sent, and how an answer is read within bounds of time and size.

Not http.client: importing that, with the e-mail and TLS packages it draws in, takes longer than all the rest of the
runner's start. What the service needs of HTTP is small, and here every doubt about where an answer ends is a fault.
"""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass

MAX_BODY_BYTES = 4 * 1024 * 1024
MAX_HEAD_BYTES = 65536
MAX_HEADERS = 100
_MAX_INTERIM_ANSWERS = 5  # 1xx
_PIECE_BYTES = 65536

_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-9]\d\d)(?: ([^\r\n]*))?")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\r\n]*)")
_LENGTH = re.compile(r"\d{1,18}", re.ASCII)
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n]*)?")


class ClosedError(Exception):
    """The server closed the connection before the first byte of an answer: nothing says that it read the request."""


class AnswerError(Exception):
    """What arrived is not an answer, or not a whole one. The text completes the sentence "the answer …"."""


@dataclass(frozen=True)
class Response:
    """A whole answer. Header names are in lower case; the values of a repeated header are joined."""

    status: int
    reason: str
    headers: Mapping[str, str]
    body: bytes


class Wire:
    """A connection. After an exchange that raised, or that left ``usable`` False, it can only be closed."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._deadline = 0.0
        self._received = b""  # and not consumed yet
        self.usable = True

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def idle(self) -> bool:
        """Whether the connection is open with nothing to read, as one without a request under way has to be."""
        if not self.usable:
            return False
        self._socket.setblocking(False)
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def exchange(self, request: bytes, timeout: float) -> Response:
        """Send a request and return the whole answer; ``timeout`` is in seconds, for both together.

        Raises ClosedError, AnswerError, or OSError (socket.timeout among them).
        """
        self.usable = False
        self._deadline = time.monotonic() + timeout
        try:
            self._socket.settimeout(timeout)
            self._socket.sendall(request)
            self._fill()
        except ConnectionError as error:
            raise ClosedError from error
        if not self._received:
            raise ClosedError
        version, status, reason, headers = self._head()
        body, framed = self._body(status, headers)
        closing = "close" in _tokens(headers, "connection")
        # Bytes beyond the answer would be taken for the next one.
        self.usable = version == 1 and framed and not closing and not self._received
        return Response(status, reason, headers, body)

    def _fill(self) -> bool:
        """Receive some more; False at the end of the connection."""
        remaining = self._deadline - time.monotonic()
        if remaining <= 0:
            raise socket.timeout("timed out")
        self._socket.settimeout(remaining)
        piece = self._socket.recv(_PIECE_BYTES)
        self._received += piece
        return bool(piece)

    def _line(self) -> bytes:
        """Take a line, without its end."""
        while True:
            line, end, rest = self._received.partition(b"\n")
            if end:
                self._received = rest
                return line[:-1] if line.endswith(b"\r") else line
            if len(line) > MAX_HEAD_BYTES:
                raise AnswerError(f"has a line of more than {MAX_HEAD_BYTES} bytes")
            if not self._fill():
                raise AnswerError("is cut short within a line")

    def _take(self, size: int) -> bytes:
        """Take exactly so many bytes."""
        pieces = [self._received[:size]]
        self._received = self._received[size:]
        missing = size - len(pieces[0])
        while missing:
            if not self._fill():
                raise AnswerError(f"is cut short: {size - missing} of {size} bytes")
            pieces.append(self._received[:missing])
            self._received = self._received[missing:]
            missing -= len(pieces[-1])
        return b"".join(pieces)

    def _head(self) -> tuple[int, int, str, dict[str, str]]:
        for _ in range(_MAX_INTERIM_ANSWERS):
            line = self._line()
            match = _STATUS_LINE.fullmatch(line)
            if not match:
                raise AnswerError(f"is not HTTP: it begins with {line[:40]!r}")
            headers = self._headers()
            status = int(match.group(2))
            if status >= 200:
                return int(match.group(1)), status, (match.group(3) or b"").decode("latin-1"), headers
        raise AnswerError(f"keeps announcing itself with status {status}")

    def _headers(self) -> dict[str, str]:
        headers: dict[str, str] = {}
        size = 0
        for _ in range(MAX_HEADERS + 1):
            line = self._line()
            if not line:
                return headers
            size += len(line)
            match = _HEADER.fullmatch(line)
            if not match:
                raise AnswerError(f"has a malformed header: {line[:40]!r}")
            if size > MAX_HEAD_BYTES:
                break
            name = match.group(1).decode("ascii").lower()
            value = match.group(2).decode("latin-1").strip()
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        raise AnswerError(f"has more than {MAX_HEADERS} headers, or {MAX_HEAD_BYTES} bytes of them")

    def _body(self, status: int, headers: Mapping[str, str]) -> tuple[bytes, bool]:
        """Return the body, and whether its end was known without the end of the connection."""
        coding, declared = headers.get("transfer-encoding"), headers.get("content-length")
        if status in (204, 304):
            return b"", True
        if coding is not None:
            if coding.lower() != "chunked":
                raise AnswerError(f"has the Transfer-Encoding {coding[:40]!r}")
            return self._chunks(), declared is None
        if declared is not None:
            if not _LENGTH.fullmatch(declared):
                raise AnswerError(f"has the Content-Length {declared[:40]!r}")
            if int(declared) > MAX_BODY_BYTES:
                raise AnswerError(f"is too long: {declared} bytes announced, {MAX_BODY_BYTES} are the limit")
            return self._take(int(declared)), True
        while self._fill():
            self._check_size(len(self._received))
        body, self._received = self._received, b""
        if not body:
            # Nothing tells an empty answer from one that was lost on the way.
            raise AnswerError("ended before its body, whose length it did not announce")
        return body, False

    def _chunks(self) -> bytes:
        pieces: list[bytes] = []
        size = 0
        while True:
            line = self._line()
            match = _CHUNK_SIZE.fullmatch(line)
            if not match:
                raise AnswerError(f"has a chunk of the size {line[:40]!r}")
            length = int(match.group(1), 16)
            if not length:
                self._headers()  # trailers
                return b"".join(pieces)
            size += length
            self._check_size(size)
            pieces.append(self._take(length))
            if self._line():
                raise AnswerError("has a chunk that is longer than announced")

    def _check_size(self, size: int) -> None:
        if size > MAX_BODY_BYTES:
            raise AnswerError(f"is too long: more than {MAX_BODY_BYTES} bytes")


def _tokens(headers: Mapping[str, str], name: str) -> list[str]:
    return [token.strip().lower() for token in headers.get(name, "").split(",")]
