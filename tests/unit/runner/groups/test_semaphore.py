# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Slots: who gets them, who waits, who gives them back."""

from __future__ import annotations

import pytest
from forewarn.runner.groups import semaphore
from forewarn.runner.groups.semaphore import FORCE, HELD, RECOVER, RECOVERING, RELEASE, TAKE, Semaphore, Want, step
from hypothesis import given
from hypothesis import strategies as st

NAMES = ("a", "b", "c", "d")


def want(key: str, state: str = TAKE, names: str = "", at_most: int = 1, not_before: float | None = None) -> Want:
    return Want(key, state, tuple(names or key), at_most, not_before, "Reboot", "2026-01-01T00:00:00Z")


def after(*steps: tuple[str, Want], passed_over: tuple[str, ...] = ()) -> Semaphore:
    document = Semaphore()
    for me, wanted in steps:
        document = step(document, me, [wanted], passed_over)
    return document


def granted(document: Semaphore) -> set[str]:
    return {key for key, slot in document.slots.items() if slot.granted}


def test_the_second_waits_until_the_first_has_recovered() -> None:
    steps = [("a", want("a")), ("b", want("b"))]
    assert granted(after(*steps)) == {"a"}
    recovering = [*steps, ("a", want("a", RECOVER)), ("b", want("b"))]
    assert after(*recovering).slots["a"].names == {"a": RECOVERING}
    assert granted(after(*recovering)) == {"a"}
    released = after(*recovering, ("a", want("a", RELEASE)), ("b", want("b")))
    assert (granted(released), released.waiting) == ({"b"}, {})


def test_an_event_takes_all_its_slots_or_none() -> None:
    both = want("e", names="ab", at_most=2)
    assert after(("a", both)).slots["e"].names == {"a": HELD, "b": HELD}
    assert granted(after(("c", want("c", at_most=2)), ("a", both))) == {"c"}


def test_event_beyond_the_limit_does_not_wait() -> None:
    document = after(("a", want("e", names="ab")))
    assert document == Semaphore()


def test_the_soonest_not_before_is_served_first() -> None:
    steps = [("a", want("a")), ("b", want("b", not_before=20.0)), ("c", want("c", not_before=10.0))]
    free = [*steps, ("a", want("a", RELEASE))]
    assert granted(after(*free, ("b", want("b", not_before=20.0)))) == set()
    assert granted(after(*free, ("c", want("c", not_before=10.0)))) == {"c"}
    assert granted(after(*free, ("b", want("b", not_before=20.0)), passed_over=("c",))) == {"b"}


def test_skipped_event_is_forgotten_until_it_asks_again() -> None:
    waiting = [("a", want("a")), ("b", want("b", not_before=20.0)), ("c", want("c", not_before=10.0))]
    late = want("c", not_before=10.0)
    document = after(*waiting, ("a", want("a", RELEASE)), ("b", want("b", not_before=20.0)), passed_over=("c",))
    assert set(document.waiting) == set()
    assert set(step(document, "c", [late]).waiting) == {"c"}


def test_large_request_is_not_overtaken_by_small_ones() -> None:
    many = want("many", names="bc", at_most=2, not_before=10.0)
    document = after(("a", want("a", at_most=2)), ("b", many), ("d", want("d", at_most=2, not_before=20.0)))
    assert (granted(document), set(document.waiting)) == ({"a"}, {"many", "d"})


def test_disturbed_vm_needs_no_second_slot() -> None:
    document = after(("a", want("a")), ("b", want("b", not_before=1.0)), ("a", want("again", names="a")))
    assert granted(document) == {"a", "again"}


def test_forced_slot_counts_but_is_granted_later() -> None:
    forced = [("a", want("a")), ("b", want("b", FORCE))]
    assert after(*forced).disturbed() == {"a", "b"}
    assert granted(after(*forced)) == {"a"}
    assert granted(after(*forced, ("a", want("a", RELEASE)), ("c", want("c")))) == set(), "b is disturbed"
    assert granted(after(*forced, ("a", want("a", RELEASE)), ("b", want("b", FORCE)))) == {"b"}


def test_orphaned_slot_is_freed_by_a_waiter() -> None:
    document = after(("a", want("a")))
    assert granted(step(document, "b", [want("b")])) == {"a"}
    freed = step(document, "b", [want("b")], orphans={"a"})
    assert granted(freed) == {"b"}
    (release,) = freed.releases
    assert (release.name, release.key, release.by) == ("a", "a", "b")
    assert "no longer listed" in release.why
    recovering = step(document, "a", [want("a", RECOVER)])
    assert granted(step(recovering, "b", [want("b")], orphans={"a"})) == {"a"}, "it has said that it recovers"
    assert step(document, "b", [], orphans={"a"}) == document, "who needs no slot frees none"


def test_operator_frees_everything_a_vm_has() -> None:
    document = after(("a", want("e", names="ab", at_most=2)), ("c", want("c", at_most=2)), ("a", want("a", at_most=2)))
    freed = semaphore.force_release(document, "A", "jane", "it was deleted", "now")
    assert freed.slots["e"].names == {"b": HELD}
    assert [(each.name, each.by, each.why) for each in freed.releases] == [("a", "jane", "it was deleted")] * 2
    assert semaphore.force_release(document, "c", "jane", "", "").waiting == {}
    assert semaphore.force_release(freed, "a", "jane", "", "") == freed


def test_joined_forced_slot_is_granted_when_possible() -> None:
    document = step(Semaphore(), "a", [want("e", names="a", at_most=2)])
    document = step(document, "b", [want("f", FORCE, names="bc", at_most=2)])
    assert not document.slots["f"].granted
    document = step(document, "a", [want("e", RELEASE, names="a", at_most=2)])
    document = step(document, "c", [want("f", names="bc", at_most=2)])
    assert document.slots["f"].granted
    assert set(document.slots["f"].names) == {"b", "c"}


def test_only_the_latest_releases_are_remembered() -> None:
    document = Semaphore()
    for number in range(semaphore.MOST_RELEASES + 5):
        document = step(document, "a", [want(f"e{number}", names="a")])
        document = semaphore.force_release(document, "a", "jane", str(number), "now")
    assert [each.why for each in document.releases] == [str(number) for number in range(5, semaphore.MOST_RELEASES + 5)]


@st.composite
def histories(draw: st.DrawFn) -> tuple[int, list[tuple[str, Want, frozenset[str], frozenset[str]]]]:
    """Draw a limit, and who wants what, whom it passes over, and which events it holds for gone."""
    at_most = draw(st.integers(1, 3))
    events = {key: draw(st.sets(st.sampled_from(NAMES), min_size=1)) for key in ("e", "f", "g")}
    keys = st.sampled_from(sorted(events))
    steps = []
    for _number in range(draw(st.integers(1, 20))):
        key = draw(keys)
        me = draw(st.sampled_from(sorted(events[key])))
        state = draw(st.sampled_from((TAKE, TAKE, FORCE, RECOVER, RELEASE)))
        moment = draw(st.none() | st.sampled_from((1.0, 2.0)))
        asked = Want(key, state, tuple(sorted(events[key])), at_most, moment)
        steps.append((me, asked, draw(st.frozensets(keys)), draw(st.frozensets(keys))))
    return at_most, steps


@given(histories())
def test_whatever_happens_nothing_is_granted_beyond_the_limit(
    drawn: tuple[int, list[tuple[str, Want, frozenset[str], frozenset[str]]]],
) -> None:
    at_most, steps = drawn
    document = Semaphore()
    for me, asked, passed_over, orphans in steps:
        before = document
        document = step(document, me, [asked], passed_over, orphans)
        for key in granted(document) - granted(before):
            assert len(document.disturbed()) <= at_most, "it was granted without room"
            assert set(asked.names) <= set(document.slots[key].names), "only some of its VMs have a slot"
        lost = {(key, name) for key, slot in before.slots.items() for name in slot.names}
        lost -= {(key, name) for key, slot in document.slots.items() for name in slot.names}
        freed = {(each.key, each.name) for each in document.releases}
        assert lost <= freed | {(asked.key, me)}, "somebody else lost a slot, and nothing says so"
        assert step(document, me, [asked], passed_over, orphans) == document, "it would be written for ever"


@pytest.mark.parametrize("state", [RECOVER, RELEASE])
def test_to_leave_what_one_never_had_changes_nothing(state: str) -> None:
    assert step(Semaphore(), "a", [want("a", state)]) == Semaphore()
