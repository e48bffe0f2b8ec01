# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A playbook with every plugin by each ansible-core, on a control node without our libraries.

``make test-ansible`` runs all tests of the plugins with each of them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from forewarn.compiler.policies import load_policies
from forewarn.emulator.client import EmulatorClient
from forewarn.emulator.server import EmulatorServer
from tools.sites.adhoc import AdHoc
from tools.sites.ansible_cores import SUPPORTED, ansible
from tools.sites.commands import run_program

_OLDEST, *_BETWEEN, _NEWEST = SUPPORTED  # the newest is that of the other tests too
# As if nothing but ansible-core were installed.
WITHOUT_LIBRARIES = "import sys; sys.modules.update(dict.fromkeys(['celpy', 'jsonschema', 'lark', 'requests']))"
POLICY = """\
name: freezes
rule: {match: [{id: freeze, condition: event.EventType == "Freeze", output: approve}, {id: rest, output: hold}]}
"""
PLAYBOOK = """\
- hosts: all
  gather_facts: false
  module_defaults:
    group/forewarn.azure.service: {endpoint: "{{ endpoint }}"}
  tasks:
    - forewarn.azure.scheduled_events: {}
      register: ahead
    - ansible.builtin.assert:
        that:
          - decisions | map(attribute='rule') == ['rest', 'freeze']
          - decisions[0] is not forewarn.azure.approved
      vars:
        decisions: "{{ ahead | forewarn.azure.decide(playbook_dir ~ '/policy.json') }}"
    - forewarn.azure.scheduled_events: {policies: "{{ playbook_dir }}/policy.json", apply: true}
      register: done
    - ansible.builtin.debug: {msg: "{{ done.msg }}"}
    - name: The library is missing
      forewarn.azure.scheduled_events: {policies: "{{ playbook_dir }}/freezes.yml"}
      register: refused
      failed_when: "'-m pip install cel-python' not in refused.msg"
"""


# What Ansible does before it looks for plugins; then each file of the plugins is a module.
IMPORT = """\
import importlib, sys
from pathlib import Path
from ansible.plugins.loader import init_plugin_loader

init_plugin_loader([sys.argv[1]])
root = Path(sys.argv[1], "ansible_collections/forewarn/azure/plugins")
for path in sorted(root.glob("*/*.py")):
    if path.name != "__init__.py":
        importlib.import_module(f"ansible_collections.forewarn.azure.plugins.{path.parent.name}.{path.stem}")
        print(path.relative_to(root))
"""


@pytest.mark.versions
@pytest.mark.parametrize(
    "version", [pytest.param(one, marks=pytest.mark.full) if one in _BETWEEN else one for one in SUPPORTED]
)
def test_each_plugin_is_imported(tmp_path: Path, collections_path: Path, repository: Path, version: str) -> None:
    python = ansible("ansible", version).with_name("python")
    environ = AdHoc(tmp_path, collections_path).environ
    process = run_program(python, "-c", IMPORT, collections_path, cwd=tmp_path, env=environ)
    assert process.returncode == 0, process.stderr
    plugins = {str(path.relative_to(repository / "plugins")) for path in (repository / "plugins").glob("*/*.py")}
    assert {*process.stdout.split()} == {name for name in plugins if not name.endswith("__init__.py")}
    assert len(plugins) > 10


@pytest.mark.in_turn(3)
@pytest.mark.versions
@pytest.mark.parametrize("version", SUPPORTED)
def test_a_playbook_with_all_plugins(tmp_path: Path, collections_path: Path, version: str) -> None:
    command = ansible("ansible-playbook", version)
    blocked = tmp_path / "blocked"
    blocked.mkdir()
    (blocked / "sitecustomize.py").write_text(WITHOUT_LIBRARIES)
    (tmp_path / "freezes.yml").write_text(POLICY)
    (tmp_path / "policy.json").write_text(json.dumps(load_policies([tmp_path / "freezes.yml"]).data))
    (tmp_path / "play.yml").write_text(PLAYBOOK)
    adhoc = AdHoc(tmp_path, collections_path)
    with EmulatorServer(vms=["web_0"]) as server, EmulatorClient(server.url) as emulator:
        for type_ in ("Reboot", "Freeze"):
            event_id = emulator.schedule(type_, ["web_0"])
        variables: dict[str, Any] = {
            "ansible_connection": "local",
            "ansible_python_interpreter": "{{ ansible_playbook_python }}",
            "endpoint": emulator.vm_endpoint("web_0"),
        }
        (tmp_path / "hosts.json").write_text(json.dumps({"all": {"hosts": {"vm": variables}}}))
        environ = {**adhoc.environ, "PYTHONPATH": str(blocked)}
        process = run_program(command, "-i", "hosts.json", "play.yml", cwd=tmp_path, env=environ)
    assert process.returncode == 0, process.stdout + process.stderr
    assert f"Freeze {event_id}: approved by freezes (rule freeze applies: " in process.stdout
