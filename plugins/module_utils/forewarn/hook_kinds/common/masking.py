# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Masks secrets in output: as they are, each line, and the encodings in which programs commonly print them."""

from __future__ import annotations

import binascii
import json
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote

MASK = b"***"
_SHORTEST_LINE = 8  # bytes of a line of a longer secret: shorter lines may be braces or common words


class Masker:
    """Masks ``secrets`` in a stream of bytes, also where a secret is split between two pieces."""

    def __init__(self, secrets: Iterable[bytes]) -> None:
        forms = {form for secret in secrets for form in _forms(secret)}
        longest_first = sorted(forms, key=lambda form: (-len(form), form))
        self._pattern = re.compile(b"|".join(map(re.escape, longest_first)) or b"(?!)")
        self._longest = len(longest_first[0]) if longest_first else 1
        self._held = b""  # the end of the stream, which may be the beginning of a secret

    def feed(self, piece: bytes) -> bytes:
        """Return what can be shown after this piece, masked."""
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

    def flush(self) -> bytes:
        """Return what ``feed`` has held back, masked: the stream has ended."""
        return self._pattern.sub(MASK, self._held)

    def mask(self, text: str) -> str:
        """Return a text with secrets masked."""
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
