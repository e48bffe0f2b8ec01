# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files on Windows that others may change are refused, with the command that mends it.

Wine makes owner and access control list of what Linux has. What its icacls.exe would do says nothing: it is a stub.
"""

from __future__ import annotations

import os

import pytest
from tools.worlds.windows.vm import ARTIFACT, CONFIG, DATA, HOOKS, WindowsVm

POLICY = r"""
name: windows
rule:
  match:
    - id: reboot
      condition: event.EventType == "Reboot" && affects_me
      output: approve
      prepare: [{run: ['C:\hooks\drain.cmd']}]
    - {id: rest, output: hold}
"""
EVERYBODY = "*S-1-1-0"


@pytest.fixture(autouse=True)
def installed(vm: WindowsVm) -> None:
    vm.hook("drain")
    vm.policy(POLICY)
    vm.configure()


def check(vm: WindowsVm) -> str:
    """Return what is wrong, or nothing if the service could start."""
    checked = vm.forewarn("run", "--check-config", "--config", CONFIG)
    return checked.stdout + checked.stderr if checked.returncode else ""


def test_what_only_we_may_change_is_accepted(vm: WindowsVm) -> None:
    assert check(vm) == ""


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        (ARTIFACT, ARTIFACT),
        (rf"{DATA}\policies", ARTIFACT),
        (CONFIG, CONFIG),
        (rf"{HOOKS}\drain.cmd", rf"{HOOKS}\drain.cmd"),
        (HOOKS, rf"{HOOKS}\drain.cmd"),
    ],
)
def test_what_everybody_may_change_is_refused(vm: WindowsVm, changed: str, what: str) -> None:
    file = vm.wine.path(changed)
    mode = file.stat().st_mode
    file.chmod(mode | 0o022)
    text = check(vm)
    file.chmod(mode)
    culprit = "it" if changed == what else changed
    assert f"{what} can be changed by others: {culprit} may be changed by Everyone." in text
    assert f'icacls "{changed}" /inheritance:d /remove:g {EVERYBODY}' in text
    assert check(vm) == ""


@pytest.mark.root(reason="only root can give a file to somebody else")
def test_file_of_another_owner_is_refused(vm: WindowsVm) -> None:
    os.chown(vm.wine.path(ARTIFACT), 12345, -1)
    text = check(vm)
    assert f"{ARTIFACT} can be changed by others: it belongs to" in text
    assert f'icacls "{ARTIFACT}" /setowner *S-1-5-32-544' in text
