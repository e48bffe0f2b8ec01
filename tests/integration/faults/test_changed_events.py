# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real runner, a real service: what an approval rests on when events, policies and the runner itself change."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from forewarn.compiler.policies import compile_policies
from forewarn.emulator.client import EmulatorClient
from forewarn.emulator.requestlog import LoggedRequest
from forewarn.emulator.server import EmulatorServer
from forewarn.emulator.spec import Settings
from forewarn.runner.hooks.run import RECOVER_PAUSES
from tools.sites.quick_vm import TIMES
from tools.sites.runner_process import Start
from tools.sites.waiting import wait_until

HOOK = """#!/bin/sh
cd "${{0%/*}}" || exit 1
echo "${{0##*/}} $FOREWARN_EVENT_TYPE $FOREWARN_ATTEMPT $$" >> ran
{body}
"""


@pytest.fixture
def server() -> Iterator[EmulatorServer]:
    with EmulatorServer(vms=["web_0"], settings=Settings(start_delay=0.1)) as running:
        yield running


def hook(place: Path, name: str, body: str = "") -> str:
    path = place / name
    path.write_text(HOOK.format(body=body))
    path.chmod(0o755)
    return str(path)


def artifact(place: Path, match: str, *names: str) -> str:
    """Return the artifact of policies that differ in their names alone, which replaces an earlier one."""
    policies = [place / f"{name}.yml" for name in names or ("web",)]
    for path in policies:
        path.write_text(f"name: {path.stem}\nrule:\n  match:\n{match}")
    draft = place / "policy.new"
    draft.write_text(json.dumps(compile_policies(policies).artifact))
    return str(draft.replace(place / "policy.json"))


def ran(place: Path, name: str = "") -> list[list[str]]:
    """Return the fields of each start of a hook so far: its name, the event's type, the attempt, its process."""
    file = place / "ran"
    lines = file.read_text().splitlines() if file.exists() else []
    return [line.split() for line in lines if line.startswith(name)]


def posts(server: EmulatorServer) -> list[LoggedRequest]:
    with server.emulation.lock:
        return [entry for entry in server.emulation.log.since() if entry.method == "POST"]


def change(server: EmulatorServer, event_id: str, **fields: object) -> None:
    """Let the service list an event with other content under the same id."""
    with server.emulation.lock:
        record = server.emulation.model.find(event_id)
        record.spec = replace(record.spec, **fields)  # type: ignore[arg-type]  # whichever a test names
        server.emulation.model._refresh()


FREEZE_OR_DRAIN = """
    - {{id: freeze, condition: event.EventType == "Freeze", output: approve}}
    - id: rest
      output: approve
      prepare: [{{run: [{drain}]}}]
      recover: [{{run: [{undrain}]}}]
"""


def test_changed_event_is_prepared_before_its_next_approval(
    server: EmulatorServer, emulator: EmulatorClient, start: Start, place: Path
) -> None:
    rules = FREEZE_OR_DRAIN.format(drain=hook(place, "drain", "sleep 0.5"), undrain=hook(place, "undrain"))
    runner = start("--artifact", artifact(place, rules))
    event_id = emulator.schedule("Freeze", ["web_0"], duration_seconds=5, start_on="not_before")
    runner.wait_for("approved")
    change(server, event_id, event_type="Redeploy")
    ended = runner.wait_for("hook-ended", phase="prepare")
    assert ended["result"] == "succeeded"
    runner.wait_for("approved", count=2)
    assert [words[:2] for words in ran(place)] == [["drain", "Redeploy"]]
    lines = [line["line"] for line in runner.lines if line["line"] in ("approved", "event-changed", "hook-ended")]
    assert lines == ["approved", "event-changed", "hook-ended", "approved"]
    assert len(posts(server)) == 2


def test_reload_that_adds_a_drain_runs_it(emulator: EmulatorClient, start: Start, place: Path) -> None:
    runner = start("--artifact", artifact(place, "    - {id: all, output: approve}\n"))
    emulator.schedule("Redeploy", ["web_0"], start_on="not_before")
    runner.wait_for("approved")
    rules = FREEZE_OR_DRAIN.format(drain=hook(place, "drain", "exit 1"), undrain=hook(place, "undrain"))
    artifact(place, rules)
    runner.process.send_signal(signal.SIGHUP)
    runner.wait_for("reloaded")
    line = runner.wait_for("decision", eligibility="preparation-failed")
    assert "tried again" in line["reason"]
    assert ran(place, "drain")[0][1] == "Redeploy"


@pytest.mark.vm_python
def test_hook_shared_by_two_policies_runs_once(emulator: EmulatorClient, start: Start, place: Path) -> None:
    rules = FREEZE_OR_DRAIN.format(drain=hook(place, "drain", "sleep 0.3"), undrain=hook(place, "undrain", "sleep 0.3"))
    runner = start("--artifact", artifact(place, rules, "web", "db"))
    emulator.schedule("Reboot", ["web_0"], impact_seconds=0.1, gone_after_seconds=0.5)
    runner.wait_for("state", to="done")
    assert [words[0] for words in ran(place)] == ["drain", "undrain"]


def test_hooks_of_a_hold_run_once(emulator: EmulatorClient, start: Start, place: Path) -> None:
    """The approval that follows the hold has the same hooks."""
    hooks = f"prepare: [{{run: [{hook(place, 'drain')}]}}]\n      recover: [{{run: [{hook(place, 'undrain')}]}}]\n"
    rules = f"""
    - id: early
      condition: age < duration("1s")
      output: hold
      {hooks}
    - id: late
      output: approve
      {hooks}
"""
    runner = start("--artifact", artifact(place, rules))
    emulator.schedule("Reboot", ["web_0"], impact_seconds=0.1)
    runner.wait_for("approved")
    assert [words[0] for words in ran(place)] == ["drain"]


def test_one_failure_in_the_first_second_forfeits_nothing(emulator: EmulatorClient, start: Start, place: Path) -> None:
    flaky = hook(place, "drain", '[ "$FOREWARN_ATTEMPT" -ge 3 ]')
    rules = FREEZE_OR_DRAIN.format(drain=flaky, undrain=hook(place, "undrain"))
    runner = start("--artifact", artifact(place, rules))
    emulator.schedule("Reboot", ["web_0"], impact_seconds=0.1)
    runner.wait_for("approved")
    assert [words[2] for words in ran(place, "drain")] == ["1", "2", "3"]


def test_recovery_shared_by_three_events_runs_once(
    server: EmulatorServer, emulator: EmulatorClient, start: Start, place: Path
) -> None:
    """All events end in the same poll."""
    rules = FREEZE_OR_DRAIN.format(drain=hook(place, "drain"), undrain=hook(place, "undrain", "sleep 0.3"))
    runner = start("--artifact", artifact(place, rules))
    ids = [emulator.schedule("Reboot", ["web_0"], start_on="not_before") for _ in range(3)]
    for event_id in ids:
        runner.wait_for("state", event_id=event_id, to="approved")
    with server.emulation.lock:
        for event_id in ids:
            server.emulation.model.start(event_id)
            server.emulation.model.finish(event_id)
    for event_id in ids:
        runner.wait_for("state", event_id=event_id, to="done")
    assert len(ran(place, "undrain")) == 1


def test_preempt_is_prepared_beside_sixteen_hooks(emulator: EmulatorClient, start: Start, place: Path) -> None:
    slow = ", ".join(f"{{run: [{hook(place, 'slow', 'sleep 60')}, '{number}']}}" for number in range(16))
    rules = f"""
    - id: preempt
      condition: event.EventType == "Preempt"
      output: approve
      prepare: [{{run: [{hook(place, "leave")}]}}]
      recover: [{{run: [{hook(place, "back")}]}}]
    - id: redeploy
      output: approve
      parallel: true
      prepare: [{slow}]
      recover: [{{run: [{hook(place, "back")}]}}]
"""
    runner = start("--artifact", artifact(place, rules))
    emulator.schedule("Redeploy", ["web_0"])
    wait_until(lambda: len(ran(place, "slow")) == 16)
    event_id = emulator.schedule("Preempt", ["web_0"], impact_seconds=0.1)
    approved = runner.wait_for("approved")
    assert approved["event_ids"] == [event_id]
    runner.process.terminate()  # which ends its hooks, too
    runner.end()


def test_preempt_does_not_wait_for_a_shared_recovery(emulator: EmulatorClient, start: Start, place: Path) -> None:
    undrain = hook(place, "undrain", "[ -e quick ] || sleep 50")
    rules = FREEZE_OR_DRAIN.format(drain=hook(place, "drain"), undrain=undrain)
    runner = start("--artifact", artifact(place, rules))
    first = emulator.schedule("Reboot", ["web_0"], impact_seconds=0.1, gone_after_seconds=0.5)
    wait_until(lambda: ran(place, "undrain"))
    second = emulator.schedule("Preempt", ["web_0"], impact_seconds=0.1, gone_after_seconds=0.5)
    runner.wait_for("approved", event_ids=[second])
    (place / "quick").touch()
    runner.wait_for("state", event_id=first, to="done")
    runner.wait_for("state", event_id=second, to="done")
    assert [words[0] for words in ran(place)] == ["drain", "undrain", "drain", "undrain"]
    assert ran(place, "drain")[1][1] == "Preempt"


def test_orderly_restarts_use_up_no_recovery_retries(emulator: EmulatorClient, start: Start, place: Path) -> None:
    undrain = hook(place, "undrain", "[ -e quick ] || sleep 60")
    rules = FREEZE_OR_DRAIN.format(drain=hook(place, "drain"), undrain=undrain)
    arguments = ("--artifact", artifact(place, rules))
    runner = start(*arguments)
    event_id = emulator.schedule("Reboot", ["web_0"], impact_seconds=0.1, gone_after_seconds=0.5)
    for restart in range(1, 3):
        wait_until(lambda: len(ran(place, "undrain")) == restart)  # noqa: B023 - used at once
        assert runner.stop()[0] == 0
        runner = start(*arguments)
    wait_until(lambda: len(ran(place, "undrain")) == 3)
    runner.stop()
    hook(place, "undrain", "[ $FOREWARN_ATTEMPT -gt 4 ]")
    runner = start(*arguments)
    failed = runner.wait_for("hook-ended", phase="recover", event_id=event_id)
    assert failed["retry_seconds"] == RECOVER_PAUSES[0] / TIMES, "the first real failure is the first"
    runner.wait_for("state", event_id=event_id, to="done")


def test_unanswered_approval_is_remembered_after_a_restart(
    server: EmulatorServer, emulator: EmulatorClient, start: Start, place: Path
) -> None:
    """So it does not report the event as called off before its start: it may have started unseen."""
    arguments = ("--artifact", artifact(place, "    - {id: all, output: approve}\n"))
    runner = start(*arguments)
    runner.wait_for("document")
    emulator.inject_fault("drop", requests=["post"], processed=False)
    event_id = emulator.schedule("Reboot", ["web_0"], start_on="not_before")
    wait_until(lambda: posts(server))
    runner.stop(signal.SIGKILL)
    emulator.clear_faults()
    artifact(place, "    - {id: all, output: hold}\n")  # so that the next runner sends none
    runner = start(*arguments)
    runner.wait_for("resumed", event_id=event_id)
    runner.wait_for("decision", event_id=event_id)
    emulator.cancel(event_id)
    gone = runner.wait_for("event-gone", event_id=event_id)
    assert gone["outcome"] == "unseen"
