# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fleet of VMs with Linux and with Windows, which are not there, in one inventory: one table, one page, one check."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tools.sites.windows_plays import PlaybookRun, WindowsPlays
from tools.worlds.fleets import report
from tools.worlds.windows.host import INSTALL

pytestmark = pytest.mark.in_turn(3)

PROGRAM = f"{INSTALL}\\forewarn.cmd"


@pytest.fixture(scope="module")
def fleet(plays: WindowsPlays, first: PlaybookRun) -> WindowsPlays:
    """Return plays on a VM with each system, and on one with Windows that has no runner."""
    plays.hosts["linux"] = {"ansible_connection": "scripted_vm"}
    answer = report(vm="linux")
    script = {"status": [0, answer["stdout"], ""], "history": [0, answer["history"], ""], "in_use": [0, "{}\n", ""]}
    (plays.vms / "linux.json").write_text(json.dumps(script))
    plays.host("bare")
    return plays


def test_one_table_has_both_systems(fleet: WindowsPlays) -> None:
    played = fleet.play("forewarn.azure.status")
    assert "3 hosts, 1 with trouble; 0 events pending" in played.text
    assert f"bare  no runner: {PROGRAM} is not installed on this host" in played.text
    missing = f"if (-not (Test-Path -LiteralPath '{PROGRAM}')) {{ exit 127 }}"
    command = f"{missing}; & '{PROGRAM}' 'status' '--json'; exit $LASTEXITCODE"
    assert fleet.vm("bare").state["calls"] == [{"command": command}]


def test_one_page_has_both_systems(fleet: WindowsPlays) -> None:
    played = fleet.play("forewarn.azure.report", limit="all:!bare", forewarn_report=str(fleet.directory / "fleet.html"))
    assert played.code == 0, played.text[-3000:]
    page = (fleet.directory / "fleet.html").read_text()
    assert all(name in page for name in ("linux", "vm"))
    assert "'history' '--json' '--since' '7d'" in fleet.vm("vm").state["calls"][-1]["command"]


def test_since_that_cmd_would_read_is_refused(fleet: WindowsPlays) -> None:
    played = fleet.play("forewarn.azure.report", limit="vm", forewarn_since="7d & calc")
    assert played.code == 2
    assert "cannot be handed over to forewarn.cmd on Windows, because of '&'" in played.text


def test_policies_are_checked_for_each_system(fleet: WindowsPlays, given: dict[str, Any]) -> None:
    """A rollout to both is refused as a whole, by the host for which a hook is not."""
    policy = "name: unit\ndescription: Drains.\nrule:\n  match:\n    - id: all\n      output: approve\n"
    (fleet.directory / "unit.yml").write_text(policy + "      prepare: [{unit: drain.service, action: start}]\n")
    before = fleet.vm("bare").files
    variables = {**given, "forewarn_policies": ["unit.yml"]}
    played = fleet.play("forewarn.azure.rollout", limit="linux,bare", **variables)
    assert played.code == 2
    assert "'unit' runs on Linux alone: Windows has no systemd" in played.text
    assert "fatal: [bare]" in played.text
    assert "fatal: [linux]" not in played.text
    assert fleet.vm("bare").files == before == {}


def test_pause_reaches_windows_as_one_argument(fleet: WindowsPlays) -> None:
    reason = "a freeze of the whole fleet; ask Zoë"
    played = fleet.play("forewarn.azure.pause", limit="vm", forewarn_pause_for="2h", forewarn_pause_reason=reason)
    assert played.code == 0, played.text[-3000:]
    assert [call["argv"] for call in fleet.vm("vm").asked("win_command")] == [
        [PROGRAM, "pause", "--for=2h", f"--reason={reason}"]
    ]
    refused = fleet.play("forewarn.azure.pause", limit="vm", forewarn_pause_for="2h", forewarn_pause_reason="100%")
    assert refused.code == 2
    assert "because of '%'" in refused.text
    assert fleet.vm("vm").asked("win_command") == []
