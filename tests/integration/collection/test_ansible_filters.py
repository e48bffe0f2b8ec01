# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters and the test of the collection in a playbook, by the names that users write."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from forewarn.emulator.client import EmulatorClient
from forewarn.emulator.server import EmulatorServer
from tools.sites.adhoc import AdHoc
from tools.sites.ansible_cores import ansible
from tools.sites.commands import run_program

pytestmark = pytest.mark.in_turn(3)

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


@pytest.fixture
def play(tmp_path: Path, collections_path: Path) -> Iterator[Callable[[str], str]]:
    """Run a playbook on a VM that knows its ``endpoint``, for which a freeze and a reboot are ahead."""
    adhoc = AdHoc(tmp_path, collections_path)

    def run(playbook: str) -> str:
        (tmp_path / "play.yml").write_text(playbook)
        variables = f"ansible_connection=local ansible_python_interpreter={sys.executable}"
        (tmp_path / "hosts").write_text(f"vm {variables} endpoint={emulator.vm_endpoint('web_0')}\n")
        command = [ansible("ansible-playbook"), "-i", "hosts", "play.yml"]
        process = run_program(*command, cwd=tmp_path, env=adhoc.environ)
        assert process.returncode == 0, process.stdout + process.stderr
        return process.stdout

    with EmulatorServer(vms=["web_0"]) as server, EmulatorClient(server.url) as emulator:
        for type_ in ("Freeze", "Reboot"):
            emulator.schedule(type_, ["web_0"], notice_seconds=890, duration_seconds=5)
        yield run


def test_a_playbook_decides_by_filter(play: Callable[[str], str], tmp_path: Path) -> None:
    (tmp_path / "freezes.yml").write_text(POLICY)
    play(PLAYBOOK)


def test_the_playbook_of_the_documentation_works(play: Callable[[str], str], tmp_path: Path, repository: Path) -> None:
    """The action group gives all tasks an endpoint; docs/adhoc.md has a VM's there."""
    page = (repository / "docs" / "adhoc.md").read_text()
    (playbook,) = (block.split("```")[0] for block in page.split("```yaml\n")[1:] if "module_defaults" in block)
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "web-tier.yml").write_text(
        'name: all\nrule: {match: [{condition: event.EventSource == "Platform", output: approve}]}\n'
    )
    for old, new in (("hosts: azure", "hosts: vm"), ("{endpoint: auto}", "{endpoint: '{{ endpoint }}'}")):
        assert old in playbook
        playbook = playbook.replace(old, new)
    assert '"msg": true' in play(playbook)


@pytest.mark.parametrize(("kind", "name"), [("filter", "decide"), ("filter", "cel"), ("test", "approved")])
def test_they_are_documented(tmp_path: Path, collections_path: Path, kind: str, name: str) -> None:
    command = [ansible("ansible-doc"), "--type", kind, f"forewarn.azure.{name}"]
    assert "EXAMPLES" in run_program(*command, env=AdHoc(tmp_path, collections_path).environ).stdout
