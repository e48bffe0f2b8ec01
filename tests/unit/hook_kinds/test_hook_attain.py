# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The form of every kind: what is ordered and looked at, in which order, and when it is a success."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from forewarn.hook_kinds import work
from forewarn.hook_kinds.effect import EffectSeen, attain, missing, there, undone
from forewarn.hook_kinds.work import HookFailedError, NotYetError, Work
from tools.fixtures.clocks import ManualClocks

LOST = "(somebody has undone it meanwhile)"


@pytest.fixture(autouse=True)
def _clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = ManualClocks()
    monkeypatch.setattr(work, "time", SimpleNamespace(monotonic=clocks.monotonic, sleep=clocks.sleep))


def steps(*looks: EffectSeen | Exception, orders: str = "", seconds: float = 5.5) -> tuple[str, list[str]]:
    """Return the orders (O) and looks (L) of a run in which the last look comes again and again, and what it said."""
    taken: list[str] = []
    said: list[str] = []
    left = list(looks)

    def look(_work: Work) -> EffectSeen:
        taken.append("L")
        found = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(found, Exception):
            raise found
        return found

    def order(_work: Work) -> str:
        taken.append("O")
        return orders

    try:
        attain(Work({}, {}, seconds, say=said.append), order, look, every=1.0)
    except HookFailedError as error:
        said.append(f"failed: {error}")
    return "".join(taken), said


@pytest.mark.parametrize(
    ("looks", "taken", "said"),
    [
        # What is in force is not ordered, and it takes two looks to succeed.
        ([there("drained")], "LL", ["drained"]),
        ([missing("1 job"), there("drained")], "LLL", ["waiting: 1 job", "drained"]),
        # What was ordered is looked at without a pause.
        ([undone("not drained"), there("drained")], "LOLL", ["drained"]),
        ([undone("no"), undone("no"), there("drained")], "LOLOLL", ["waiting: no", "drained"]),
        # What was in force, and is not any more, is ordered again.
        (
            [undone("no"), missing("1 job"), undone("no"), missing("1 job"), there("drained")],
            "LOLLOLLL",
            ["waiting: 1 job", f"waiting: no {LOST}", f"waiting: 1 job {LOST}", "drained"],
        ),
        # The last look, right before success, counts as any other.
        ([there("drained"), undone("no"), there("drained")], "LLOLL", [f"waiting: no {LOST}", "drained"]),
        ([there("drained"), missing("1 job"), there("drained")], "LLLL", [f"waiting: 1 job {LOST}", "drained"]),
        ([there("drained"), NotYetError("silent"), there("drained")], "LLLL", ["waiting: silent", "drained"]),
        ([there("drained"), HookFailedError("no such node")], "LL", ["failed: no such node"]),
        (
            [there("drained"), undone("no"), HookFailedError("no such node")],
            "LLOL",
            [f"waiting: no {LOST}", f"failed: no such node {LOST}"],
        ),
    ],
)
def test_the_effect_has_the_last_word(looks: list[EffectSeen | Exception], taken: str, said: list[str]) -> None:
    assert steps(*looks) == (taken, said)


def test_what_cannot_be_ordered_now_is_tried_again() -> None:
    taken, said = steps(undone("no"), orders="nobody can take over")
    assert taken == "LO" * 5
    assert said == ["waiting: nobody can take over", "failed: nobody can take over, after 4 s"]


def test_ineffective_order_is_not_reported_as_undone() -> None:
    assert steps(undone("not drained"))[1][-1] == "failed: not drained, after 4 s"


@pytest.mark.parametrize("flicker", [[there("yes"), undone("no")], [missing("1 job"), undone("no")]])
def test_repeated_loss_is_reported_as_lost(flicker: list[EffectSeen]) -> None:
    assert steps(*flicker * 20)[1][-1].endswith(f"{LOST}, after 4 s")
