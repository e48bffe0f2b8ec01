# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What programs print is UTF-8, whatever the locale."""

from __future__ import annotations

import codecs

_CONTINUATION = bytes(range(0x80, 0xC0))  # bytes within a UTF-8 character


def decode(output: bytes) -> str:
    """Return what a program has printed as text. What is not UTF-8 is replaced."""
    return output.decode("utf-8", "replace")


def decode_ends(head: bytes, tail: bytes) -> tuple[str, str]:
    """Return the beginning and the end of what a program has printed, without half characters at the cuts."""
    start = codecs.getincrementaldecoder("utf-8")("replace").decode(head)
    return start, tail.lstrip(_CONTINUATION).decode("utf-8", "replace")
