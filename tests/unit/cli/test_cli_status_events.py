# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn status``: what it reports of pending events, and of what has failed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from forewarn.cli import main as cli
from forewarn.runner.event_record import TRANSITIONS
from tools.fixtures.recorded_state import DRAIN, UNDRAIN, RecordedState, Run, decided, planned

# What is pending


WAITING: list[tuple[dict[str, Any], str]] = [
    ({}, "its decision"),
    ({"decision": decided("approve")}, "its approval to be sent"),
    ({"decision": decided("approve"), "drill": True}, "its approval, which is only simulated"),
    (
        {"state": "held", "decision": decided("refused-by-policy", "not at night")},
        "nothing: held by web-tier, rule drain: not at night",
    ),
    (
        {"state": "held", "decision": decided("refused-by-policy", "nobody approves", policy=None, rule=None)},
        "nothing: held: nobody approves",
    ),
    (
        {"state": "prepared", "decision": decided("refused-by-policy", "not at night")},
        "NotBefore: prepared, and held by web-tier, rule drain: not at night",
    ),
    (
        {"decision": decided("not-ours", eligibility_reason="web_9 is not affected")},
        "nothing here: web_9 is not affected",
    ),
    (
        {"decision": decided("group-not-ready", eligibility_reason="the other 1 have to prepare")},
        "NotBefore: the other 1 have to prepare",
    ),
    ({"decision": decided("no-time-left", eligibility_reason="it has passed")}, "NotBefore: it has passed"),
    (
        {"decision": decided("not-the-leader", eligibility_reason="web_0 leads")},
        "the leader web_0; this VM takes over if it stays silent",
    ),
    (
        {"decision": decided("journal-trouble", eligibility_reason="the disk is full")},
        "journal-trouble: the disk is full",
    ),
    (
        {"decision": decided("preparing", eligibility_reason="waits for a hook"), "plan": [planned("prepare", DRAIN)]},
        "prepare hook run /usr/local/bin/drain --wait to be started",
    ),
    (
        {
            "state": "preparing",
            "plan": [planned("prepare", DRAIN, "succeeded"), planned("prepare", UNDRAIN), planned("recover", DRAIN)],
        },
        "prepare hook run /usr/local/bin/undrain to be started",
    ),
    (
        {"state": "preparing", "plan": [planned("prepare", DRAIN, attempts=1)]},
        "prepare hook run /usr/local/bin/drain --wait to be tried again; attempt 1 was interrupted",
    ),
    (  # between the end of its last hook and the next document
        {
            "state": "prepared",
            "plan": [planned("prepare", DRAIN, "succeeded")],
            "decision": decided("preparing", "waits for run /usr/local/bin/drain --wait"),
        },
        "its approval, with the next document",
    ),
    ({"state": "started"}, "the event to end"),
    (
        {"state": "recovering", "plan": [planned("prepare", DRAIN, "running"), planned("recover", UNDRAIN)]},
        "prepare hook run /usr/local/bin/drain --wait, at most 5 min",
    ),
    (
        {"state": "recovering", "plan": [planned("recover", UNDRAIN, "running", attempts=2)]},
        "recover hook run /usr/local/bin/undrain, at most 1 min, attempt 2",
    ),
    (
        {"state": "recovering", "plan": [planned("recover", UNDRAIN, attempts=1, reason="it ended with exit code 1")]},
        "recover hook run /usr/local/bin/undrain to be tried again; attempt 1 failed: it ended with exit code 1",
    ),
    ({"state": "haunted"}, "something unknown: this version does not know the state 'haunted'"),
]


@pytest.mark.parametrize(("fields", "text"), WAITING)
def test_what_an_event_waits_for(recorded: RecordedState, status: Run, fields: dict[str, Any], text: str) -> None:
    recorded.beat()
    recorded.record(**fields)
    shown = status()
    assert shown.code == 0
    assert f"waits for  {text}" in [line.strip() for line in shown.lines]


def test_every_state_of_a_record_is_known(recorded: RecordedState, status: Run) -> None:
    recorded.beat()
    for number, state in enumerate(TRANSITIONS):
        recorded.record(f"E{number}", state=state, plan=[planned("prepare", DRAIN), planned("recover", UNDRAIN)])
    assert "does not know" not in status().out


def test_a_running_hook_is_shown_with_its_time(recorded: RecordedState, status: Run) -> None:
    hook = "run /usr/local/bin/drain --wait"
    plan = [planned("prepare", DRAIN, "running", attempts=2), planned("prepare", UNDRAIN, "running", attempts=1)]
    record = recorded.record(state="preparing", plan=plan)
    recorded.note("hook-started", record, phase="prepare", hook=hook, attempt=1, timeout_seconds=300.0)
    recorded.clocks.now += 100
    recorded.note("hook-started", record, phase="prepare", hook=hook, attempt=2, timeout_seconds=200.0)
    recorded.clocks.now += 12
    recorded.clocks.wall_offset -= 3600
    recorded.beat()
    assert (
        "waits for  prepare hook run /usr/local/bin/drain --wait, for 12 s, at most 3 min 20 s, attempt 2 and "
        "prepare hook run /usr/local/bin/undrain, at most 1 min\n"
    ) in status().out


def test_the_leader_and_when_this_vm_takes_over(recorded: RecordedState, status: Run) -> None:
    record = recorded.record(decision=decided("not-the-leader", wait_seconds=30.0))
    recorded.note("decision", record, **decided("not-the-leader"))
    recorded.clocks.now += 16.5
    recorded.beat()
    assert "waits for  the leader web_0; this VM takes over in 14 s\n" in status().out


def test_an_approval_that_fails(recorded: RecordedState, status: Run) -> None:
    recorded.beat()
    record = recorded.record(decision=decided("approve"))
    recorded.note("approval-failed", record, event_ids=["x"], reason="the service answered 503")
    recorded.clocks.now += 3
    assert "waits for  its approval, which failed 3 s ago: the service answered 503\n" in status().out


def test_the_columns_of_an_event(recorded: RecordedState, status: Run) -> None:
    approved = recorded.clocks.stamp()
    recorded.record("A1", state="approved", approved_at=approved, event={"EventType": "Freeze", "DurationInSeconds": 5})
    started = {"EventStatus": "Started", "NotBefore": None, "DurationInSeconds": -1, "Resources": list("abcde")}
    recorded.record("B2", state="started", started_at=approved, event=started)
    recorded.record(
        "C3", drill=True, event={"EventSource": None, "DurationInSeconds": None, "NotBefore": recorded.at(5)}
    )
    recorded.clocks.now += 12
    recorded.record("D4", state="recovering", started_at=approved, gone_at=recorded.clocks.stamp())
    recorded.beat()
    assert status().lines[5:] == [
        "TYPE    STATE       STARTS            LASTS    SOURCE",
        "Freeze  approved    in 14 min 37 s    5 s      Platform",
        "        waits for  its start, approved 12 s ago",
        "        affects    web_0, web_1",
        "        id         A1",
        "Reboot  started     started 12 s ago  unknown  Platform",
        "        waits for  the event to end",
        "        affects    a, b, c and 2 more",
        "        id         B2",
        "Reboot  seen        overdue 7 s       -        -",
        "        a drill: nothing is approved",
        "        waits for  its decision",
        "        affects    web_0, web_1",
        "        id         C3",
        "Reboot  recovering  gone 0 s ago      30 s     Platform",
        "        waits for  the runner",
        "        affects    web_0, web_1",
        "        id         D4",
    ]


# What has failed


def test_a_failed_preparation(recorded: RecordedState, status: Run) -> None:
    recorded.beat()
    failed = planned("prepare", DRAIN, "failed", reason="it took longer than 300 s")
    record = recorded.record(state="failed", plan=[failed])
    shown = status()
    assert shown.code == 1
    text = "prepare hook run /usr/local/bin/drain --wait failed: it took longer than 300 s"
    assert f"waits for  nothing: it is not approved, as {text}\n" in shown.out
    recorded.save(record, state="seen", plan=[{**failed, "on_failure": "approve"}])
    assert status().code == 0, "the policy says that it does not matter"
    recorded.save(record, state="done", outcome="finished", plan=[failed])
    assert status().code == 0, "it is over"


def fails(**fields: Any) -> dict[str, Any]:
    reason = "it ended with exit code 1: connection refused"
    return {**planned("recover", UNDRAIN, "failed", attempts=5, failures=5, reason=reason), **fields}


def test_failing_recovery_is_shown_while_it_fails(recorded: RecordedState, status: Run) -> None:
    record = recorded.record("A1", state="recovering", plan=[planned("prepare", DRAIN, "succeeded"), fails()])
    recorded.clocks.now += 30 * 86400
    hook = "run /usr/local/bin/undrain"
    recorded.note("hook-ended", record, phase="recover", hook=hook, result="failed", retry_seconds=3600.0)
    recorded.clocks.now += 600
    recorded.beat()
    shown = status()
    assert shown.code == 1
    assert shown.lines[-7:] == [
        "Failing recoveries:",
        "Reboot A1",
        "  hook          run /usr/local/bin/undrain",
        "  failed        5 times: it ended with exit code 1: connection refused",
        "  next attempt  in 50 min",
        f"  run it now    forewarn recover A1 --again --state {recorded.directory}",
        f"  or end it     forewarn recover A1 --dealt-with 'what was done' --state {recorded.directory}",
    ]
    text = f"recover hook {hook} to be tried again in 50 min; attempt 5 failed: it ended with exit code 1"
    assert f"waits for  {text}: connection refused\n" in shown.out
    data = json.loads(status("--json").out)
    (failing,) = data["failing_recoveries"]
    assert {key: failing[key] for key in ("life_id", "event_id", "hook", "state", "failures", "attempts", "drill")} == {
        "life_id": record.id,
        "event_id": "A1",
        "hook": hook,
        "state": "failed",
        "failures": 5,
        "attempts": 5,
        "drill": False,
    }
    assert failing["next_attempt_at"] == recorded.at(3000).replace("Z", ".000Z")
    (problem,) = data["problems"]
    assert problem == f"Reboot A1: recover hook {hook} failed 5 times: it ended with exit code 1: connection refused"


def test_it_is_red_on_a_terminal(
    recorded: RecordedState, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded.record("A1", state="recovering", plan=[fails()])
    recorded.beat()
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert cli.main(["status", "--state", recorded.directory]) == 1
    assert "\x1b[1;31mFailing recoveries:" in capsys.readouterr().out


def test_recovery_without_retries_waits_for_an_operator(recorded: RecordedState, status: Run) -> None:
    once = {**UNDRAIN, "retry": {"attempts": 1}}
    recorded.record("A1", state="recovering", plan=[fails(hook=once, attempts=1, failures=1, reason="it timed out")])
    recorded.beat()
    shown = status()
    assert shown.code == 1
    text = "a person: recover hook run /usr/local/bin/undrain failed, and is not tried again: it timed out"
    assert f"waits for  {text}\n" in shown.out
    assert "  next attempt  none: it is not retried automatically" in shown.lines


def test_it_fails_also_while_it_is_tried_again(recorded: RecordedState, status: Run) -> None:
    record = recorded.record("A1", state="recovering", plan=[fails(status="running", attempts=6)])
    recorded.beat()
    assert status().code == 1
    recorded.save(record, plan=[fails(status="waiting", failures=2)])
    assert status().code == 0, "it may yet succeed by itself"
    recorded.save(record, state="done", outcome="finished", plan=[fails(status="succeeded")])
    assert status().code == 0
    recorded.save(record, state="done", outcome="finished", plan=[fails(status="skipped", reason="dealt with")])
    assert status().code == 0


def test_a_recovery_that_failed_is_remembered(recorded: RecordedState, status: Run) -> None:
    failed = planned("recover", UNDRAIN, "failed", reason="it ended with exit code 1")
    recorded.record("A1", state="done", outcome="finished", plan=[planned("prepare", DRAIN, "succeeded"), failed])
    recorded.clocks.now += 3600
    recorded.beat()
    shown = status()
    assert shown.code == 1
    text = "recover hook run /usr/local/bin/undrain failed: it ended with exit code 1"
    assert shown.lines[-2:] == ["Not recovered, in the last 24 hours:", f"  Reboot A1: {text}"]
    (problem,) = json.loads(status("--json").out)["problems"]
    assert problem == f"Reboot A1: {text}"
    other = recorded.record("B2", state="done", plan=[planned("recover", DRAIN, "succeeded")])
    assert status().code == 1, "that was another hook"
    recorded.save(other, plan=[planned("recover", UNDRAIN, "succeeded")])
    assert status().code == 0, "a later event has run the hook"


def test_failed_recovery_is_forgotten_after_a_day(recorded: RecordedState, status: Run) -> None:
    recorded.record(state="done", plan=[planned("recover", UNDRAIN, "failed", reason="x")])
    recorded.clocks.now += 86390
    recorded.beat()
    assert status().code == 1
    recorded.clocks.now += 20
    recorded.beat()
    assert status().code == 0
