# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What programs print on Windows: UTF-8, or the code page of consoles (OEM) if it is not; a line ends with CR LF."""

from __future__ import annotations

import codecs

OEM = "oem"  # Python's name of GetOEMCP()
_CONTINUATION = bytes(range(0x80, 0xC0))  # bytes within a UTF-8 character


def decode(output: bytes) -> str:
    """Return what a program has printed as text. What is in no encoding is replaced."""
    try:
        return _tidy(output.decode("utf-8"))
    except UnicodeDecodeError:
        return _tidy(output.decode(OEM, "replace"))


def decode_ends(head: bytes, tail: bytes) -> tuple[str, str]:
    """Return the beginning and the end of what a program has printed, both in one encoding.

    UTF-8 may have half a character at each cut, which is left out.
    """
    try:
        start = codecs.getincrementaldecoder("utf-8")().decode(head)
        end = tail.lstrip(_CONTINUATION).decode("utf-8")
    except UnicodeDecodeError:
        start = codecs.getincrementaldecoder(OEM)("replace").decode(head)
        end = tail.decode(OEM, "replace")
    return _tidy(start), _tidy(end)


def _tidy(text: str) -> str:
    """Remove a byte order mark, which PowerShell writes, and each CR before LF."""
    return text[text.startswith("\ufeff") :].replace("\r\n", "\n")
