# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runner's cycle against a service, a policy and a clock made of Python."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

import pytest
from forewarn.events import Document, Event, Vm
from forewarn.imds.client import Client
from forewarn.imds.errors import NOT_SENT, TIMEOUT, PassingFault
from forewarn.imds.retry import JITTER, LONGEST_DELAY_SECONDS
from forewarn.policy.approval import witness_delay
from forewarn.policy.decision import APPROVE, HOLD
from forewarn.runner.poller import IDENTITY_TIMEOUT_SECONDS, identity_client
from forewarn.runner.tracker import EMPTY_SECONDS, REPEAT_SECONDS
from tools.fixtures.events import NOW, event
from tools.fixtures.loop_bench import Bench, http_fault, listing

# Polling


def test_failing_service_is_polled_less_often(bench: Bench) -> None:
    bench.fault = http_fault(410)
    bench.then(180, fault=None)
    bench.run(200)
    during = [poll for poll in bench.polls if poll < 180]
    assert len(during) < 50
    assert min(poll for poll in bench.polls if poll >= 180) <= 186
    assert [line["line"] for line in bench.lines()][:1] == ["poll-failed"]
    assert len(bench.lines("poll-failed")) == 1
    (recovered,) = bench.lines("poll-recovered")
    assert recovered["failures"] == len(during)


def test_a_fault_is_logged_when_it_changes(bench: Bench) -> None:
    bench.fault = http_fault(410)
    bench.then(20, fault=http_fault(503))
    bench.then(40, fault=PassingFault("took longer than 10 s", kind=TIMEOUT))
    bench.run(60)
    assert [(line["kind"], line.get("status")) for line in bench.lines("poll-failed")] == [
        ("http", 410),
        ("http", 503),
        ("timeout", None),
    ]


@pytest.mark.parametrize("status", [400, 403])
def test_lasting_fault_is_retried_every_five_seconds(bench: Bench, status: int) -> None:
    bench.fault = http_fault(status)
    bench.then(200, fault=None)
    bench.run(300)
    during = [poll for poll in bench.polls if poll < 200]
    assert 30 <= len(during) <= 60
    assert max(b - a for a, b in pairwise(during)) <= 6
    (line,) = bench.lines("poll-failed")
    assert (line["level"], line["lasting"], line["hint"]) == ("error", True, "Do something.")
    assert bench.lines("poll-recovered"), "an operator who repairs it need not restart the runner"


# Identity


def test_identity_is_requested_until_known(bench: Bench) -> None:
    bench.instance_answer = http_fault(500)
    bench.document = listing(event())
    bench.then(20, instance_answer=Vm(name="WEB_0", zone="2"))
    bench.run(40)
    assert len(bench.polls) > 35
    assert bench.eligibilities() == ["not-ours", "approve"]
    assert len(bench.posts) == 1
    assert 20 <= bench.posts[0][0] <= 32
    assert len([asked for asked in bench.identity_requests if asked > 32]) == 0
    (known,) = bench.lines("identity")
    assert known["vm"] == "WEB_0"


def test_without_identity_a_witness_approves(bench: Bench) -> None:
    bench.instance_answer = http_fault(500)
    bench.approver = "witness"
    bench.document = listing(event())
    bench.run(62)
    assert len(bench.posts) == 1
    sent, _ids = bench.posts[0]
    delay = witness_delay(event().key, None)
    assert delay <= sent <= delay + 3, "its turn comes within a minute, and a poll"


def test_identity_request_is_brief_and_in_the_budget() -> None:
    client = Client("http://127.0.0.1:9/vm/web_0")
    asking = identity_client(client)
    assert asking.endpoint == client.endpoint
    assert asking.limiter is client.limiter
    assert asking._timeout() == IDENTITY_TIMEOUT_SECONDS


def test_given_name_overrides_the_metadata(bench: Bench) -> None:
    bench.instance_answer = Vm(name="other", zone="2")
    bench.document = listing(event())
    bench.run(3, vm_name="web_0")
    assert bench.facts[-1].vm == Vm(name="web_0", zone="2")
    assert len(bench.posts) == 1


def test_instance_metadata_without_a_name_is_reported(bench: Bench) -> None:
    bench.instance_answer = Vm(zone="2")
    bench.document = listing(event())
    bench.run(10)
    assert not bench.posts
    (line,) = bench.lines("identity")
    assert line["level"] == "error"
    assert "--vm-name" in line["hint"]


# Deciding and approving


def test_events_are_approved_in_one_request_se26(bench: Bench) -> None:
    bench.rule = lambda listed, facts: HOLD if listed.event_id == "B" else APPROVE
    bench.document = listing(event("A"), event("B"), event("C"))
    bench.run(10)
    assert [ids for _, ids in bench.posts] == [["A", "C"]]
    assert len(bench.facts) == 1, "an unchanged document is not decided again"
    assert bench.eligibilities() == ["approve", "refused-by-policy", "approve"]
    (approved,) = bench.lines("approved")
    assert approved["event_ids"] == ["A", "C"]


def test_approval_is_repeated_with_growing_pauses(bench: Bench) -> None:
    bench.document = listing(event(not_before=NOW + timedelta(hours=1)))
    bench.run(REPEAT_SECONDS * 8)
    times = [sent for sent, _ in bench.posts]
    assert times == pytest.approx([0, REPEAT_SECONDS, 3 * REPEAT_SECONDS, 7 * REPEAT_SECONDS], abs=4)
    assert [line.get("times") for line in bench.lines("approved")] == [None, 2, 3, 4]
    assert bench.eligibilities() == ["approve"]


def test_started_or_late_event_is_not_approved(bench: Bench) -> None:
    bench.document = listing(event("A", event_status="Started", not_before=None), event("B", not_before=NOW))
    bench.run(5)
    assert not bench.posts
    assert bench.eligibilities() == ["started", "no-time-left"]


def test_event_in_doubt_is_never_approved(bench: Bench) -> None:
    bench.approver = "witness"
    bench.document = listing(event("A", problems=("NotBefore 'soon' is not a time",)), event("B"))
    bench.run(5)
    assert [ids for _, ids in bench.posts] == [["B"]]
    assert bench.lines("decision")[0]["level"] == "warning"


def test_nothing_is_sent_during_a_poll_fault(bench: Bench) -> None:
    """The decision would rest on a stale document: the event may be gone, or another's approval may have started it."""
    bench.document = listing(event())
    bench.instance_answer = Vm(name="web_1")  # takes over after 30 s
    bench.then(25, fault=http_fault(410))
    bench.then(50, fault=None, document=Document(3))
    bench.run(80)
    assert not bench.posts


def test_next_vm_replaces_a_silent_leader_se25(bench: Bench) -> None:
    bench.instance_answer = Vm(name="web_1")
    bench.document = listing(event())
    bench.run(40)
    ((sent, _),) = bench.posts
    assert 30 <= sent <= 31.1
    assert bench.eligibilities() == ["not-the-leader", "approve"]


def test_take_over_waits_again_after_a_hold(bench: Bench) -> None:
    bench.instance_answer = Vm(name="web_1")
    bench.time_dependent = True
    bench.rule = lambda listed, facts: HOLD if 20 <= bench.elapsed < 22 else APPROVE
    bench.document = listing(event())
    bench.run(60)
    ((sent, _),) = bench.posts
    assert 52 <= sent <= 53.1


def test_a_clock_that_is_set_shortens_no_wait(bench: Bench) -> None:
    """Take-over and ``age`` are measured on the monotonic clock: NTP steps the wall clock of a fresh VM by hours."""
    bench.instance_answer = Vm(name="web_1")
    bench.time_dependent = True
    bench.document = listing(event(not_before=NOW + timedelta(days=1)))
    bench.then(5.5, clock_error=timedelta(hours=1))
    bench.run(10)
    assert not bench.posts
    last = bench.facts[-1]
    assert last.now - last.first_seen["a"] == pytest.approx(timedelta(seconds=9), abs=timedelta(seconds=1))


def test_time_dependent_policy_is_evaluated_every_tick(bench: Bench) -> None:
    bench.time_dependent = True
    bench.rule = lambda listed, facts: APPROVE if facts.now - facts.first_seen["a"] >= timedelta(seconds=5) else HOLD
    bench.document = listing(event())
    bench.run(10)
    ((sent, _),) = bench.posts
    assert 5 <= sent <= 6.1
    assert bench.eligibilities() == ["refused-by-policy", "approve"]


def test_first_seen_lasts_while_the_event_is_listed(bench: Bench) -> None:
    bench.document = listing(event())
    bench.then(10.5, document=listing(event(), event("B"), incarnation=3))
    bench.then(20.5, document=listing(event("B"), incarnation=4))
    bench.then(30.5, document=listing(event(), event("B"), incarnation=5))
    bench.run(33)
    seen = [
        {key: (facts.now - moment).total_seconds() for key, moment in facts.first_seen.items()} for facts in bench.facts
    ]
    assert seen == [
        {"a": 0.0},
        {"a": pytest.approx(11, abs=1.0), "b": 0.0},
        {"b": pytest.approx(10, abs=1.0)},
        {"b": pytest.approx(20, abs=1.0), "a": 0.0},
    ]


def test_content_counts_not_the_incarnation_se05(bench: Bench) -> None:
    """A day of silence resets the incarnation, so that a new document may carry the number of the one before."""
    bench.document = listing(event("A"))
    bench.then(5.5, document=listing(event("B")))
    bench.run(10)
    assert [ids for _, ids in bench.posts] == [["A"], ["B"]]
    assert len(bench.lines("document")) == 2


def test_dry_run_reports_an_approval_once(bench: Bench) -> None:
    bench.document = listing(event("A"), event("B"))
    bench.run(REPEAT_SECONDS * 3, dry_run=True)
    assert not bench.posts
    (line,) = bench.lines("would-approve")
    assert line["event_ids"] == ["A", "B"]


def test_approval_latency_is_measured_once_per_event(bench: Bench) -> None:
    bench.document = listing(event("A"))
    bench.then(20.5, document=listing(event("A"), event("B"), incarnation=3))
    bench.run(REPEAT_SECONDS * 3)
    assert len(bench.posts) > 2  # those that stay listed are approved again
    written = dict(line.rsplit(" ", 1) for line in bench.metrics.render().splitlines())
    assert written["forewarn_event_to_approval_seconds_count"] == "2"
    assert float(written["forewarn_event_to_approval_seconds_sum"]) < 5


# Failed approvals


def test_failed_approval_is_retried_before_not_before(bench: Bench) -> None:
    bench.document = listing(event(event_type="Preempt", not_before=NOW + timedelta(seconds=30)))
    bench.approval_fault = lambda ids: http_fault(503)
    bench.run(60)
    times = [sent for sent, _ in bench.posts]
    pauses = [after - before for before, after in zip(times, times[1:])]
    shortest = 1 - JITTER  # of a second, and of five in the end
    assert len(times) >= 4
    assert all(pause >= shortest * min(2**number, LONGEST_DELAY_SECONDS) for number, pause in enumerate(pauses))
    assert times[-1] < 30
    assert len(bench.lines("approval-failed")) == 1
    assert bench.eligibilities() == ["approve", "no-time-left"]


@pytest.mark.parametrize(("kind", "counted"), [(NOT_SENT, "not-sent"), ("timeout", "failed"), ("http", "failed")])
def test_unsent_approval_is_not_counted_as_failed(bench: Bench, kind: str, counted: str) -> None:
    bench.document = listing(event())
    bench.approval_fault = lambda ids: PassingFault("no", kind=kind) if bench.elapsed < 5 else None
    bench.run(30)
    written = dict(line.rsplit(" ", 1) for line in bench.metrics.render().splitlines())
    counts = {name: int(written[f'forewarn_approvals_total{{result="{name}"}}']) for name in ("not-sent", "failed")}
    assert counts[counted] >= 1
    assert sum(counts.values()) == counts[counted]
    assert written['forewarn_approvals_total{result="taken"}'] == "1"


def test_retry_requires_an_approval_that_still_stands(bench: Bench) -> None:
    bench.document = listing(event())
    bench.approval_fault = lambda ids: http_fault(503)
    bench.then(0.5, document=listing(event()._replace(duration_in_seconds=-1), incarnation=3))
    bench.rule = lambda listed, facts: HOLD if listed.duration_in_seconds == -1 else APPROVE
    bench.run(10)
    assert len(bench.posts) == 1


def test_refused_approval_waits_for_another_document(bench: Bench) -> None:
    bench.document = listing(event())
    bench.approval_fault = lambda ids: http_fault(400) if bench.document.incarnation == 2 else None
    bench.then(200.5, document=listing(event(), incarnation=3))
    bench.run(210)
    assert [round(sent) for sent, _ in bench.posts] == [0, 201]
    (failed,) = bench.lines("approval-failed")
    assert (failed["level"], failed["lasting"]) == ("error", True)


def test_a_forbidden_approval_is_tried_again(bench: Bench) -> None:
    bench.document = listing(event())
    bench.approval_fault = lambda ids: http_fault(403) if bench.elapsed < 100 else None
    bench.run(200)
    assert 15 <= len(bench.posts) <= 30
    assert bench.lines("approved")


def test_refused_event_does_not_block_others(bench: Bench) -> None:
    bench.document = listing(event("A"), event("B"), event("C"))
    bench.approval_fault = lambda ids: http_fault(400) if "B" in ids else None
    bench.run(30)
    assert [ids for _, ids in bench.posts] == [["A", "B", "C"], ["A"], ["B"], ["C"]]
    assert [line["event_ids"] for line in bench.lines("approved")] == [["A"], ["C"]]


def test_passing_fault_requires_a_document_before_approving(bench: Bench) -> None:
    bench.document = listing(event("A"), event("B"))
    bench.approval_fault = lambda ids: http_fault(400 if len(ids) > 1 else 503)
    bench.run(0.5)
    assert [ids for _, ids in bench.posts] == [["A", "B"], ["A"]]


def test_the_budget_outlasts_many_single_approvals(bench: Bench) -> None:
    """1 a second on average, 5 in a burst, and the document is read anew before what has to wait."""
    many = [event(f"E{number}") for number in range(12)]
    bench.document = listing(*many)
    bench.approval_fault = lambda ids: http_fault(400) if len(ids) > 1 else None
    bench.run(50)
    assert sorted(ids[0] for _, ids in bench.posts[1:]) == sorted(each.event_id for each in many)
    requests = sorted(bench.polls + bench.identity_requests + [sent for sent, _ in bench.posts])
    for first, moment in enumerate(requests):
        within = [later for later in requests[first:] if later < moment + 1 - 1e-6]
        assert len(within) <= 6, "5 in a burst, and what is refilled meanwhile"
    assert len(requests) <= 5 + 50


# Events that leave


@pytest.mark.parametrize(
    ("last", "outcome"), [(event(), "cancelled"), (event(event_status="Started", not_before=None), "finished")]
)
def test_gone_event_was_finished_or_cancelled_se20_se21(bench: Bench, last: Event, outcome: str) -> None:
    bench.rule = lambda listed, facts: HOLD  # what was approved may have started in between
    bench.document = listing(last)
    bench.then(10.5, document=Document(3))
    bench.run(15)
    (gone,) = bench.lines("event-gone")
    assert (gone["event_id"], gone["outcome"]) == ("A", outcome)
    assert gone["listed_seconds"] == pytest.approx(11, abs=0.3)


def test_an_empty_answer_lists_nothing(bench: Bench) -> None:
    bench.document = Document(None)
    bench.run(5)
    assert [line["line"] for line in bench.lines()] == ["identity", "document", "stopped"]


@pytest.mark.parametrize(("lasts", "outcomes"), [(EMPTY_SECONDS - 2, []), (EMPTY_SECONDS + 2, ["unseen"])])
def test_empty_answer_must_last_to_end_an_event(bench: Bench, lasts: float, outcomes: list[str]) -> None:
    bench.document = listing(event())
    bench.then(5.5, document=Document(None))
    bench.then(5.5 + EMPTY_SECONDS - 2, document=listing(event()))
    bench.then(80.5, document=Document(None))
    bench.run(81.5 + lasts)
    assert [line["outcome"] for line in bench.lines("event-gone")] == outcomes


def test_document_after_an_empty_answer_ends_the_event(bench: Bench) -> None:
    bench.rule = lambda listed, facts: HOLD
    bench.document = listing(event())
    bench.then(5.5, document=Document(None))
    bench.then(8.5, document=Document(3))
    bench.run(10)
    (gone,) = bench.lines("event-gone")
    assert gone["outcome"] == "cancelled"
