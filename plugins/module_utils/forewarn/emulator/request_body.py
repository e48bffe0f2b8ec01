# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The body of a request: with a Content-Length, or in chunks (RFC 9112, 6 and 7.1)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from io import BufferedIOBase

LONGEST_BODY = 1_000_000  # bytes
_LONGEST_LINE = 4096  # of a chunk's size with its extensions, and of a trailer field
_MOST_TRAILERS = 100
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n]*)?\r?\n")


class BodyError(Exception):
    """The body cannot be read, and it is unknown where the next request begins. ``status`` is the answer's."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def read_body(stream: BufferedIOBase, headers: Mapping[str, str]) -> bytes:
    """Return the whole body, at most ``LONGEST_BODY`` bytes. ``headers`` have names in lower case. Raises BodyError."""
    coding = headers.get("transfer-encoding")
    length = headers.get("content-length")
    if coding is None:
        return _sized(stream, "0" if length is None else length)
    if length is not None:  # two readers could see different requests
        raise BodyError(400, "There is a Content-Length besides the Transfer-Encoding.")
    if coding.strip().lower() != "chunked":
        raise BodyError(501, f"The Transfer-Encoding is {coding[:40]!r}. Only chunked is supported.")
    return _chunked(stream)


def _sized(stream: BufferedIOBase, length: str) -> bytes:
    if not (length.isascii() and length.isdecimal()):
        raise BodyError(400, "The Content-Length is not a number.")
    if len(length) > 18 or int(length) > LONGEST_BODY:
        raise BodyError(413, "The body is too long.")
    body = stream.read(int(length))
    if len(body) < int(length):
        raise BodyError(400, "The body is cut short.")
    return body


def _chunked(stream: BufferedIOBase) -> bytes:
    pieces: list[bytes] = []
    total = 0
    while size := _size(stream):
        total += size
        if total > LONGEST_BODY:
            raise BodyError(413, "The body is too long.")
        pieces.append(stream.read(size))
        if len(pieces[-1]) < size or _line(stream).strip(b"\r\n"):
            raise BodyError(400, "A chunk is shorter or longer than its size.")
    for _trailer in range(_MOST_TRAILERS):
        if not _line(stream).strip(b"\r\n"):
            return b"".join(pieces)
    raise BodyError(400, "There are too many trailer fields.")


def _size(stream: BufferedIOBase) -> int:
    match = _SIZE.fullmatch(_line(stream))
    if match is None:
        raise BodyError(400, "The size of a chunk is not a number.")
    return int(match.group(1), 16)


def _line(stream: BufferedIOBase) -> bytes:
    line = stream.readline(_LONGEST_LINE)
    if not line.endswith(b"\n"):
        raise BodyError(400, "The body is cut short, or a line of it is too long.")
    return line
