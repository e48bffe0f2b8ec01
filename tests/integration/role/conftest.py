# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A VM with Windows that is not there, and a first rollout to it, which costs some seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tools.sites.windows_plays import PlaybookRun, WindowsPlays, embeddable

POLICY = """\
name: web
description: Freezes pass.
rule:
  match: [{id: freeze, condition: event.EventType == "Freeze", output: approve}]
"""


@pytest.fixture(scope="module")
def plays(tmp_path_factory: pytest.TempPathFactory, collections_path: Path, repository: Path) -> WindowsPlays:
    """Return a directory with playbooks, whose name is not ASCII, with policies and hooks."""
    directory = tmp_path_factory.mktemp("windows é")
    (directory / "web.yml").write_text(POLICY)
    (directory / "more.yml").write_text(POLICY.replace('"Freeze"', '"Freeze" || event.EventType == "Reboot"'))
    (directory / "hooks" / "of web").mkdir(parents=True)
    (directory / "hooks" / "drain.cmd").write_text("exit 0\r\n")
    (directory / "hooks" / "of web" / "wait.ps1").write_text("exit 0\r\n")
    return WindowsPlays(directory, collections_path, repository)


@pytest.fixture(scope="module")
def given(plays: WindowsPlays) -> dict[str, Any]:
    """Return the variables of a rollout."""
    return {
        "forewarn_policies": ["web.yml"],
        "forewarn_hooks": ["hooks"],
        "forewarn_credentials": {"token": "hunter2"},
        "forewarn_windows_python": embeddable(plays.directory / "python embed ü.zip"),
        "forewarn_health_seconds": 0,
    }


@pytest.fixture(scope="module")
def first(plays: WindowsPlays, given: dict[str, Any]) -> PlaybookRun:
    """Return how the first rollout to the VM ``vm`` ended. Tests change copies of it."""
    plays.host("vm")
    played = plays.play("forewarn.azure.rollout", "-vvv", limit="vm", **given)
    assert played.code == 0, played.text[-6000:]
    return played
