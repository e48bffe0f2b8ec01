# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters and the test of the collection in a playbook, by the names that users write."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from adhoc import AdHoc
from forewarn.emulator.client import EmulatorClient
from forewarn.emulator.server import EmulatorServer

PLAYBOOK = """\
- hosts: vm
  gather_facts: false
  tasks:
    - forewarn.azure.scheduled_events: {endpoint: "{{ endpoint }}"}
      register: ahead
    - ansible.builtin.assert:
        that:
          - decisions | length == 2
          - decisions | select('forewarn.azure.approved') | map(attribute='event_type') == ['Freeze']
          - >-
            ahead.events[0] | forewarn.azure.cel("notice_seconds < 900.0 && 'web_0' in resources")
      vars:
        decisions: "{{ ahead | forewarn.azure.decide(playbook_dir ~ '/freezes.yml') }}"
"""
POLICY = """\
name: freezes
description: Freezes of this VM pass.
rule: {match: [{id: mine, condition: event.EventType == "Freeze" && affects_me, output: approve}]}
"""


def test_a_playbook_decides_by_filter(tmp_path: Path, collections_path: Path) -> None:
    adhoc = AdHoc(tmp_path, collections_path)
    (tmp_path / "play.yml").write_text(PLAYBOOK)
    (tmp_path / "freezes.yml").write_text(POLICY)
    with EmulatorServer(vms=["web_0"]) as server, EmulatorClient(server.url) as emulator:
        for type_ in ("Freeze", "Reboot"):
            emulator.schedule(type_, ["web_0"], notice_seconds=890)
        variables = f"ansible_connection=local ansible_python_interpreter={sys.executable}"
        (tmp_path / "hosts").write_text(f"vm {variables} endpoint={emulator.vm_endpoint('web_0')}\n")
        command = [str(Path(sys.executable).parent / "ansible-playbook"), "-i", "hosts", "play.yml"]
        process = subprocess.run(
            command, cwd=tmp_path, env=adhoc.environ, capture_output=True, text=True, timeout=120, check=False
        )
    assert process.returncode == 0, process.stdout + process.stderr


@pytest.mark.parametrize(("kind", "name"), [("filter", "decide"), ("filter", "cel"), ("test", "approved")])
def test_they_are_documented(tmp_path: Path, collections_path: Path, kind: str, name: str) -> None:
    command = [str(Path(sys.executable).parent / "ansible-doc"), "--type", kind, f"forewarn.azure.{name}"]
    environ = AdHoc(tmp_path, collections_path).environ
    process = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=True)
    assert "EXAMPLES" in process.stdout
