# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role refuses for VMs with Windows, in a sentence that says what to do, before anything is changed there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tools.sites.windows_plays import PlaybookRun, WindowsPlays, embeddable

pytestmark = pytest.mark.in_turn(3)

CHECK = """\
- hosts: all
  gather_facts: false
  tasks: [{ansible.builtin.include_role: {name: forewarn.azure.forewarn, tasks_from: check}}]
"""
ROLE = "- {hosts: all, gather_facts: false, roles: [forewarn.azure.forewarn]}\n"
UNIT = "name: unit\ndescription: Drains.\nrule:\n  match:\n    - id: all\n      output: approve\n"
UNIT += "      prepare: [{unit: drain.service, action: start}]\n"
# Host -> variables, and a part of what is said on the control node.
HERE: dict[str, tuple[dict[str, Any], str]] = {
    "no-python": ({"forewarn_windows_python": ""}, "forewarn_windows_python is missing: Windows has no Python"),
    "digest": ({"forewarn_windows_python": {"zip": "python.zip", "sha256": "00"}}, "has the SHA-256 "),
    "no-zip": ({"forewarn_windows_python": {"zip": "none.zip", "sha256": "00"}}, "There is no none.zip in "),
    "quotes": ({"forewarn_windows_python": 'C:\\"P"\\python.exe'}, "which is not the full path of a python.exe"),
    "ascii": ({"forewarn_windows_python": "C:\\Pythön\\python.exe"}, "which is not the full path of a python.exe"),
    "unit": ({"forewarn_policies": ["unit.yml"]}, "'unit' runs on Linux alone"),
    "sudo": ({"ansible_become": True}, "This VM has Windows, where become has no method sudo. Log in there as"),
    "settings": ({"forewarn_unit_settings": ["CPUQuota=50%"]}, "forewarn_unit_settings has no effect on a VM with"),
    "files": ({"forewarn_credential_files": {"a": "/a"}}, "Give their values with forewarn_credentials."),
    "image": ({"forewarn_image": True}, "Roll out to each VM, once it runs."),
    "python": ({"forewarn_python": "/usr/bin/python3"}, "Set forewarn_windows_python."),
}
# Host -> its state, variables, and a part of what is said once it was asked.
THERE: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "user": ({"administrator": False}, {}, "The runner is a system service. Log in to this VM as an administrator."),
    "arm": ({"architecture": "ARM64"}, {}, "is for AMD64, and this VM is ARM64. Name one that is for ARM64."),
    "absent": ({}, {"forewarn_windows_python": "C:\\P\\python.exe"}, "is not a working Python with a pythonw.exe"),
    "old": (
        {"python": {"C:\\P\\python.exe": "3.7 win-amd64"}},
        {"forewarn_windows_python": "C:\\P\\python.exe"},
        "The runner needs Python 3.8 or newer, and C:\\P\\python.exe is Python 3.7.",
    ),
    "shell": (
        {"failing_scripts": {"look": "Access to the CIM resource was denied."}},
        {},
        "Ansible cannot work on this VM: Access to the CIM resource was denied. Log in there as an administrator",
    ),
    "narrow": (
        {"python": {"C:\\P\\python.exe": "3.12 win32"}},
        {"forewarn_windows_python": "C:\\P\\python.exe"},
        "is for x86, and this VM is AMD64.",
    ),
}


@pytest.fixture(scope="module")
def refused(plays: WindowsPlays, given: dict[str, Any]) -> PlaybookRun:
    """Return what is said of all hosts that are refused on the control node, which are not asked."""
    (plays.directory / "unit.yml").write_text(UNIT)
    embeddable(plays.directory / "python.zip")
    for host, (variables, _said) in HERE.items():
        plays.host(host, **{**given, **variables})
    return plays.play(CHECK, "--forks", "4", limit=",".join(HERE))


def said(played: PlaybookRun, host: str) -> str:
    """Return the message of a host that has failed."""
    mark = f"fatal: [{host}]: FAILED! => "
    result, _end = json.JSONDecoder().raw_decode(played.text, played.text.rindex(mark) + len(mark))
    return str(result["msg"])


@pytest.mark.parametrize("host", HERE)
def test_refusal_on_the_control_node_is_one_sentence(plays: WindowsPlays, refused: PlaybookRun, host: str) -> None:
    assert HERE[host][1] in said(refused, host), refused.text[-3000:]
    assert "Nothing was " in said(refused, host)
    assert not (plays.vms / f"{host}.json").exists()


@pytest.fixture(scope="module")
def unsuitable(plays: WindowsPlays, given: dict[str, Any]) -> PlaybookRun:
    """Return what is said of all hosts that are refused once they were asked."""
    for host, (state, variables, _said) in THERE.items():
        plays.host(host, **{**given, **variables})
        plays.change(host, **state)
    return plays.play(ROLE, "--forks", "4", limit=",".join(THERE))


@pytest.mark.parametrize("host", THERE)
def test_unsuitable_vm_is_not_changed(plays: WindowsPlays, unsuitable: PlaybookRun, host: str) -> None:
    assert THERE[host][2] in said(unsuitable, host), unsuitable.text[-3000:]
    assert "Nothing was changed." in said(unsuitable, host)
    assert [call["module"] for call in plays.vm(host).state["calls"]] == ["win_powershell"]
    assert plays.vm(host).files == {}


def test_missing_collection_is_named_for_windows_alone(
    tmp_path: Path, collections_path: Path, repository: Path, given: dict[str, Any]
) -> None:
    plays = WindowsPlays(tmp_path, collections_path, repository, missing=True)
    plays.host("windows")
    plays.hosts["linux"] = {"ansible_connection": "scripted_vm"}
    (tmp_path / "web.yml").write_text("name: web\nrule:\n  match: [{id: all, output: hold}]\n")
    played = plays.play(CHECK, forewarn_policies=["web.yml"])
    assert "ansible-galaxy collection install ansible.windows" in said(played, "windows")
    assert "fatal: [linux]" not in played.text
