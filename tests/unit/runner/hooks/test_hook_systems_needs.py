# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What hooks lack on a system that they are not for: a runner says so before it starts, by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from forewarn.errors import InputError
from forewarn.runner.hooks import needs
from forewarn.system import programs, services, trust
from forewarn.system.common.service_status import RUNNING, ServiceStatus
from forewarn.system.windows.programs import problem
from tools.worlds.fake_services import FakeService, FakeServices


def missing(hook: dict[str, Any]) -> list[str]:
    return [problem.partition(": ")[2] for problem in needs.examine([("p", "drain", hook)]).missing()]


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "TARGET", "windows")
    monkeypatch.setattr(needs, "services", FakeServices(FakeService("W3SVC")))


def test_service_is_refused_on_linux() -> None:
    assert missing({"kind": "service", "options": {"name": "W3SVC"}}) == ["the kind service runs on Windows alone"]


@pytest.mark.usefixtures("windows")
@pytest.mark.parametrize(
    ("hook", "problem"),
    [
        ({"kind": "systemd", "options": {"unit": "a.service"}}, "the kind systemd runs on Linux alone"),
        (
            {"unit": "a.service", "action": "stop"},
            "stop a.service needs systemd, which is on Linux alone: use the kind service for a Windows service",
        ),
        ({"kind": "service", "options": {"name": "Typo"}}, "there is no service Typo"),
    ],
)
def test_hook_of_linux_is_refused_on_windows(hook: dict[str, Any], problem: str) -> None:
    assert missing(hook) == [problem]


@pytest.mark.usefixtures("windows")
def test_hooks_of_windows_lack_nothing_there() -> None:
    assert missing({"kind": "service", "options": {"name": "W3SVC"}}) == []
    assert missing({"kind": "probe", "options": {}}) == []


def test_script_is_refused_for_its_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "drain.cmd"
    script.touch()
    monkeypatch.setattr(trust, "check_program", lambda _path: None)
    hook = {"run": [str(script), "a b", "a&b"]}
    assert missing(hook) == []  # nothing but Windows reads its arguments
    monkeypatch.setattr(programs, "TARGET", "windows")
    monkeypatch.setattr(programs, "problem", problem)
    assert missing(hook) == ["the argument a&b has '&' in it, which cmd.exe would not take as it is"]
    assert missing({"run": hook["run"][:2]}) == []


def test_services_of_windows_are_refused_elsewhere() -> None:
    for ask in (services.query, services.running_dependents, services.stop, services.start):
        with pytest.raises(InputError, match="the kind service needs Windows"):
            ask("W3SVC")
    assert str(ServiceStatus("W3SVC", RUNNING)) == "W3SVC is running"
