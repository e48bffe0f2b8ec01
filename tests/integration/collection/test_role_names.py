# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A misspelled variable ends each playbook, and the role, before a host is asked: no default stands in for it."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tools.generators.misspelled import misspelled
from tools.sites.adhoc import AdHoc
from tools.sites.ansible_cores import ansible
from tools.sites.commands import run_program
from tools.suite.sizes import SEED, in_turn

pytestmark = pytest.mark.in_turn(3)

PLAYBOOKS = sorted({path.stem for path in (Path(__file__).parents[3] / "playbooks").glob("*.yml")} - {"variables"})
ROLE = "- {hosts: all, gather_facts: false, vars: {forewarn_dri_run: true}, roles: [forewarn.azure.forewarn]}\n"
NOWHERE = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 9}


class Control:
    """Plays playbooks on hosts where nobody listens."""

    def __init__(self, directory: Path, collections_path: Path) -> None:
        self.directory = directory
        self.environ = AdHoc(directory, collections_path).environ

    def play(self, book: str, given: Mapping[str, Any], hosts: Mapping[str, Mapping[str, Any]], *options: str) -> str:
        """Return what was written. AssertionError if all went well."""
        (self.directory / "given.json").write_text(json.dumps(given))
        inventory = {"all": {"children": {"etcd": {"hosts": {name: {**NOWHERE, **of} for name, of in hosts.items()}}}}}
        (self.directory / "hosts.json").write_text(json.dumps(inventory))
        process = run_program(
            *(ansible("ansible-playbook"), "-i", "hosts.json", "-e", "@given.json", *options, book),
            cwd=self.directory,
            env=self.environ,
        )
        assert process.returncode != 0, process.stdout
        return process.stdout + process.stderr


@pytest.fixture
def control(tmp_path: Path, collections_path: Path, monkeypatch: pytest.MonkeyPatch) -> Control:
    monkeypatch.syspath_prepend(str(collections_path))
    return Control(tmp_path, collections_path)


def known() -> frozenset[str]:
    module = importlib.import_module("ansible_collections.forewarn.azure.plugins.plugin_utils._variables")
    found: frozenset[str] = module.known()
    return found


@pytest.mark.parametrize("name", in_turn(PLAYBOOKS, 2))
def test_misspelled_variable_ends_a_playbook_before_connecting(control: Control, name: str) -> None:
    random = Random(f"{name}{SEED}")
    slips = {random.choice(sorted(misspelled(meant) - known())): meant for meant in sorted(known())}
    said = control.play(f"forewarn.azure.{name}", dict.fromkeys(slips, "x"), {"a": {}, "b": {}})
    assert "UNREACHABLE" not in said
    sentence = "{} is no variable of forewarn.azure. Did you mean {}?"
    missing = [slip for slip, meant in slips.items() if sentence.format(slip, meant) not in said]
    assert missing == []


def test_it_is_said_on_which_hosts_it_is(control: Control) -> None:
    said = control.play("forewarn.azure.status", {}, {"a": {}, "b": {"forewarn_polices": "policies"}, "c": {}})
    assert "forewarn_polices is no variable of forewarn.azure (on b). Did you mean forewarn_policies?" in said
    assert "UNREACHABLE" not in said


@pytest.mark.parametrize("state", ["present", "absent"])
def test_misspelled_variable_ends_the_role_before_connecting(control: Control, state: str) -> None:
    """In the inventory, on the command line, or in a play. What is beside the role's name, Ansible refuses itself."""
    (control.directory / "site.yml").write_text(ROLE)
    hosts = {"a": {}, "b": {"forewarn_hook": "x"}}
    said = control.play("site.yml", {"forewarn_parms": {}, "forewarn_state": state}, hosts)
    assert "UNREACHABLE" not in said
    for slip, meant in (("dri_run", "dry_run"), ("hook", "hooks"), ("parms", "params")):
        assert f"forewarn_{slip} is no variable of forewarn.azure. Did you mean forewarn_{meant}?" in said


@pytest.mark.parametrize("name", in_turn(["drill", "remove", "status"]))
def test_no_known_variable_is_refused(control: Control, name: str) -> None:
    """Whoever keeps all of them in one place can run every playbook: here, until no host is reached."""
    given = {each: "x" for each in known() if each not in ("forewarn_hosts", "forewarn_state")}
    said = control.play(f"forewarn.azure.{name}", given, {"a": {}})
    assert "is no variable" not in said
    assert "UNREACHABLE" in said or "not reached" in said or "forewarn_dry_run" in said, said
