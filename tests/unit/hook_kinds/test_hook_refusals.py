# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What hooks say where the software refuses, or answers nonsense: slurm, rabbitmq, pacemaker with scripted programs.

tests/lab has these kinds with the real software.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from forewarn.hook_kinds.common import work
from forewarn.hook_kinds.common.process import PREPARE, RECOVER, perform
from forewarn.hook_kinds.common.work import HookFailedError

EVENT = {"EventId": "E1", "EventType": "Reboot"}
Script = Callable[..., None]

NODE = "NodeName=n1 State={} SlurmdStartTime=2026-01-01T00:00:00 {}"
MONITOR = """<pacemaker-result><nodes>
<node name="p1" online="true" standby="{standby}" pending="false"/>
<node name="p2" online="{other}" standby="false" maintenance="false" pending="false"/>
</nodes><resources><group id="all">
<resource id="web" managed="{managed}" active="true"><node name="{where}"/></resource>
</group></resources></pacemaker-result>"""


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the time of a hook be over after the first pause, while a program has all the time that it needs."""
    passed = 0.0

    def sleep(seconds: float) -> None:
        nonlocal passed
        passed += 1_000 * seconds

    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + passed, sleep=sleep)
    monkeypatch.setattr(work, "time", clock)
    monkeypatch.setattr(work, "_LEAST_SECONDS", 30.0)


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Script:
    """Return a function that writes a program for the hooks to run: what it prints, and its exit code."""
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")

    def write(name: str, output: str = "", code: int = 0, when: str = "*", otherwise: str = "exit 0") -> None:
        """``when`` is a pattern of the shell for the arguments; ``otherwise`` is a command."""
        (tmp_path / f"{name}.text").write_text(output)
        lines = f'case "$*" in {when}) cat {tmp_path}/{name}.text; exit {code};; *) {otherwise};; esac\n'
        (tmp_path / name).write_text(f'#!/bin/sh\necho {name} "$@" >> {tmp_path}/calls\n{lines}')
        (tmp_path / name).chmod(0o755)

    return write


def calls(directory: Path) -> list[str]:
    """Return the programs that were run, with their arguments."""
    return (directory / "calls").read_text().splitlines()


def failure(kind: str, phase: str = PREPARE, **options: str) -> str:
    """Return why a hook fails."""
    with pytest.raises(HookFailedError) as caught:
        perform(kind, phase, options, EVENT, 60.0)
    return str(caught.value)


def test_slurm_host_with_several_nodes_must_name_one(script: Script) -> None:
    script("scontrol", "n1 n1-gpu\n")
    assert failure("slurm") == "slurm.conf has 2 nodes (n1 n1-gpu) on this host: set the option node"
    script("scontrol")
    assert failure("slurm") == "slurm.conf has no node on this host: set the option node"


def test_all_nodes_of_slurm_are_no_node() -> None:
    assert "node must be the name of one node" in failure("slurm", node="ALL")
    assert "node must be the name of one node" in failure("slurm", node="n[1-9]")


def test_slurm_unknown_node_fails_at_once(script: Script) -> None:
    script("scontrol", "Node nx not found\n", 1)
    assert failure("slurm", node="nx") == "scontrol failed: Node nx not found"


def test_slurm_jobs_not_requeued_are_named(script: Script, tmp_path: Path) -> None:
    refuse = "case $1 in requeue) echo 'job is not requeueable' >&2; exit 1;; esac"
    script("scontrol", NODE.format("MIXED+DRAIN", ""), when="*show*", otherwise=refuse)
    script("squeue", "7 RUNNING\n8 COMPLETING\n")
    said = failure("slurm", node="n1", jobs="requeue")
    assert re.match(r"2 jobs on n1: 7 RUNNING \(job is not requeueable\), 8 COMPLETING, after \d+ (s|min .*)$", said)
    assert [call for call in calls(tmp_path) if "requeue" in call] == ["scontrol requeue 7"]


def test_slurm_node_without_slurmd_is_not_resumed(script: Script, tmp_path: Path) -> None:
    reason = "Reason=Forewarn: Reboot event E1 [root@2026-01-01T00:00:00]"
    script("scontrol", NODE.format("DOWN+DRAIN+NOT_RESPONDING", reason), when="*show*")
    assert "its slurmd has not registered again: see systemctl status slurmd" in failure("slurm", RECOVER, node="n1")
    assert not [call for call in calls(tmp_path) if "resume" in call]


def test_a_rabbitmq_that_is_not_running_is_said(script: Script) -> None:
    for program in ("rabbitmq-diagnostics", "rabbitmq-upgrade"):
        script(program, "Error: unable to perform an operation on node 'rabbit@r1'. Please see diagnostics\n", 69)
    assert "unable to perform an operation on node 'rabbit@r1'" in failure("rabbitmq")
    assert "unable to perform an operation on node 'rabbit@r1'" in failure("rabbitmq", RECOVER)


def test_rabbitmq_unknown_command_fails_at_once(script: Script) -> None:
    script("rabbitmq-upgrade")
    script("rabbitmq-diagnostics", "status is no command\n", 64)
    assert failure("rabbitmq") == "rabbitmq-diagnostics status failed: status is no command"


def test_rabbitmq_node_needed_for_quorum_is_not_drained(script: Script, tmp_path: Path) -> None:
    script("rabbitmq-diagnostics", 'Asking...\n{"is_under_maintenance": false}')
    script("rabbitmq-upgrade", "time is over\n", 69, when="await*")
    said = failure("rabbitmq", node="rabbit@r1")
    assert said.startswith("some quorum queue has no member online to spare")
    assert not [call for call in calls(tmp_path) if "drain" in call]
    assert "rabbitmq-diagnostics --silent status --formatter json --node rabbit@r1" in calls(tmp_path)


def test_rabbitmq_maintenance_of_others_is_not_ended(script: Script, tmp_path: Path) -> None:
    script("rabbitmq-diagnostics", '{"is_under_maintenance": true}')
    script("rabbitmq-upgrade")
    perform("rabbitmq", RECOVER, {}, EVENT, 60.0)
    assert not [call for call in calls(tmp_path) if "revive" in call]


def test_rabbitmq_remaining_leaders_are_named(script: Script) -> None:
    script("rabbitmq-diagnostics", '{"is_under_maintenance": true}')
    script("rabbitmq-upgrade")
    script("rabbitmqctl", '[{"name": "a", "type": "quorum"}, {"name": "b", "type": "classic"}]')
    assert failure("rabbitmq").startswith("this node still leads a, after")


def pacemaker(
    script: Script, where: str = "p1", standby: str = "false", other: str = "true", managed: str = "true"
) -> None:
    script("setpriv", otherwise='while [ "$1" != -- ]; do shift; done; shift; exec "$@"', when="nothing")
    script("crm_node", "p1\n")
    script("crm_mon", MONITOR.format(where=where, standby=standby, other=other, managed=managed))
    script("crm_attribute")


def test_pacemaker_service_without_another_node_is_not_stopped(script: Script, tmp_path: Path) -> None:
    pacemaker(script, other="false")
    assert failure("pacemaker").startswith("no other node is online to take what runs on p1: web")
    assert not [call for call in calls(tmp_path) if "crm_attribute" in call and "setpriv" not in call]


def test_what_pacemaker_does_not_manage_is_named(script: Script) -> None:
    pacemaker(script, standby="true", managed="false")
    assert failure("pacemaker").startswith("on p1 there still runs web (unmanaged)")


def test_pacemaker_standby_is_not_requested_twice(script: Script, tmp_path: Path) -> None:
    pacemaker(script, where="p2", standby="true")
    perform("pacemaker", PREPARE, {}, EVENT, 60.0)
    assert not [call for call in calls(tmp_path) if call.startswith("crm_attribute")]


@pytest.mark.parametrize("text", ["not XML", "<pacemaker-result/>"])
def test_nonsense_of_pacemaker_is_a_failure(text: str, script: Script) -> None:
    pacemaker(script)
    script("crm_mon", text)
    assert re.match("crm_mon answered no XML|the cluster does not know p1 yet", failure("pacemaker"))


def test_pacemaker_without_permission_is_not_waited_for(script: Script) -> None:
    pacemaker(script)
    script("crm_node", "Permission denied\n", 4)
    assert failure("pacemaker") == "crm_node failed: Permission denied"
