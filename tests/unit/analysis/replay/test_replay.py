# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""RecordedState documents through policies: decisions then and now, and when this VM would have approved."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from forewarn.analysis.replay.recordings import RecordedDecision, RecordedDocument
from forewarn.analysis.replay.replay import APPROVED, HELD, NOT_SENT, STARTED, Replay, ReplayedEvent
from forewarn.analysis.replay.statistics import DecisionChange, Spans, Statistics
from forewarn.events import Document, Event, Vm, parse_document
from forewarn.policy.approval import eligibility
from forewarn.policy.decision import APPROVE, Facts
from forewarn.policy.engine import PolicySet
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.fixtures import events
from tools.fixtures.events import NOW
from tools.fixtures.policy_files import HEAD, loaded
from tools.suite.sizes import examples

BRIEF = 'event.EventType == "Freeze" && event.DurationInSeconds < 9'
LATE = 'notice < duration("5m")'
NO_EVENTS = Document(9)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("policies")


def policies(directory: Path, *conditions: str, more: str = "") -> PolicySet:
    """Return a policy that approves where one of the conditions holds."""
    rules = "".join(
        f"    - id: r{number}\n      condition: {json.dumps(condition)}\n      output: approve\n{more}"
        for number, condition in enumerate(conditions)
    )
    return PolicySet(loaded(directory, HEAD + rules))


def event(event_id: str = "E1", **values: Any) -> Event:
    return events.event(event_id, **values)


def record(seconds: float | None, *events: Event, **values: Any) -> RecordedDocument:
    at = None if seconds is None else NOW + timedelta(seconds=seconds)
    return RecordedDocument(at, Document(1, events), **values)


def past(seconds: float, output: str, rule: str | None = "r0", status: str = "Scheduled") -> RecordedDecision:
    return RecordedDecision(NOW + timedelta(seconds=seconds), "e1", status, output, "p", rule, "", "as it was")


def replayed(
    rules: PolicySet, records: Sequence[RecordedDocument], vm: Vm | str = "web_0", until: float = 0
) -> list[ReplayedEvent]:
    replay = Replay(rules, {}, Vm(vm) if isinstance(vm, str) else vm)
    found = [outcome for entry in records for outcome in replay.feed(entry)]
    return [*found, *replay.end(NOW + timedelta(seconds=until) if until else None)]


def test_event_is_reported_when_it_leaves_the_list(directory: Path) -> None:
    replay = Replay(policies(directory, BRIEF), {}, Vm("web_0"))
    assert list(replay.feed(record(0, event()))) == []
    (outcome,) = replay.feed(record(20))
    assert outcome.now.outcome == APPROVED
    assert (outcome.first_seen, outcome.last_seen) == (NOW, NOW)
    assert (outcome.latency_seconds(outcome.now), outcome.ahead_seconds(outcome.now)) == (0.0, 900.0)
    assert not outcome.then.known
    assert outcome.changed is None
    assert list(replay.end()) == []


def test_event_listed_at_the_end_is_reported(directory: Path) -> None:
    (outcome,) = replayed(policies(directory, BRIEF), [record(0, event(duration_in_seconds=30))])
    assert outcome.now.outcome == HELD
    assert [decided.output for decided in outcome.now.decisions] == ["hold"]


def test_unreadable_entry_may_be_any_event(directory: Path) -> None:
    replay = Replay(policies(directory, BRIEF), {}, Vm("web_0"))
    list(replay.feed(record(0, event())))
    assert list(replay.feed(RecordedDocument(NOW, parse_document('{"DocumentIncarnation": 2, "Events": [1]}')))) == []
    assert len(list(replay.end())) == 1


def test_a_follower_takes_over_half_a_minute_later(directory: Path) -> None:
    rules = policies(directory, BRIEF)
    for seconds, outcome in ((29, NOT_SENT), (31, APPROVED)):
        (one,) = replayed(rules, [record(0, event()), record(seconds)], "web_1")
        assert one.now.outcome == outcome
    assert one.latency_seconds(one.now) == 30.0


def test_without_a_name_nothing_is_sent(directory: Path) -> None:
    (outcome,) = replayed(policies(directory, BRIEF), [record(0, event())], Vm())
    assert outcome.now.outcome == NOT_SENT
    statistics = Statistics()
    statistics.add(outcome)
    assert statistics.nameless == 1


def test_a_policy_over_the_time_decides_between_documents(directory: Path) -> None:
    (outcome,) = replayed(policies(directory, LATE), [record(0, event())], until=3600)
    assert [decided.output for decided in outcome.now.decisions] == ["hold", "approve"]
    assert outcome.latency_seconds(outcome.now) == pytest.approx(600, abs=1)
    assert outcome.ahead_seconds(outcome.now) == pytest.approx(300, abs=1)


def test_time_does_not_pass_beyond_the_recording(directory: Path) -> None:
    (outcome,) = replayed(policies(directory, LATE), [record(0, event())])
    assert outcome.now.outcome == HELD


def test_short_interval_in_a_policy_is_not_missed(directory: Path) -> None:
    rules = policies(directory, 'notice < duration("307s") && notice > duration("304s")')
    (outcome,) = replayed(rules, [record(0, event())], until=3600)
    assert outcome.latency_seconds(outcome.now) == pytest.approx(900 - 307, abs=1.1)
    assert [decided.output for decided in outcome.now.decisions] == ["hold", "approve", "hold"]


def test_hour_of_the_day_changes_within_a_second(directory: Path) -> None:
    rules = policies(directory, "now.getHours() >= 13")
    (outcome,) = replayed(rules, [record(0.5, event(not_before=NOW + timedelta(hours=2)))], until=7200)
    assert outcome.latency_seconds(outcome.now) == pytest.approx(3599.5, abs=1)


def test_age_counts_from_the_first_document(directory: Path) -> None:
    rules = policies(directory, 'age >= duration("2m")')
    other = event("E2", event_type="Reboot")
    (_other, outcome) = replayed(
        rules, [record(0, event()), record(60, event(), other), record(100, event())], until=3600
    )
    assert outcome.latency_seconds(outcome.now) == pytest.approx(120, abs=1)


def test_recording_without_times_has_no_latency(directory: Path) -> None:
    (outcome,) = replayed(policies(directory, BRIEF), [record(None, event()), record(None)])
    assert outcome.now.outcome == APPROVED
    assert (outcome.latency_seconds(outcome.now), outcome.ahead_seconds(outcome.now), outcome.now.approved_at) == (
        None,
        None,
        None,
    )


def test_event_first_seen_started_is_not_decided(directory: Path) -> None:
    (outcome,) = replayed(policies(directory, BRIEF), [record(0, event(event_status="Started", not_before=None))])
    assert outcome.now.outcome == STARTED


def test_two_vms_are_apart(directory: Path) -> None:
    records = [record(0, event(), vm=Vm("web_0")), record(0, vm=Vm("WEB_1")), record(5, event(), vm=Vm("web_1"))]
    assert [outcome.now.outcome for outcome in replayed(policies(directory, BRIEF), records)] == [APPROVED, NOT_SENT]


def test_facts_of_a_record_reach_the_rules(directory: Path) -> None:
    rules = policies(directory, 'vm.tags["role"] == "web"')
    records = [record(0, event(), vm=Vm("web_0", tags={"role": "web"}))]
    assert replayed(rules, records)[0].now.outcome == APPROVED
    assert replayed(rules, [record(0, event())])[0].now.outcome == HELD


@pytest.mark.parametrize(
    ("then", "changed"),
    [
        ([past(0, "approve")], False),
        ([past(0.01, "approve", "other")], False),
        ([past(0, "hold", None)], True),
        ([past(0, "approve"), past(30, "hold")], True),
        ([past(0, "approve"), past(30, "hold", "under-way", "Started")], False),
        ([], None),
    ],
)
def test_changed_means_another_output_before_it_started(
    directory: Path, then: list[RecordedDecision], changed: bool | None
) -> None:
    (outcome,) = replayed(policies(directory, BRIEF), [record(0, event(), decisions=tuple(then)), record(20)])
    assert outcome.changed is changed


def test_equal_outputs_over_a_minute_apart_differ(directory: Path) -> None:
    rules = policies(directory, LATE)
    for seconds, changed in ((601, False), (630, False), (700, True), (400, True)):
        then = (past(0, "hold", None), past(seconds, "approve"))
        (outcome,) = replayed(rules, [record(0, event(), decisions=then)], until=3600)
        assert outcome.changed is changed, seconds


def test_sent_approval_is_the_outcome_then(directory: Path) -> None:
    approved = (("e1", NOW + timedelta(seconds=3)), ("e1", NOW + timedelta(seconds=63)))
    (outcome,) = replayed(
        policies(directory, "false"), [record(0, event(), decisions=(past(0, "approve"),), approved=approved)]
    )
    assert (outcome.then.outcome, outcome.now.outcome, outcome.changed) == (APPROVED, HELD, True)
    assert (outcome.latency_seconds(outcome.then), outcome.ahead_seconds(outcome.then)) == (3.0, 897.0)


def test_the_statistics_count_and_group(directory: Path) -> None:
    statistics = Statistics()
    for number in range(3):
        then = (past(0, "hold", None if number else "r9"),)
        for outcome in replayed(policies(directory, BRIEF), [record(0, event(), decisions=then), record(1)]):
            statistics.add(outcome)
    assert (statistics.events, statistics.compared, statistics.changed) == (3, 3, 3)
    assert statistics.changes == {
        DecisionChange("hold", "p", "approve", "p/r0"): 2,
        DecisionChange("hold", "p/r9", "approve", "p/r0"): 1,
    }
    assert statistics.now.as_dict()["latency_seconds"] == {"shortest": 0.0, "median": 0.0, "longest": 0.0}
    assert statistics.as_dict()["then"]["events"]["held"] == 3


def test_quantiles() -> None:
    spans = Spans()
    assert spans.quantile(0.5) is None
    for seconds in (5.0, 1.0, 3.0, 100.0, None):
        spans.add(seconds)
    assert [spans.quantile(share) for share in (0, 0.5, 0.75, 1)] == [1.0, 3.0, 5.0, 100.0]


def test_times_at_the_end_of_the_calendar_end(directory: Path) -> None:
    rules = policies(directory, LATE, 'age > duration("1000000h")')
    last = datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=timezone.utc)
    (outcome,) = replayed(rules, [record(0, event(not_before=last))], until=200 * 365 * 86400)
    assert outcome.now.outcome == APPROVED


moments_ = st.none() | st.integers(-100, 2000)
events_ = st.builds(
    event,
    st.sampled_from(["E1", "E2"]),
    event_status=st.sampled_from(["Scheduled", "Started", "Odd"]),
    not_before=st.none() | st.integers(-900, 900).map(lambda seconds: NOW + timedelta(seconds=seconds)),
    resources=st.lists(st.sampled_from(["web_0", "web_1"]), unique=True).map(tuple),
    problems=st.sampled_from([(), ("odd",)]),
)
records_ = st.lists(
    st.builds(
        lambda at, events, vm, decisions: record(at, *events, vm=vm, decisions=tuple(decisions)),
        moments_,
        st.lists(events_, max_size=2, unique_by=lambda one: one.key),
        st.sampled_from([None, Vm("web_1"), Vm()]),
        st.lists(st.builds(past, st.integers(0, 900), st.sampled_from(["approve", "hold"])), max_size=2),
    ),
    max_size=6,
)


@settings(max_examples=examples(60))
@given(records=records_)
def test_each_listing_is_reported_at_most_once(directory: Path, records: list[RecordedDocument]) -> None:
    statistics = Statistics()
    for outcome in replayed(policies(directory, LATE, 'age > duration("1m")'), records, until=3000):
        statistics.add(outcome)
        assert outcome.now
        if outcome.now.approved:
            assert "approve" in [decided.output for decided in outcome.now.decisions]
    listings = sum(len(entry.document.events) for entry in records if entry.document is not None)
    assert statistics.events <= listings
    assert (statistics.events > 0) == (listings > 0)
    json.dumps(statistics.as_dict())


# Against a runner that asks each second

CONDITIONS = st.sampled_from(
    [
        "notice < duration('{a}s')",
        "notice > duration('{a}s') && notice < duration('{b}s')",
        "age >= duration('{a}s')",
        "age > duration('{a}s') && notice > duration('{b}s')",
        "now.getMinutes() == 7",
        "event.NotBefore - now < duration('{a}s') || age < duration('{b}s')",
        "event.DurationInSeconds < 9",
        "int(event.DurationInSeconds) / (event.DurationInSeconds - 5) == 1 && age > duration('{a}s')",
    ]
)


def each_second(rules: PolicySet, records: Sequence[RecordedDocument], vm: Vm, until: datetime) -> datetime | None:
    """Return when the first event would be approved, by asking each second."""
    approvable: datetime | None = None
    for entry, end in zip(records, [*(entry.at for entry in records[1:]), until], strict=True):
        assert entry.at is not None
        assert entry.document is not None
        assert end is not None
        moment = entry.at
        while moment < end and entry.document.events:
            facts = Facts(moment, vm, {"e1": NOW})
            decision = rules.decide(entry.document, facts)[0]
            approvable = (approvable or moment) if decision.output == APPROVE else None
            waited = 0.0 if approvable is None else (moment - approvable).total_seconds()
            if eligibility(decision, vm.name, moment, waited).send:
                return moment
            moment += timedelta(seconds=1)
    return None


@settings(max_examples=examples(30))
@given(
    conditions=st.lists(CONDITIONS, min_size=1, max_size=2),
    a=st.integers(0, 1000),
    b=st.integers(0, 1000),
    seconds=st.lists(st.integers(1, 900), max_size=2, unique=True).map(sorted),
    name=st.sampled_from(["web_0", "web_1"]),
    duration=st.sampled_from([None, -1, 5, 30]),
)
def test_latency_matches_a_runner_polling_each_second(
    directory: Path, conditions: list[str], a: int, b: int, seconds: list[int], name: str, duration: int | None
) -> None:
    rules = policies(directory, *(condition.format(a=a, b=b) for condition in conditions))
    listed = event(duration_in_seconds=duration)
    records = [record(at, listed, *([event("E2")] if number % 2 else [])) for number, at in enumerate([0, *seconds])]
    until = NOW + timedelta(seconds=1000)
    outcome = next(outcome for outcome in replayed(rules, records, name, until=1000) if outcome.event.key == "e1")
    expected = each_second(rules, records, Vm(name), until)
    if expected is None or outcome.now.approved_at is None:
        # At the very end of a span a second may make the difference.
        only = expected or outcome.now.approved_at
        assert only is None or min(abs((only - edge).total_seconds()) for edge in _edges(records, until)) <= 2
    else:
        assert abs((outcome.now.approved_at - expected).total_seconds()) <= 2


def _edges(records: Sequence[RecordedDocument], until: datetime) -> list[datetime]:
    return [until, NOW + timedelta(minutes=15), *(entry.at for entry in records if entry.at is not None)]
