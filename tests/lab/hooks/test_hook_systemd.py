# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kinds systemd and checkpoint, on hosts of three Debian releases, in the sandbox that the role writes."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from tools.suite.sizes import in_turn

from ..hosts import Host
from ..lab import Lab
from ..sizes import FEW_HOSTS, ONE_SUITE
from .figures import record
from .snapshot import nothing_is_lost, standing
from .whole_event import announce, hooks_of, rehearse, rehearse_shipped, roll_out, shipped, wait_for_state

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
        - systemd: {unit: echo.service}
    - id: stop-and-wait
      condition: event.EventType == "Redeploy"
      output: hold
      prepare: *stop
"""
# What a timer or a person does: it starts the unit again and again.
STARTER = """[Service]
ExecStart=/bin/sh -c 'while sleep 0.2; do systemctl start app; done'
[Install]
WantedBy=multi-user.target
"""
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
# It runs only with the descriptor of its socket.
ECHO = """#!/usr/bin/python3
import os, socket, sys
if os.environ.get("LISTEN_PID") != str(os.getpid()):
    sys.exit("without a socket there is nothing to do")
server = socket.socket(fileno=3)
while True:
    server.accept()[0].sendall(b"hello")
"""
CLIENT = """python3 -c 'import socket; print(socket.create_connection(("127.0.0.1", 7777), 5).recv(9))'"""
SLEEP = "[Service]\nExecStart=/bin/sleep infinity\n"
# What triggers a unit, or would pull it up.
AROUND = {
    "echo.service": "[Service]\nExecStart=/usr/local/bin/echo-server\n",
    "echo.socket": "[Socket]\nListenStream=127.0.0.1:7777\n[Install]\nWantedBy=sockets.target\n",
    "spool.service": SLEEP,
    "spool.path": "[Path]\nPathExists=/etc/hostname\n[Install]\nWantedBy=multi-user.target\n",
    "user.service": f"[Unit]\nRequires=spool.service\nAfter=spool.service\n{SLEEP}"
    "[Install]\nRequiredBy=multi-user.target\n",
    "tick.service": "[Unit]\nStartLimitIntervalSec=0\n[Service]\nType=oneshot\nExecStart=/bin/true\n",
    "tick.timer": "[Timer]\nOnActiveSec=1\nOnUnitActiveSec=1\nAccuracySec=100ms\n[Install]\nWantedBy=timers.target\n",
    "upheld.service": SLEEP,
    "upholder.service": f"[Unit]\nUpholds=upheld.service\n{SLEEP}[Install]\nWantedBy=multi-user.target\n",
    "called.service": "[Service]\nType=dbus\nBusName=org.example.Called\nExecStart=/bin/sleep infinity\n",
}
ACTIVATED = "[D-BUS Service]\nName=org.example.Called\nExec=/bin/false\nUser=root\nSystemdService=called.service\n"
CALL = (
    "busctl call org.freedesktop.DBus /org/freedesktop/DBus org.freedesktop.DBus StartServiceByName su "
    "org.example.Called 0"
)
# What becomes of it -> the unit, what happens before the event, and what happens during it.
CASES = {
    "a client connects": ("echo.service", "systemctl stop echo.service", CLIENT),
    "it is started without its socket": (
        *("echo.service", CLIENT),
        f"systemctl start echo.service; systemctl start echo.socket; {CLIENT}",
    ),
    "its file is there all the time": ("spool.service", "true", "touch /etc/hostname; systemctl start user"),
    "its timer elapses each second": ("tick.service", "true", "sleep 2"),
    "another unit upholds it": ("upheld.service", "true", "systemctl restart upholder"),
    "it is called by D-Bus": ("called.service", "true", f"timeout 2 {CALL}"),
}


@pytest.fixture(scope="module", autouse=True)
def rolled_out(lab: Lab, tmp_path_factory: pytest.TempPathFactory, installed_collection: Path) -> None:
    for host in lab.hosts:
        for name, content in {"app": APP, "idle": IDLE, "starter": STARTER, "worker": WORKER_UNIT}.items():
            host.write(content, f"/etc/systemd/system/{name}.service")
        for name, content in AROUND.items():
            host.write(content, f"/etc/systemd/system/{name}")
        host.write(WORKER, "/usr/local/bin/worker", 0o755)
        host.write(ECHO, "/usr/local/bin/echo-server", 0o755)
        host.write(ACTIVATED, "/usr/share/dbus-1/system-services/org.example.Called.service")
        units = "app worker starter echo.socket spool.path user tick.timer upholder"
        host.ssh(f"systemctl daemon-reload && systemctl reload dbus && systemctl enable --quiet --now {units}")
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


def test_units_stop_and_state_is_saved_before_reboot(lab: Lab, host: Host) -> None:
    before = progress(host)
    event_id = announce(lab, host)
    wait_for_state(host, event_id, "started")
    assert "refused" in host.ssh(CLIENT, check=False).stderr
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
        *(("prepare", kind, "succeeded") for kind in ("checkpoint", *["systemd"] * 3)),
        *(("recover", kind, "succeeded") for kind in (*["systemd"] * 3, "checkpoint")),
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
def test_unannounced_reboot_loses_work_since_the_checkpoint(host: Host) -> None:
    host.wait_for(lambda: progress(host) > saved(host) + 50)
    before, kept = progress(host), saved(host)
    host.cut_power()
    host.start()
    host.wait_for(lambda: saved(host) >= kept)
    assert kept < before
    record("checkpoint", "unannounced", {"suite": host.suite, "lost_steps": before - kept})


@pytest.mark.parametrize("host", ONE_SUITE, indirect=True)
def test_cancelled_event_starts_units_and_restores_nothing(lab: Lab, host: Host) -> None:
    host.ssh(f"rm -f /var/lib/worker/restored; systemctl stop idle; {CLIENT}")  # which starts the server
    event_id = announce(lab, host, "Redeploy")
    host.wait_for(lambda: active(host, "app") == "inactive")
    wait_for_state(host, event_id, "prepared")
    lab.emulator.cancel(event_id)
    wait_for_state(host, event_id, "cancelled")
    assert [active(host, unit) for unit in ("app", "idle", "worker")] == ["active", "inactive", "active"]
    assert host.ssh("ls /run/systemd/system/*.d/50-forewarn.conf", check=False).stdout == ""
    assert host.ssh("cat /var/lib/worker/restored", check=False).returncode != 0


@pytest.mark.parametrize("case", in_turn(CASES, 2))
def test_nothing_that_the_hook_did_remains(host: Host, case: str) -> None:
    unit, before, meanwhile = CASES[case]
    host.ssh(before)
    at_first = standing(host)
    host.ssh(f"forewarn hook try systemd unit={unit} --prepare")
    host.ssh(meanwhile, check=False)  # on systemd 247, process 1 answered nobody
    assert active(host, unit) in ("inactive", "failed")
    refused = host.ssh(f"systemctl start {unit}", check=False).stderr
    assert "ssertion" in refused
    host.ssh(f"forewarn hook try systemd unit={unit} --recover")
    nothing_is_lost(host, at_first)
    assert host.ssh("ls -d /run/systemd/system/*.service.d", check=False).stdout == ""


def test_a_recovery_names_what_is_not_as_before(host: Host) -> None:
    host.ssh(CLIENT)
    host.ssh("forewarn hook try systemd unit=echo.service --prepare && chmod -x /usr/local/bin/echo-server")
    failed = host.ssh("forewarn hook try systemd unit=echo.service --recover", check=False)
    assert "failed: not as before: echo.service is failed (exit-code)" in failed.stdout
    host.ssh("chmod +x /usr/local/bin/echo-server && forewarn hook try systemd unit=echo.service --recover")
    assert "hello" in host.ssh(CLIENT).stdout


@pytest.mark.full
def test_the_hooks_are_rehearsed_in_a_drill(lab: Lab, host: Host) -> None:
    approvals = [request for request in lab.emulator.requests() if request["method"] == "POST"]
    hooks = rehearse(host)
    assert [status for _phase, _kind, status in hooks] == ["succeeded"] * 8
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
