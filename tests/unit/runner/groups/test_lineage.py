# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a document goes on from what a VM has seen: every order of writes, reads and restored backups."""

from __future__ import annotations

import json

import pytest
from forewarn.runner.groups import lineage
from forewarn.runner.groups.lineage import NONE, LineageMemory, lineage_of, with_next_lineage
from forewarn.runner.groups.store import StoreFault
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tools.suite.sizes import examples

EMPTY = b'{"number":0}'
STEPS = ["write", "write", "read", "read", "back up", "restore"]


@settings(deadline=None, max_examples=examples(300))
@given(st.lists(st.sampled_from(STEPS), min_size=8, max_size=40), st.sampled_from([3, 100]))
@example(["back up", "write", "read", "restore", "write", "read"], 100)  # as many writes as were lost
@example(["back up", "write", "read", "restore", "write", "write", "write", "write", "read"], 3)  # it cannot be known
def test_lost_history_is_noticed_by_its_readers(steps: list[str], kept: int) -> None:
    """The judge keeps every write ever made, and knows which of them the document rests on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lineage, "KEPT", kept)
        memory = LineageMemory(permanent=True)
        value, _ = with_next_lineage(EMPTY, NONE)
        history: list[int] = [0]  # the writes that the document rests on, by their number of all that were made
        seen: list[int] = []
        backup, made, forked = (value, list(history)), 1, False
        for step in steps:
            if step == "write":
                value, _ = with_next_lineage(EMPTY, lineage_of(value))
                history.append(made)
                made += 1
            elif step == "back up":
                backup = (value, list(history))
            elif step == "restore":
                value, history = backup[0], list(backup[1])
            else:
                goes_on = history[: len(seen)] == seen
                told = len(history) - len(seen) < kept  # the document still has the token
                forked = forked or (not goes_on and len(history) >= len(seen) and told)
                if forked or len(history) < len(seen):
                    with pytest.raises(StoreFault, match="gone back to an older state"):
                        memory.read(value, "it")
                else:
                    memory.read(value, "it")
                    seen = list(history)


@pytest.mark.parametrize(
    "value", [None, b"", b"{", b"[]", b"{}", b'{"lineage":[]}', b'{"lineage":["a",0,""]}', b'{"lineage":["a",1,"b c"]}']
)
def test_value_without_lineage_is_not_judged(value: bytes | None) -> None:
    memory = LineageMemory(permanent=True)
    first, _ = with_next_lineage(EMPTY, NONE)
    memory.read(first, "it")
    assert memory.read(value, "it") == NONE
    assert memory.read(first, "it").number == 1, "it has come back"


def test_a_document_stays_what_it_was() -> None:
    value, after = with_next_lineage(b'{"forewarn":{"schema":"semaphore"},"slots":{}}', NONE)
    data = json.loads(value)
    assert data.pop("lineage") == [after.root, 1, after.root]
    assert data == {"forewarn": {"schema": "semaphore"}, "slots": {}}
    assert lineage_of(value) == after
