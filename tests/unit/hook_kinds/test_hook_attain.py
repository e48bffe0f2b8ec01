# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The form of every kind: what is ordered and looked at, in which order, and when it is a success."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from forewarn.hook_kinds.common import work
from forewarn.hook_kinds.common.effect import EffectStatus, absent, attain_effect, complete, incomplete
from forewarn.hook_kinds.common.work import HookFailedError, NotReadyError, Work
from tools.fixtures.clocks import ManualClocks

LOST = "(somebody has undone it meanwhile)"


@pytest.fixture(autouse=True)
def _clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = ManualClocks()
    monkeypatch.setattr(work, "time", SimpleNamespace(monotonic=clocks.monotonic, sleep=clocks.sleep))


def steps(*looks: EffectStatus | Exception, orders: str = "", seconds: float = 5.5) -> tuple[str, list[str]]:
    """Return the orders (O) and looks (L) of a run in which the last look comes again and again, and what it said."""
    taken: list[str] = []
    said: list[str] = []
    left = list(looks)

    def look(_work: Work) -> EffectStatus:
        taken.append("L")
        found = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(found, Exception):
            raise found
        return found

    def order(_work: Work) -> str:
        taken.append("O")
        return orders

    try:
        attain_effect(Work({}, {}, seconds, say=said.append), order, look, poll_seconds=1.0)
    except HookFailedError as error:
        said.append(f"failed: {error}")
    return "".join(taken), said


@pytest.mark.parametrize(
    ("looks", "taken", "said"),
    [
        # What is in force is not ordered, and it takes two looks to succeed.
        ([complete("drained")], "LL", ["drained"]),
        ([incomplete("1 job"), complete("drained")], "LLL", ["waiting: 1 job", "drained"]),
        # What was ordered is looked at without a pause.
        ([absent("not drained"), complete("drained")], "LOLL", ["drained"]),
        ([absent("no"), absent("no"), complete("drained")], "LOLOLL", ["waiting: no", "drained"]),
        # What was in force, and is not any more, is ordered again.
        (
            [absent("no"), incomplete("1 job"), absent("no"), incomplete("1 job"), complete("drained")],
            "LOLLOLLL",
            ["waiting: 1 job", f"waiting: no {LOST}", f"waiting: 1 job {LOST}", "drained"],
        ),
        # The last look, right before success, counts as any other.
        ([complete("drained"), absent("no"), complete("drained")], "LLOLL", [f"waiting: no {LOST}", "drained"]),
        (
            [complete("drained"), incomplete("1 job"), complete("drained")],
            "LLLL",
            [f"waiting: 1 job {LOST}", "drained"],
        ),
        ([complete("drained"), NotReadyError("silent"), complete("drained")], "LLLL", ["waiting: silent", "drained"]),
        ([complete("drained"), HookFailedError("no such node")], "LL", ["failed: no such node"]),
        (
            [complete("drained"), absent("no"), HookFailedError("no such node")],
            "LLOL",
            [f"waiting: no {LOST}", f"failed: no such node {LOST}"],
        ),
    ],
)
def test_the_effect_has_the_last_word(looks: list[EffectStatus | Exception], taken: str, said: list[str]) -> None:
    assert steps(*looks) == (taken, said)


def test_what_cannot_be_ordered_now_is_tried_again() -> None:
    taken, said = steps(absent("no"), orders="nobody can take over")
    assert taken == "LO" * 5
    assert said == ["waiting: nobody can take over", "failed: nobody can take over, after 4 s"]


def test_ineffective_order_is_not_reported_as_undone() -> None:
    assert steps(absent("not drained"))[1][-1] == "failed: not drained, after 4 s"


@pytest.mark.parametrize("flicker", [[complete("yes"), absent("no")], [incomplete("1 job"), absent("no")]])
def test_repeated_loss_is_reported_as_lost(flicker: list[EffectStatus]) -> None:
    assert steps(*flicker * 20)[1][-1].endswith(f"{LOST}, after 4 s")
