# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a lab can be had, and what is said where it cannot: skipped on a developer's machine, never in CI."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from . import machine


@pytest.fixture
def able(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Pretend that this machine can have a lab."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda name, path=None: f"/usr/bin/{name}")
    monkeypatch.setattr(machine, "control_groups", lambda: Path("/"))
    return monkeypatch


def test_nothing_is_missing(able: pytest.MonkeyPatch) -> None:
    assert machine.missing() is None


def test_only_root_may(able: pytest.MonkeyPatch) -> None:
    able.setattr(os, "geteuid", lambda: 1000)
    assert "run it as root" in str(machine.missing())


def test_missing_programs_are_named_by_their_packages(able: pytest.MonkeyPatch) -> None:
    absent = ("systemd-nspawn", "ssh", "ssh-keygen")
    able.setattr(shutil, "which", lambda name, path=None: None if name in absent else name)
    assert str(machine.missing()).endswith("apt-get install openssh-client systemd-container")


def test_without_control_groups_there_is_none(able: pytest.MonkeyPatch) -> None:
    able.setattr(machine, "control_groups", lambda: Path("/missing"))
    assert "cgroup2" in str(machine.missing())


def test_a_program_that_fails_or_hangs_says_so() -> None:
    with pytest.raises(machine.LabError, match="sh -c echo why; exit 4 ended with 4:\nwhy"):
        machine.run("sh", "-c", "echo why; exit 4")
    with pytest.raises(machine.LabError, match=r"sleep 60 has not ended within 0\.1 s"):
        machine.run("sleep", "60", timeout=0.1)
