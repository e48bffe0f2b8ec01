# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writers that count together in one value of a store, and notice when a write is lost, doubled or answered wrongly."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from forewarn.runner.groups.store import Store, StoreFault

_PAUSE_SECONDS = 0.02  # after a fault


class Count(NamedTuple):
    """What the writers met. ``seconds``: the longest time in which none of them succeeded."""

    swaps: int
    refused: int
    unsure: int
    faults: int
    seconds: float


class Counting:
    """Each store is used by a thread of its own, which adds 1 so many ``times``."""

    def __init__(self, stores: Sequence[Store], key: str, times: int, pause: float = 0.0) -> None:
        self._stores, self._key, self._times, self._pause = stores, key, times, pause
        self._lock = threading.Lock()
        self._moments: list[float] = [0.0]  # of the start and of the successes
        self._refused = self._unsure = self._faults = 0
        self._errors: list[BaseException] = []

    @property
    def swaps(self) -> int:
        """How many additions have succeeded so far."""
        return len(self._moments) - 1

    def run(self, meanwhile: Callable[[], object] = lambda: None) -> Count:
        """Let all count, and do something meanwhile. Raises AssertionError if the result is not the sum."""
        threads = [threading.Thread(target=self._work, args=(f"w{number}",)) for number in range(len(self._stores))]
        self._moments[0] = time.monotonic()
        for thread in threads:
            thread.start()
        try:
            meanwhile()
        except BaseException as error:  # the writers stop first
            self._errors.append(error)
        for thread in threads:
            thread.join(120)
            assert not thread.is_alive()
        if self._errors:
            raise self._errors[0]
        final = _document(self._stores[0].read(self._key).value)
        expected = {f"w{number}": self._times for number in range(len(self._stores))}
        assert final["by"] == expected, "a swap is lost or doubled, or the last read is stale"
        assert final["sum"] == self._times * len(self._stores)
        pauses = [later - earlier for earlier, later in zip(self._moments, self._moments[1:], strict=False)]
        return Count(self.swaps, self._refused, self._unsure, self._faults, max(pauses))

    def _work(self, me: str) -> None:
        try:
            for number in range(1, self._times + 1):
                self._add(self._stores[int(me[1:])], me, number)
                time.sleep(self._pause)  # so that the counting lasts as long as what happens meanwhile
        except BaseException as error:  # for the main thread
            self._errors.append(error)

    def _add(self, store: Store, me: str, number: int) -> None:
        """Add 1. The value says which additions of each writer are in it, so that a repeated one is seen."""
        unsure = False
        while not self._errors:
            try:
                seen = store.read(self._key)
                document = _document(seen.value)
                if document["by"].get(me, 0) == number:
                    assert unsure, "a swap was applied, and its answer was that it was not"
                    break
                assert document["by"].get(me, 0) == number - 1, "a swap is lost, or a read is stale"
                added = {"sum": document["sum"] + 1, "by": {**document["by"], me: number}}
                if store.swap(self._key, json.dumps(added).encode(), seen.version) is not None:
                    break
                self._refused += 1
            except StoreFault as fault:
                unsure = unsure or fault.unsure
                self._unsure += fault.unsure
                self._faults += 1
                time.sleep(_PAUSE_SECONDS)  # as a runner would, before it asks again
        with self._lock:
            self._moments.append(time.monotonic())


def _document(value: bytes | None) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(value) if value is not None else {"sum": 0, "by": {}}
    return found
