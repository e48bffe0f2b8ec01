# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The barrier of an event: who closes it, and who may no longer take anything back."""

from __future__ import annotations

from forewarn.runner.groups import barrier
from forewarn.runner.groups.barrier import FAILED, HELD, PREPARING, READY, Barrier, Closure, Statement, step
from hypothesis import given
from hypothesis import strategies as st

NAMES = ("A", "b")


def said(state: str, content: str = "c", reason: str = "") -> Statement:
    return Statement(content, state, reason)


def test_whoever_is_ready_last_closes_it() -> None:
    first = step(Barrier(), "b", said(READY), NAMES)
    assert (first.closed, first.missing("c", NAMES)) == (None, ["A"])
    assert step(first, "a", said(READY), NAMES).closed == Closure("c", "a")


def test_unready_member_keeps_the_barrier_open() -> None:
    first = step(Barrier(), "b", said(READY), NAMES)
    for state in (PREPARING, FAILED, HELD):
        assert step(first, "a", said(state), NAMES).closed is None


def test_ready_for_other_content_does_not_count() -> None:
    first = step(Barrier(), "b", said(READY, "before"), NAMES)
    after = step(first, "a", said(READY), NAMES)
    assert (after.closed, after.missing("c", NAMES)) == (None, ["b"])


def test_once_closed_nobody_takes_anything_back() -> None:
    closed = step(step(Barrier(), "b", said(READY), NAMES), "a", said(READY), NAMES)
    assert step(closed, "b", said(FAILED), NAMES) == closed


def test_another_content_opens_it_again() -> None:
    closed = step(step(Barrier(), "b", said(READY), NAMES), "a", said(READY), NAMES)
    assert step(closed, "b", said(READY, "after"), NAMES).closed is None


def test_leaving_member_opens_and_last_removes_the_barrier() -> None:
    closed = step(step(Barrier(), "b", said(READY), NAMES), "a", said(READY), NAMES)
    left = step(closed, "b", None, NAMES)
    assert (set(left.members), left.closed) == ({"a"}, None)
    assert step(left, "b", None, NAMES) == left
    assert barrier.encode(step(left, "A", None, NAMES), "event") is None


def test_reason_alone_is_not_rewritten_and_is_limited() -> None:
    first = step(Barrier(), "a", said(FAILED, reason="x" * 1000), NAMES)
    assert len(first.members["a"].reason) == barrier.LONGEST_REASON
    assert step(first, "a", said(FAILED, reason="other"), NAMES) == first


@given(
    st.lists(
        st.tuples(
            st.sampled_from(NAMES),
            st.none() | st.builds(Statement, st.sampled_from("cd"), st.sampled_from(barrier.STATES)),
        ),
        max_size=12,
    )
)
def test_it_is_closed_only_while_all_are_ready(steps: list[tuple[str, Statement | None]]) -> None:
    document = Barrier()
    latest: dict[str, Statement | None] = dict.fromkeys(("a", "b"))
    for me, own in steps:
        before = document
        document = step(document, me, own, NAMES)
        latest[me.lower()] = own
        if document.closed not in (None, before.closed):
            content = document.closed.content
            assert all(each is not None and each[:2] == (content, READY) for each in latest.values())
        assert step(document, me, own, NAMES) == document
