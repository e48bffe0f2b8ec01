# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Masks secrets in what is printed: as they are, line by line, and in the forms that programs commonly give them."""

from __future__ import annotations

import binascii
import json
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote

MASK = b"***"
_SHORTEST_LINE = 8  # bytes of a line of a longer secret: shorter ones may be braces, or words that hide nothing


class Masker:
    """Masks ``secrets`` in a stream of bytes, wherever it is cut into pieces."""

    def __init__(self, secrets: Iterable[bytes]) -> None:
        forms = {form for secret in secrets for form in _forms(secret)}
        longest_first = sorted(forms, key=lambda form: (-len(form), form))
        self._pattern = re.compile(b"|".join(map(re.escape, longest_first)) or b"(?!)")
        self._longest = len(longest_first[0]) if longest_first else 1
        self._held = b""  # may be the beginning of a secret

    def feed(self, piece: bytes) -> bytes:
        """Return what can be shown by now."""
        text = self._held + piece
        shown, taken, sure = bytearray(), 0, len(text) - self._longest + 1
        for found in self._pattern.finditer(text):
            if found.start() >= sure:
                break
            shown += text[taken : found.start()] + MASK
            taken = found.end()
        sure = max(sure, taken)
        self._held = text[sure:]
        return bytes(shown + text[taken:sure])

    def held(self) -> bytes:
        """Return what ``feed`` still holds back, masked, as if nothing followed."""
        return self._pattern.sub(MASK, self._held)

    def masked(self, text: str) -> str:
        """Return a whole text, masked."""
        return self._pattern.sub(MASK, text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")


def _forms(secret: bytes) -> Iterator[bytes]:
    whole = secret.strip()
    lines = [line.strip() for line in whole.splitlines()]
    for part in {whole, *(line for line in lines if len(line) >= _SHORTEST_LINE)} - {b""}:
        text = part.decode("utf-8", "replace")
        yield part
        yield quote(part).encode("ascii")
        yield quote(part, safe="").encode("ascii")
        yield json.dumps(text)[1:-1].encode("ascii")
        yield json.dumps(text, ensure_ascii=False)[1:-1].encode("utf-8")
    for part in {secret, whole, whole + b"\n"} - {b""}:
        yield binascii.b2a_base64(part, newline=False)
