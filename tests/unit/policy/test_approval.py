# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from datetime import timedelta
from functools import partial
from random import Random
from typing import Any

import pytest
from forewarn.events import Event
from forewarn.policy import approval
from forewarn.policy.approval import TAKE_OVER_SECONDS, Eligibility, eligibility, witness_delay
from forewarn.policy.decision import APPROVE, HOLD, Decision
from hypothesis import given
from hypothesis import strategies as st
from tools.fixtures import events
from tools.fixtures.events import NOW

event = partial(events.event, resources=("web_0", "web_1", "web_2"))


def decision(listed: Event | None = None, output: str = APPROVE, **values: Any) -> Decision:
    return Decision(listed or event(), output, "web-tier", "brief", "a brief freeze", **values)


def test_the_leader_approves_at_once_se32() -> None:
    assert eligibility(decision(), "web_0", NOW) == Eligibility(approval.SEND, "a brief freeze")


def test_names_are_compared_in_any_case_se14() -> None:
    assert eligibility(decision(), "WEB_0", NOW).send
    assert eligibility(decision(), "web_", NOW).code == approval.NOT_OURS


def test_a_refusal_gives_the_policy_s_reason() -> None:
    refused = eligibility(decision(output=HOLD), "web_0", NOW)
    assert (refused.code, refused.reason) == (approval.REFUSED, "a brief freeze")


@pytest.mark.parametrize("output", [APPROVE, HOLD])
def test_a_started_event_is_past_approval(output: str) -> None:
    assert eligibility(decision(event(event_status="Started"), output), "web_0", NOW).code == approval.STARTED


@pytest.mark.parametrize("approver", ["leader", "any", "witness"])
def test_an_event_in_doubt_is_never_approved(approver: str) -> None:
    doubtful = event(problems=("NotBefore 'soon' is not a time",))
    result = eligibility(decision(doubtful, approver=approver), "web_0", NOW, 1e6)
    assert result.code == approval.REFUSED
    assert "'soon'" in result.reason


def test_unaffected_vm_approves_only_as_a_witness() -> None:
    assert eligibility(decision(), "db_0", NOW, 1e6).code == approval.NOT_OURS
    assert eligibility(decision(approver="any"), "db_0", NOW, 1e6).code == approval.NOT_OURS
    assert eligibility(decision(approver="witness"), "db_0", NOW, 60.0).send


def test_unnamed_vm_approves_only_as_a_witness() -> None:
    unknown = eligibility(decision(approver="any"), None, NOW, 1e6)
    assert unknown.code == approval.NOT_OURS
    assert "not known" in unknown.reason
    assert eligibility(decision(approver="witness"), None, NOW, 60.0).send


def test_nothing_is_approved_after_not_before_se20() -> None:
    assert eligibility(decision(event(not_before=NOW)), "web_0", NOW).code == approval.NO_TIME
    assert eligibility(decision(event(not_before=NOW + timedelta(microseconds=1))), "web_0", NOW).send


def test_an_event_without_not_before_can_be_approved() -> None:
    assert eligibility(decision(event(not_before=None)), "web_0", NOW).send


@pytest.mark.parametrize(("name", "place"), [("web_1", 1), ("web_2", 2)])
def test_next_vms_take_over_in_turn_se25(name: str, place: int) -> None:
    waiting = eligibility(decision(), name, NOW, 10.0)
    assert waiting.code == approval.NOT_LEADER
    assert waiting.wait_seconds == pytest.approx(place * TAKE_OVER_SECONDS - 10)
    assert "web_0" in waiting.reason
    assert not eligibility(decision(), name, NOW, place * TAKE_OVER_SECONDS - 0.001).send
    assert eligibility(decision(), name, NOW, place * TAKE_OVER_SECONDS).send


def test_nobody_is_told_to_wait_for_zero_seconds() -> None:
    assert "takes over in 1 s" in eligibility(decision(), "web_1", NOW, TAKE_OVER_SECONDS - 0.2).reason


def test_with_approver_any_nobody_waits_for_the_leader() -> None:
    assert eligibility(decision(approver="any"), "web_2", NOW).send


PREPARES = ({"run": ["/usr/local/bin/drain"]},)


def test_where_a_match_prepares_a_group_is_held() -> None:
    assert eligibility(decision(prepare=PREPARES), "web_0", NOW).code == approval.GROUP
    assert eligibility(decision(prepare=PREPARES, group="independent"), "web_0", NOW).send
    assert eligibility(decision(event(resources=("web_0",)), prepare=PREPARES), "web_0", NOW).send


_VM = st.sampled_from([None, "web_0", "web_1", "web_2", "db_0"])


@given(
    output=st.sampled_from([APPROVE, HOLD]),
    status=st.sampled_from(["Scheduled", "Started"]),
    problems=st.sampled_from([(), ("in doubt",)]),
    approver=st.sampled_from(["leader", "any", "witness"]),
    left=st.floats(-1e5, 1e5),
    vm=_VM,
    seen_for=st.floats(0, 1e4),
)
def test_sent_approval_is_decided_and_in_time(
    output: str, status: str, problems: tuple[str, ...], approver: str, left: float, vm: str | None, seen_for: float
) -> None:
    listed = event(event_status=status, problems=problems, not_before=NOW + timedelta(seconds=left))
    result = eligibility(decision(listed, output, approver=approver), vm, NOW, seen_for)
    if result.send:
        assert output == APPROVE
        assert status == "Scheduled"
        assert not problems
        assert listed.not_before is not None
        assert listed.not_before > NOW
        assert approver == "witness" or listed.place_of(vm) is not None
        assert approver != "leader" or seen_for >= TAKE_OVER_SECONDS * (listed.place_of(vm) or 0)
        assert listed.place_of(vm) is not None or seen_for >= witness_delay(listed.key, vm)
    assert result.wait_seconds is None or result.wait_seconds > 0


@given(place=st.integers(1, 2), seen_for=st.floats(0, 100))
def test_waiting_as_long_as_told_is_enough(place: int, seen_for: float) -> None:
    answer = eligibility(decision(), f"web_{place}", NOW, seen_for)
    if answer.wait_seconds is not None:
        assert eligibility(decision(), f"web_{place}", NOW, seen_for + answer.wait_seconds + 1e-9).send


def test_a_witness_waits_a_time_of_its_own() -> None:
    witnessed = decision(approver="witness")
    delay = witness_delay(witnessed.event.key, "db_0")
    assert 0 < delay < 60
    waiting = eligibility(witnessed, "db_0", NOW)
    assert waiting.code == approval.NOT_LEADER
    assert waiting.wait_seconds == pytest.approx(delay)
    assert "witness" in waiting.reason
    assert f"in {int(delay) + 1} s" in waiting.reason
    assert not eligibility(witnessed, "db_0", NOW, delay - 0.001).send
    assert eligibility(witnessed, "db_0", NOW, delay).send


def test_a_witness_among_the_resources_does_not_wait() -> None:
    assert eligibility(decision(approver="witness"), "web_0", NOW).send
    assert eligibility(decision(approver="witness"), "WEB_2", NOW).send


@given(st.text(), st.one_of(st.none(), st.text()))
def test_witness_delay_is_stable_and_below_a_minute(event_key: str, name: str | None) -> None:
    try:
        f"{event_key}{name}".encode()
    except UnicodeEncodeError:
        return  # names of VMs are plain letters
    delay = witness_delay(event_key, name)
    assert 0 <= delay < 60
    assert witness_delay(event_key, name) == delay
    if name is not None and name.isascii():
        assert witness_delay(event_key, name.upper()) == delay, "names are compared in any case (SE-14)"


def test_the_delay_does_not_change_with_releases() -> None:
    """Witnesses of different releases agree on their delays: the values are sha256 of key, NUL and name."""
    assert witness_delay("c7061bac", "db_0") == pytest.approx(8.847816250741829)


def test_delays_are_spread_evenly() -> None:
    """Consecutive names, one event each: the share of each tenth of the minute is near a tenth."""
    delays = [witness_delay(f"event-{event}", f"web_{vm}") for event in range(100) for vm in range(100)]
    for tenth in range(10):
        share = sum(1 for delay in delays if tenth * 6 <= delay < tenth * 6 + 6) / len(delays)
        assert 0.09 < share < 0.11, tenth


def senders(random: Random, witnesses: int, latency: float) -> int:
    """Return how many of some witnesses approve one event, which starts ``latency`` after the first was sent.

    Each polls once a second at a phase of its own, and approves by what its last document said.
    """
    listed = event(event_id=f"{random.getrandbits(128):032x}", resources=("hung_0",))
    witnessed = decision(listed, approver="witness")
    first = NOW
    polls = []
    for number in range(witnesses):
        phase = random.random()
        polls += [(phase + second, phase, f"app_{number}") for second in range(62)]
    started: float | None = None
    sent: set[str] = set()
    for at, seen, name in sorted(polls):
        if started is not None and at >= started:
            break
        if name not in sent and eligibility(witnessed, name, first + timedelta(seconds=at), at - seen).send:
            sent.add(name)
            started = at + latency if started is None else started
    return len(sent)


@pytest.mark.parametrize(
    ("witnesses", "latency", "at_least"),
    [(2, 0.1, 0.99), (5, 0.1, 0.98), (20, 0.1, 0.94), (2, 1.0, 0.95), (5, 1.0, 0.89), (20, 1.0, 0.65)],
)
def test_of_several_witnesses_one_approves(witnesses: int, latency: float, at_least: float) -> None:
    """The others see that it has started; further approvals are answered with 200, too (SE-31)."""
    random = Random(20260504)
    counts = [senders(random, witnesses, latency) for _ in range(1000)]
    assert min(counts) == 1, "somebody always approves"
    share = counts.count(1) / len(counts)
    print(f"{witnesses} witnesses, start {latency} s after the approval: one sends in {share:.1%} of 1000 events")
    assert share >= at_least
