# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state machine of an event's record, what of it outlives the runner, and its drawing in the documentation."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from forewarn.events import Event
from forewarn.policy.decision import APPROVE as APPROVED_BY_POLICY
from forewarn.policy.decision import HOLD as HELD_BY_POLICY
from forewarn.policy.decision import Verdict
from forewarn.runner import event_record as states
from forewarn.runner.clocks import Stamp
from forewarn.runner.event_record import LISTED, OPEN, TRANSITIONS, EventRecord
from forewarn.runner.journal.writer import EventRow
from hypothesis import given
from hypothesis import strategies as st
from tools.fixtures.events import GUID, event

FIRST_SEEN = Stamp(1_800_000_000.25, 4711.5, "boot-1")
EVENT = event(
    GUID,
    event_type="Reboot",
    not_before=datetime(2027, 1, 15, 8, 15, tzinfo=timezone.utc),
    description="Virtual machine is to be restarted.",
    duration_in_seconds=-1,
)
INPUTS = sorted({what for row in TRANSITIONS.values() for what in row})
HOOK = {"run": ["/opt/drain"], "timeout_seconds": 60.0}


def record(state: str = states.SEEN) -> EventRecord:
    made = EventRecord(7, EVENT, FIRST_SEEN)
    made.state = state
    return made


# The machine


def test_every_state_is_reachable_and_can_end() -> None:
    reached, new = {states.SEEN}, {states.SEEN}
    while new:
        new = {after for state in new for after in TRANSITIONS[state].values()} - reached
        reached |= new
    assert reached == set(TRANSITIONS)
    for state in OPEN:
        assert {states.DONE, states.CANCELLED} <= set(TRANSITIONS[state].values()), state
    assert set(TRANSITIONS) - set(OPEN) == {states.DONE, states.CANCELLED}
    assert {**TRANSITIONS[states.DONE], **TRANSITIONS[states.CANCELLED]} == {}, "nothing moves what has ended"


def test_approval_requires_finished_or_no_preparation() -> None:
    assert {state for state, row in TRANSITIONS.items() if states.SENT in row} == {states.SEEN, states.PREPARED}


def test_started_event_is_neither_prepared_nor_approved() -> None:
    assert set(TRANSITIONS[states.STARTED]) == {states.LEAVE, states.FINISH, states.CANCEL}


def test_what_has_left_the_list_never_comes_back() -> None:
    for state in (states.RECOVERING, states.DONE, states.CANCELLED):
        assert not set(TRANSITIONS[state].values()) & set(LISTED)


def test_every_listed_event_can_start_and_leave() -> None:
    for state in LISTED:
        assert states.STARTED in (state, *TRANSITIONS[state].values())
        assert TRANSITIONS[state][states.LEAVE] == states.RECOVERING


@given(st.lists(st.sampled_from([*INPUTS, "nonsense"]), max_size=30))
def test_inputs_that_do_not_apply_change_nothing(inputs: list[str]) -> None:
    made = record()
    for what in inputs:
        before = made.state
        changed = made.step(what)
        assert made.state == TRANSITIONS[before].get(what, before)
        assert changed == (made.state != before)
        assert made.listed == (made.state in LISTED)


def test_how_it_closes_shows_how_it_ended() -> None:
    made = record(states.RECOVERING)
    for outcome, state in (
        (states.FINISHED, states.DONE),
        (states.UNSEEN, states.DONE),
        (states.CALLED_OFF, states.CANCELLED),
    ):
        made.outcome = outcome
        assert TRANSITIONS[states.RECOVERING][made.closing_input()] == state


# Keeping it

STAMPS = st.builds(Stamp, st.floats(0, 2e9), st.floats(0, 1e6), st.text(max_size=4))
TEXTS = st.none() | st.text(st.characters(codec="utf-8"), max_size=10)
EVENTS = st.builds(
    Event,
    event_id=st.text(st.characters(codec="utf-8"), min_size=1, max_size=8),
    event_type=TEXTS,
    resource_type=TEXTS,
    resources=st.lists(st.text(st.characters(codec="utf-8"), max_size=5), max_size=3).map(tuple),
    event_status=TEXTS,
    not_before=st.none()
    | st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)).map(lambda moment: moment.replace(tzinfo=timezone.utc)),
    description=TEXTS,
    event_source=TEXTS,
    duration_in_seconds=st.none() | st.integers(-1, 2**63 - 1),
    extra=st.just({}),
    problems=st.just(()),
)


@given(EVENTS, st.sampled_from(sorted(TRANSITIONS)), st.data())
def test_a_record_survives_being_written_down(event: Event, state: str, data: st.DataObject) -> None:
    made = EventRecord(7, event, data.draw(STAMPS), data.draw(st.booleans()))
    made.state = state
    made.outcome = data.draw(st.sampled_from([None, states.FINISHED, states.CALLED_OFF, states.UNSEEN]))
    made.last_seen = data.draw(STAMPS)
    made.started_at, made.gone_at, made.approved_at = (data.draw(st.none() | STAMPS) for _ in range(3))
    made.approvals, made.revision, made.content_approvals = (data.draw(st.integers(0, 9)) for _ in range(3))
    made.unanswered, made.affected, made.nameless, made.missing = (data.draw(st.booleans()) for _ in range(4))
    made.content = data.draw(st.text(max_size=4))
    made.simulation = data.draw(st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2))
    verdict = Verdict(
        "app", data.draw(st.sampled_from([APPROVED_BY_POLICY, HELD_BY_POLICY])), "drain", "", "app.yml:1:1"
    )
    made.plan.update([verdict._replace(prepare=(HOOK,), recover=(HOOK,))])
    made.notify = [HOOK]
    made.decision = {"output": "approve", "policy": "app", "rule": "drain", "reason": "so"}
    made.paused_seconds, made.down_seconds = 4.8, 92.0
    row = made.as_row()
    assert (row.id, row.key, row.state, row.open) == (7, event.key, state, state in OPEN)
    again = EventRecord.of(row._replace(data=json.loads(json.dumps(row.data))))
    assert again.as_row() == row
    assert again.event == event
    assert not again.confirmed, "that it is still listed has to be seen"


def test_a_time_with_a_fraction_survives_too() -> None:
    moment = EVENT.not_before
    assert moment is not None
    event = EVENT._replace(not_before=moment + timedelta(microseconds=125000))
    assert EventRecord.of(EventRecord(7, event, FIRST_SEEN).as_row()).event == event


def test_a_record_of_an_earlier_version_knows_less() -> None:
    row = record().as_row()
    later = {"content", "revision", "reminded", "unanswered", "affected", "nameless", "missing", "pretended"}
    assert later <= row.data.keys()
    kept = {name: value for name, value in row.data.items() if name not in later}
    assert EventRecord.of(row._replace(data={**kept, "approvals": 2})).as_row().data == {
        **row.data,
        "approvals": 2,
        "reminded": 2,
    }


@given(st.data())
def test_merged_records_lose_nothing(data: st.DataObject) -> None:
    """docs/runner-states.md: an approval of other content counts only for how the event may have ended."""
    one, other = record(), record()
    for each in (one, other):
        each.approvals = data.draw(st.integers(0, 2))
        each.content_approvals = data.draw(st.integers(0, each.approvals))
        each.unanswered, each.affected = data.draw(st.booleans()), data.draw(st.booleans())
        each.started_at, each.approved_at = (data.draw(st.none() | STAMPS) for _ in range(2))
        each.content = data.draw(st.sampled_from(["", "a", "b"]))
    before = EventRecord.of(one.as_row())
    one.merge(other)
    assert one.approvals == before.approvals + other.approvals
    assert one.unanswered is (before.unanswered or other.unanswered)
    assert one.affected is (before.affected or other.affected)
    assert one.started_at in (before.started_at, other.started_at)
    assert (one.started_at is None) is (before.started_at is None and other.started_at is None)
    assert one.content == (before.content or other.content)
    counted = [before.approved_at, *([other.approved_at] if other.content == one.content else [])]
    assert one.approved_at in counted
    assert (one.approved_at is None) is (counted == [None] * len(counted))
    others = other.content_approvals if other.content == one.content else 0
    assert one.content_approvals == before.content_approvals + others


def test_digest_of_content_stays_the_same() -> None:
    """With another one, each event would count as changed after an upgrade, and be prepared again."""
    assert EventRecord(1, EVENT, FIRST_SEEN).content == "4654d32ca4966e9858b52df59e908a0f"


DAMAGES: list[tuple[str, Any]] = [
    ("state", "sleeping"),
    ("first_seen", None),
    ("first_seen", [1.0, 2.0]),
    ("event", {}),
    ("event", {"EventId": "A", "NotBefore": "soon"}),
    ("plan", [{"phase": "prepare"}]),
    ("approvals", None),
    ("impact", None),
]


@pytest.mark.parametrize(("field", "value"), DAMAGES, ids=str)
def test_a_damaged_record_is_refused(field: str, value: object) -> None:
    row = record().as_row()
    with pytest.raises((KeyError, TypeError, ValueError)):
        EventRecord.of(EventRow(row.id, row.key, row.state, row.open, {**row.data, field: value}))


# The documentation


def test_the_drawing_is_the_table(repository: Path) -> None:
    text = (repository / "docs" / "runner-states.md").read_text()
    (drawing,) = re.findall(r"```mermaid\nstateDiagram-v2\n(.*?)```", text, re.DOTALL)
    drawn = set()
    for before, after, inputs in re.findall(r"^ *(\w+) --> (\w+) *: *(.+)$", drawing, re.MULTILINE):
        drawn |= {(before, what.strip(), after) for what in inputs.split(",")}
    assert drawn == {(before, what, after) for before, row in TRANSITIONS.items() for what, after in row.items()}
    assert re.findall(r"\[\*\] --> (\w+)", drawing) == [states.SEEN]
    assert set(re.findall(r"(\w+) --> \[\*\]", drawing)) == set(TRANSITIONS) - set(OPEN)


def test_every_state_and_every_input_is_explained(repository: Path) -> None:
    text = (repository / "docs" / "runner-states.md").read_text()
    explained = set(re.findall(r"^\| `(\w+)` \| \S", text, re.MULTILINE))
    assert set(TRANSITIONS) | set(INPUTS) <= explained
