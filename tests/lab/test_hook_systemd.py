# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kinds systemd and checkpoint, on hosts of three Debian releases, in the sandbox that the role writes."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from .conftest import FEW_HOSTS, ONE_SUITE
from .figures import record
from .hosts import Host
from .lab import Lab
from .whole_event import hooks_of, rehearse, rehearse_shipped, roll_out, shipped, wait_for_state

LAB_HOSTS = FEW_HOSTS

POLICY = """name: stop-and-save
rule:
  match:
    - id: save
      condition: event.EventType == "Reboot"
      output: approve
      prepare: &stop
        - checkpoint:
            file: /var/lib/worker/checkpoint
            unit: worker.service
            restore: [/usr/local/bin/worker, restored]
        - systemd: {unit: app.service}
        - systemd: {unit: idle.service}
    - id: stop-and-wait
      condition: event.EventType == "Redeploy"
      output: hold
      prepare: *stop
"""
# What a timer or a person does: it starts the unit again and again.
STARTER = "[Service]\nExecStart=/bin/sh -c 'while sleep 0.2; do systemctl start app; done'\n"
APP = "[Service]\nExecStart=/bin/sleep infinity\nRestart=always\n[Install]\nWantedBy=multi-user.target\n"
IDLE = "[Service]\nExecStart=/bin/sleep infinity\n"
# It counts, saves on SIGUSR1, and begins where it was saved.
WORKER = """#!/usr/bin/python3
import json, os, pathlib, signal, sys, time
state = pathlib.Path("/var/lib/worker")
checkpoint = state / "checkpoint"
if sys.argv[1:] == ["restored"]:
    (state / "restored").write_text(checkpoint.read_text())
    raise SystemExit
count = json.loads(checkpoint.read_text())["count"] if checkpoint.exists() else 0
def save(*_):
    draft = state / "draft"
    draft.write_text(json.dumps({"count": count}))
    draft.replace(checkpoint)
signal.signal(signal.SIGUSR1, save)
save()
while True:
    count += 1
    (state / "so-far").write_text(str(count))
    (state / "so-far").replace(state / "progress")
    time.sleep(0.01)  # a step of its work
"""
SAVED_BY_HAND = """touch /run/asked && systemctl kill --signal=USR1 worker
until [ /var/lib/worker/checkpoint -nt /run/asked ]; do sleep 0.05; done
"""
WORKER_UNIT = """[Service]
ExecStart=/usr/local/bin/worker
StateDirectory=worker
[Install]
WantedBy=multi-user.target
"""


@pytest.fixture(scope="module", autouse=True)
def rolled_out(lab: Lab, tmp_path_factory: pytest.TempPathFactory, installed_collection: Path) -> None:
    for host in lab.hosts:
        for name, content in {"app": APP, "idle": IDLE, "starter": STARTER, "worker": WORKER_UNIT}.items():
            host.write(content, f"/etc/systemd/system/{name}.service")
        host.write(WORKER, "/usr/local/bin/worker", 0o755)
        host.ssh("systemctl daemon-reload && systemctl enable --quiet --now app worker && systemctl start starter")
    names = [host.name for host in lab.hosts]
    # It is the restoring command of the worker that writes there.
    variables = {"forewarn_hooks_write": ["/var/lib/worker"]}
    roll_out(lab, tmp_path_factory.mktemp("control"), installed_collection, POLICY, names, variables)


@pytest.fixture(params=LAB_HOSTS.values())
def host(lab: Lab, request: pytest.FixtureRequest) -> Host:
    return next(host for host in lab.hosts if host.suite == request.param)


def active(host: Host, unit: str) -> str:
    return host.properties(unit, "ActiveState")["ActiveState"]


def progress(host: Host) -> int:
    return int(host.read("/var/lib/worker/progress"))


def saved(host: Host) -> int:
    found: dict[str, int] = json.loads(host.read("/var/lib/worker/checkpoint"))
    return found["count"]


def test_units_are_stopped_and_state_is_saved_before_a_reboot(lab: Lab, host: Host) -> None:
    before = progress(host)
    event_id = lab.emulator.schedule("Reboot", [host.name])
    wait_for_state(host, event_id, "started")
    kept = saved(host)
    assert kept >= before, "nothing that was done before the event is lost"
    assert [active(host, unit) for unit in ("app", "idle")] == ["inactive", "inactive"]
    refused = host.ssh("systemctl start app", check=False)
    assert refused.returncode != 0
    assert "ssertion" in refused.stderr, "who starts it is told why that fails"

    host.cut_power()
    host.start()
    lab.emulator.finish(event_id)
    entry = wait_for_state(host, event_id, "done")
    assert hooks_of(entry) == [
        *(("prepare", kind, "succeeded") for kind in ("checkpoint", "systemd", "systemd")),
        *(("recover", kind, "succeeded") for kind in ("systemd", "systemd", "checkpoint")),
    ]
    assert [active(host, unit) for unit in ("app", "idle", "worker")] == ["active", "inactive", "active"]
    assert int(json.loads(host.read("/var/lib/worker/restored"))["count"]) >= kept
    seconds = [hook["seconds"] for hook in entry["hooks"] if hook["hook"] == "systemd unit=app.service"]
    record("systemd", "forewarn", {"suite": host.suite, "stop_seconds": seconds[0], "start_seconds": seconds[-1]})
    record("checkpoint", "forewarn", {"suite": host.suite, "lost_steps": max(0, before - kept)})
    drained = {hook["hook"].partition(" ")[0]: hook["seconds"] for hook in reversed(entry["hooks"][:3])}
    for kind, command in (("systemd", "systemctl stop app"), ("checkpoint", SAVED_BY_HAND)):
        began = time.monotonic()
        host.ssh(command)
        by_hand = round(time.monotonic() - began, 2)
        record(kind, "detection to drained", {"suite": host.suite, "by_hand": by_hand, "forewarn": drained[kind]})
    host.ssh("systemctl start app")


@pytest.mark.full
def test_without_warning_the_work_since_the_last_checkpoint_is_lost(host: Host) -> None:
    host.wait_for(lambda: progress(host) > saved(host) + 50)
    before, kept = progress(host), saved(host)
    host.cut_power()
    host.start()
    host.wait_for(lambda: saved(host) >= kept)
    assert kept < before
    record("checkpoint", "unannounced", {"suite": host.suite, "lost_steps": before - kept})


@pytest.mark.parametrize("host", ONE_SUITE, indirect=True)
def test_a_cancelled_event_starts_what_was_stopped_and_restores_nothing(lab: Lab, host: Host) -> None:
    host.ssh("rm -f /var/lib/worker/restored; systemctl start starter; systemctl stop idle")
    event_id = lab.emulator.schedule("Redeploy", [host.name])
    host.wait_for(lambda: active(host, "app") == "inactive")
    wait_for_state(host, event_id, "prepared")
    lab.emulator.cancel(event_id)
    wait_for_state(host, event_id, "cancelled")
    assert [active(host, unit) for unit in ("app", "idle", "worker")] == ["active", "inactive", "active"]
    assert host.ssh("ls /run/systemd/system/*.d/50-forewarn.conf", check=False).stdout == ""
    assert host.ssh("cat /var/lib/worker/restored", check=False).returncode != 0


@pytest.mark.full
def test_the_hooks_are_rehearsed_in_a_drill(lab: Lab, host: Host) -> None:
    approvals = [request for request in lab.emulator.requests() if request["method"] == "POST"]
    hooks = rehearse(host)
    assert [status for _phase, _kind, status in hooks] == ["succeeded"] * 6
    assert active(host, "app") == "active"
    assert [request for request in lab.emulator.requests() if request["method"] == "POST"] == approvals


@pytest.mark.full
def test_the_shipped_policy_is_rehearsed(lab: Lab, tmp_path: Path, installed_collection: Path) -> None:
    host = lab.hosts[0]
    rehearse_shipped(lab, host, tmp_path, installed_collection, "spot-worker")
    assert active(host, "worker") == "active"


@pytest.mark.full
@pytest.mark.parametrize("policy", ["azure-sample", "observe-only"])
def test_a_shipped_policy_without_hooks_is_rehearsed(
    lab: Lab, tmp_path: Path, installed_collection: Path, policy: str
) -> None:
    host = lab.hosts[1]
    roll_out(lab, tmp_path, installed_collection, shipped(policy), [host.name])
    assert rehearse(host, notice="5s") == []
