# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes one document of a store: reads it, computes the next one, swaps them; again after a conflict."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ...imds.errors import GARBAGE
from .documents import SharedDocumentError
from .lineage import NONE, LineageMemory, with_next_lineage
from .store import CONFLICT, Store, StoreFault

# With 200 VMs at one document the last has its turn within about a second.
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.002, 0.25
PATIENCE_SECONDS = 5.0


class ChangeResult(NamedTuple):
    """The document as the store has it now, and when it was certainly current (monotonic, seconds).

    ``swaps`` counts the swaps that somebody else forestalled, and the last one.
    """

    document: Any
    at: float
    swaps: int = 0


def change(
    store: Store,
    key: str,
    decode: Callable[[bytes | None], Any],
    encode: Callable[[Any], bytes | None],
    step: Callable[[Any], Any],
    clock: Callable[[], float],
    pause: Callable[[int], None],
    *,
    fence: bool = False,
    memory: LineageMemory | None = None,
) -> ChangeResult:
    """Return the document after ``step``.

    ``fence``: write it even if nothing changes, so that no earlier write of this VM, whose answer was lost, can still
    take effect. ``pause`` waits before another attempt, whose number it gets. ``memory`` is what this VM has seen
    of the document. Raises StoreFault, also where that was lost.
    """
    until = clock() + PATIENCE_SECONDS
    swaps = 0
    memory = memory or LineageMemory()
    while True:
        at = clock()
        found = store.read(key)
        lineage = memory.read(found.value, f"{key} in the store")
        try:
            before = decode(found.value)
        except SharedDocumentError as error:
            raise StoreFault(f"{key} in the store cannot be used: {error}", kind=GARBAGE, lasting=True) from error
        after = step(before)
        if after == before and not fence:
            return ChangeResult(after, at, swaps)
        value = encode(after)
        if value is None and found.version == "":
            return ChangeResult(after, at, swaps)  # there is nothing, and nothing is to be there
        swaps += 1
        if value is not None:
            value, lineage = with_next_lineage(value, lineage)
        if store.swap(key, value, found.version) is not None:
            memory.record_write(lineage if value is not None else NONE)
            return ChangeResult(after, at, swaps)
        if clock() >= until:
            text = f"other VMs changed {key} each time that this one wanted to, {swaps} times."
            raise StoreFault(text, kind=CONFLICT)
        pause(swaps)
