# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn fleet status`` with real Prometheus and real runners, beside what ``status --json`` says on these VMs."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from forewarn.emulator.client import EmulatorClient
from forewarn.emulator.server import EmulatorServer
from forewarn.emulator.spec import Settings
from forewarn.fleet.page import page_of_states
from forewarn.fleet.status import HostState, host_states, state_of
from forewarn.fleet.table import table
from forewarn.policy.artifact import with_source
from tools.servers.listener_client import free_port
from tools.servers.prometheus_server import PrometheusServer, prometheus_server
from tools.sites.commands import forewarn_on_vm, in_process
from tools.sites.runner_process import Process, compiled, program, runners

POLICY = """
name: web-tier
rule:
  match:
    - {{id: brief, condition: event.EventType == "Freeze" && affects_me, output: approve}}
    - id: drain
      condition: event.EventType == "Reboot" && affects_me
      output: approve
      prepare: [{{run: [{slow}], timeout: 5m}}]
    - id: broken
      condition: event.EventType == "Redeploy" && affects_me
      output: approve
      prepare: [{{run: [{broken}], timeout: 1m, retry: {{attempts: 1}}}}]
    - {{id: rest, output: hold}}
"""
SOURCE = {
    "repository": "git@example.com:policies",
    "ref": "v1.4",
    "commit": "3f2a9c1d0e4b77aa00112233445566778899aabb",
    "paths": ["policies"],
    "modified": False,
}
EVENTS = {"web_0": "Freeze", "web_1": "Preempt", "web_2": "Reboot", "web_3": "Redeploy", "web_4": "Freeze"}
FAILING, PAUSED, RELOADED, DRY, LACKING, KILLED, DOWN = (f"db_{number}" for number in range(7))
VMS = (*EVENTS, FAILING, PAUSED, RELOADED, DRY, LACKING, KILLED)


class Fleet(NamedTuple):
    """Runners that are scraped, and the state directories of those that still run."""

    prometheus: PrometheusServer
    directories: Mapping[str, Path]

    def reports(self) -> dict[str, dict[str, Any]]:
        """Return what the playbook would have registered of each host that still runs."""
        found = {}
        for vm, directory in self.directories.items():
            done = forewarn_on_vm("status", "--json", STATE_DIRECTORY=str(directory))
            assert json.loads(done.stdout)["runner"]["condition"] == "running", vm
            found[vm] = {"stdout": done.stdout}
        return found


def states_of(content: Mapping[str, Any]) -> dict[str, HostState]:
    return {host: state_of(host, report) for host, report in content["reports"].items()}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Yield a fleet in which each VM has a state of its own, once Prometheus has seen all of it."""
    directory = tmp_path_factory.mktemp("fleet")
    directory.chmod(0o700)
    slow, broken = program(directory / "slow", "exec sleep 600"), program(directory / "broken", "exit 1")
    artifact = compiled(directory, POLICY.format(slow=slow, broken=broken))
    artifact.write_bytes(with_source(artifact.read_bytes(), SOURCE))
    lacking = compiled(directory, POLICY.format(slow=slow, broken=directory / "missing"), "lacking")
    config = directory / "config.json"
    config.write_text(json.dumps({"artifact": "policy.json"}))
    ports = {vm: free_port() for vm in (*VMS, DOWN)}
    settings = Settings(start_delay=600.0)
    with (
        EmulatorServer(vms=[*VMS, DOWN], settings=settings) as server,
        EmulatorClient(server.url) as emulator,
        runners(server, directory) as start,
    ):
        emulator.inject_fault(503, vms=[FAILING])
        options = {DRY: ["--dry-run"], LACKING: ["--artifact", str(lacking)], RELOADED: ["--config", str(config)]}
        started: dict[str, Process] = {}
        for vm in VMS:
            own = options.get(vm, [])
            policies = [] if {"--artifact", "--config"} & {*own} else ["--artifact", str(artifact)]
            started[vm] = start(*policies, *own, "--metrics-listen", f"127.0.0.1:{ports[vm]}", vm=vm)
        for vm in VMS:
            started[vm].wait_for("started")
        config.write_text("{")
        started[RELOADED].process.send_signal(signal.SIGHUP)
        started[RELOADED].wait_for("reload-failed")
        directories = {vm: directory / f"state-{vm}" for vm in VMS if vm != KILLED}
        paused = forewarn_on_vm("pause", "--for", "2h", "--reason", "x", STATE_DIRECTORY=str(directories[PAUSED]))
        assert paused.returncode == 0, paused.stderr
        for vm, kind in EVENTS.items():
            event = emulator.schedule(kind, [vm, DOWN] if vm == "web_1" else [vm], notice_seconds=900)
        started["web_4"].wait_for("approved")
        emulator.start(event)
        targets = [{"targets": [f"127.0.0.1:{ports[vm]}"], "labels": {"instance": f"{vm}:9750"}} for vm in ports]
        with prometheus_server(directory, [{"job_name": "forewarn", "static_configs": targets}]) as prometheus:
            settle(prometheus)
            started[KILLED].process.kill()
            prometheus.wait_for("up == 0", 2)
            yield Fleet(prometheus, directories)


def settle(prometheus: PrometheusServer) -> None:
    """Wait until each VM lists each event, and has done what it does about it."""
    prometheus.wait_for("up == 1", len(VMS))
    for state in ("approved", "held", "preparing", "failed", "started"):
        prometheus.wait_for(f'forewarn_event_info{{affected="true", state="{state}"}}')
    listing = len(VMS) - 1  # one of them is not answered
    prometheus.wait_for(f"count by (instance) (forewarn_event_info) == {len(EVENTS)}", listing)
    prometheus.wait_for("forewarn_paused == 1")
    prometheus.wait_for("forewarn_last_reload_successful == 0")


def ask(fleet: Fleet, *options: str, code: int = 1) -> Any:
    """Return what the command writes, of ``--json`` the object; it ends with this code and says nothing else."""
    done = in_process("fleet", "status", "--from", "prometheus", "--url", fleet.prometheus.url, *options)
    assert (done.returncode, done.stderr) == (code, ""), done.stderr
    return json.loads(done.stdout) if "--json" in options else done.stdout


def reduced(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return what metrics say of an event that ``status --json`` shows."""
    kept = ("event_id", "state", "open", "outcome", "drill", "starts", "seconds_to_not_before")
    stamps = ("first_seen", "approved_at", "started_at", "gone_at")
    decision = event["decision"] or {}
    return {
        **{name: event[name] for name in (*kept, *stamps)},
        "event": {**event["event"], "Description": None, "Resources": sorted(event["event"]["Resources"])},
        "decision": {name: decision.get(name) for name in ("output", "policy", "rule")},
        "failure": "its preparation failed" if event["state"] == "failed" else None,
    }


def reduced_state(state: HostState) -> HostState:
    events = sorted(map(reduced, state.events), key=lambda event: str(event["event_id"]))
    pause = None if state.pause is None else state.pause._replace(by="", reason="")
    return state._replace(events=events, pause=pause, problems=[cause(problem) for problem in state.problems])


def cause(problem: str) -> str:
    """Return a problem without the details that metrics do not have."""
    return re.split("[:;]", problem)[0]


def without_times(state: HostState) -> HostState:
    """Return a state without what depends on when it was asked for, or on whether the event affects the VM."""
    events = [dict(event) for event in state.events]
    for event in events:
        affected = state.vm in event["event"]["Resources"]
        for name in ("starts", "seconds_to_not_before", *(() if affected else ("first_seen", "started_at"))):
            del event[name]
        event["event"] = {name: value for name, value in event["event"].items() if value is not None}
        event["event"] = {name: event["event"].get(name) for name in ("EventType", "EventStatus", "Resources")}
    return state._replace(events=events, health={})


def test_states_are_those_that_vms_report(fleet: Fleet) -> None:
    content = ask(fleet, "--json")
    assert content["forewarn"] == {"schema": "fleet-status", "version": 1}
    found = states_of(content)
    expected = {state.host: reduced_state(state) for state in host_states(fleet.reports())}
    assert found.keys() == {*expected, KILLED, DOWN}
    for host, state in expected.items():
        assert without_times(reduced_state(found[host])) == without_times(state), host
        assert state.policy is not None
        assert found[host].health.keys() == {"runner", "service"}
    assert content["with_trouble"] == [host for host, state in found.items() if state.problems]
    assert {*content["with_trouble"]} == {"web_3", FAILING, RELOADED, LACKING, KILLED, DOWN}
    for host, vm in ((KILLED, KILLED), (DOWN, "")):
        assert found[host].problems == ["silent: Prometheus does not reach it"]
        assert (found[host].runner, found[host].policy, found[host].vm) == ("silent", None, vm)


def test_table_has_the_lines_of_the_playbook(fleet: Fleet) -> None:
    found = states_of(ask(fleet, "--json"))
    playbook = [
        reduced_state(state)._replace(problems=found[state.host].problems) for state in host_states(fleet.reports())
    ]
    lines = [line.text for line in table([*playbook, found[KILLED], found[DOWN]])]
    assert sorted(map(timeless, ask(fleet).rstrip("\n").split("\n"))) == sorted(map(timeless, lines))


def timeless(line: str) -> str:
    return re.sub(r"\b(in|started) (\d+ (min|s)\s?)+", r"\1 ", line)


def test_page_shows_events_hosts_and_no_history(fleet: Fleet, tmp_path: Path) -> None:
    output = tmp_path / "fleet.html"
    content = ask(fleet, "--json", "--output", str(output))
    made = output.read_text()
    assert made == page_of_states(list(states_of(content).values()), re.sub(r"\.\d+", "", content["at"]))
    assert made.count("<article") == len(EVENTS)
    assert all(f"<b>{host}</b>" in made for host in content["reports"])
    assert "history" not in made


def test_matchers_select_vms(fleet: Fleet) -> None:
    for matchers in ('instance="web_0:9750"', '{instance="web_0:9750"}', 'job="forewarn",instance=~"web_0.*",'):
        assert "1 host, 0 with trouble; 5 events pending" in ask(fleet, "--match", matchers, code=0)
    done = in_process("fleet", "status", "--url", fleet.prometheus.url, "--match", 'job="other"')
    assert (done.returncode, done.stdout) == (2, "")
    assert 'has no series of Forewarn with job="other"' in done.stderr
    done = in_process("fleet", "status", "--url", fleet.prometheus.url, "--match", "job=forewarn")
    assert done.returncode == 2
    assert "refuses the query" in done.stderr
    assert "--match" in done.stderr
