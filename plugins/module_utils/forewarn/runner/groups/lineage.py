# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The history of a document of the store, by which a VM notices that the store was restored from a backup.

A revision is no help: it is that of the whole store, and others' writes catch up. So each write of a document counts
one up, and adds a random token. A VM that has seen write 7 finds its token in every later document that continues it,
and another token in one that continues an earlier state.
"""

from __future__ import annotations

import json
import os
from typing import NamedTuple

from .store import LOST_DATA, StoreFault

KEPT = 100  # tokens of the latest writes: a VM that reads once in so many notices
_NAME = "lineage"
_HINT = "Find out whether the store was restored or set up anew; then restart the runner."


class Lineage(NamedTuple):
    """``root`` is the token of the first write, ``number`` that of the latest, ``tokens`` those of the latest ``KEPT``.

    A document that there is not, or that an earlier version has written, has no root.
    """

    root: str = ""
    number: int = 0
    tokens: tuple[str, ...] = ()


NONE = Lineage()


def lineage_of(value: bytes | None) -> Lineage:
    """Return the lineage of a document as the store has it: ``NONE`` for anything that has none that can be read."""
    try:
        root, number, tokens = json.loads(value or b"{}")[_NAME]
        found = Lineage(root, number, tuple(tokens.split()))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return NONE
    right = isinstance(root, str) and isinstance(number, int) and 0 < len(found.tokens) <= min(number, KEPT)
    return found if right and root else NONE


def with_next_lineage(value: bytes, before: Lineage) -> tuple[bytes, Lineage]:
    """Return a document, a JSON object with members, as the next write after ``before``."""
    token = os.urandom(4).hex()
    after = Lineage(before.root or token, before.number + 1, (*before.tokens, token)[-KEPT:])
    lineage = json.dumps([after.root, after.number, " ".join(after.tokens)], separators=(",", ":"))
    return b'%s,"%s":%s}' % (value[:-1], _NAME.encode("ascii"), lineage.encode("ascii")), after


class LineageMemory:
    """The lineage of one document that this VM has seen last. Once the document continues an older one, it is refused.

    ``permanent``: nobody removes the document and writes it anew.
    """

    def __init__(self, permanent: bool = False) -> None:
        self._permanent = permanent
        self._seen = NONE
        self._forked = False

    def read(self, value: bytes | None, where: str) -> Lineage:
        """Return the lineage of a document, and remember it. Raises StoreFault if it does not continue the last one.

        That is known as long as there were fewer than ``KEPT`` writes since then.
        """
        found, seen = lineage_of(value), self._seen
        if self._permanent and not found.root:  # it is not there, or damaged: others say so, and it may come back
            return found
        same = found.root == seen.root
        written = found.number - seen.number  # since then
        if same and seen.number and 0 <= written < len(found.tokens):
            self._forked = self._forked or found.tokens[-1 - written] != seen.tokens[-1]
        if self._permanent and seen.number and not same:
            self._forked = True
        if self._forked or (same and written < 0):  # the latter may be an old answer
            text = f"{where} has gone back to an older state: what was in the store may have been lost."
            raise StoreFault(text, _HINT, kind=LOST_DATA, lasting=True)
        self._seen = found
        return found

    def record_write(self, lineage: Lineage) -> None:
        """Remember the lineage that this VM has written."""
        self._seen = lineage
