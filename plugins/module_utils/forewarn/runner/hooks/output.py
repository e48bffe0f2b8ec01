# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a hook prints: kept in little memory, and made text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...system.console import decode, decode_ends

if TYPE_CHECKING:
    from ...hook_kinds.common.masking import Masker

OUTPUT_PART_BYTES = 8 * 1024  # of the output's beginning, and as many of its end


class Output:
    """The output of a process: its first and its last part, in little memory."""

    def __init__(self, secrets: tuple[bytes, ...] = ()) -> None:
        self._masker = _masker(secrets) if secrets else None
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out = 0

    def add(self, piece: bytes) -> None:
        """Add a piece. Secrets are masked before anything is cut."""
        self._append(piece if self._masker is None else self._masker.feed(piece))

    def end(self) -> None:
        """Note that nothing follows."""
        if self._masker is not None:
            self._append(self._masker.flush())
            self._masker = None

    def _append(self, piece: bytes) -> None:
        room = OUTPUT_PART_BYTES - len(self._head)
        self._head += piece[:room]
        self._tail += piece[room:]
        surplus = len(self._tail) - OUTPUT_PART_BYTES
        if surplus > 0:
            del self._tail[:surplus]
            self._left_out += surplus

    def text(self) -> str:
        """Return it as text, with a line where bytes were left out. What cannot be decoded is replaced."""
        if not self._left_out:
            return decode(bytes(self._head + self._tail))
        head, tail = decode_ends(bytes(self._head), bytes(self._tail))
        return f"{head}\n[… {self._left_out} bytes left out …]\n{tail}"


def _masker(secrets: tuple[bytes, ...]) -> Masker:
    from ...hook_kinds.common.masking import Masker  # here: few hooks have a secret

    return Masker(secrets)
