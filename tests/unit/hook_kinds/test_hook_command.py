# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn hook``: the kinds are listed and explained, and one is tried for real."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from forewarn import hook_kinds
from forewarn.cli.main import main

SAVE = "#!/bin/sh\necho $1 >> ${0%/*}/said\n"


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a program that writes the file "said" beside it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    program = tmp_path / "worker"
    program.write_text(SAVE)
    program.chmod(0o755)
    return program


def test_kinds_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hook", "list"]) == 0
    shown = capsys.readouterr().out
    assert main(["hook", "list", "--json"]) == 0
    kinds = json.loads(capsys.readouterr().out)["kinds"]
    assert [kind["name"] for kind in kinds] == list(hook_kinds.NAMES)
    assert all(kind["name"] in shown and kind["summary"] in shown for kind in kinds)


@pytest.mark.parametrize("name", hook_kinds.NAMES)
def test_a_kind_is_explained(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    kind = hook_kinds.find(name)
    assert kind is not None
    assert main(["hook", "show", name]) == 0
    shown = capsys.readouterr().out
    for text in (kind.summary, kind.prepares, kind.recovers, kind.effect, kind.requirements):
        assert text in shown
    assert all(f"\n{option.name} " in shown for option in kind.options)
    assert main(["hook", "show", name, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["timeout_seconds"] == kind.timeout_seconds


def test_a_hook_is_tried_and_undone(worker: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = [f"file={tmp_path}/said", f"run={worker} save", f"restore={worker} 'restore it'", "timeout=20s"]
    assert main(["hook", "try", "checkpoint", *options, "--prepare"]) == 0
    assert main(["hook", "try", "checkpoint", *options, "--recover"]) == 0
    assert (tmp_path / "said").read_text() == "save\nrestore it\n"
    assert capsys.readouterr().out.splitlines()[-1] == "it is restored"


def test_options_may_follow_the_phase(worker: Path, tmp_path: Path) -> None:
    options = [f"file={tmp_path}/said", f"run={worker} save"]
    assert (
        main(["hook", "try", "checkpoint", options[0], "--prepare", options[1], "--type", "Freeze", "timeout=9s"]) == 0
    )
    assert (tmp_path / "said").read_text() == "save\n"


def test_a_hook_without_effect_is_a_failure(tmp_path: Path, worker: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = [f"file={tmp_path}/never", f"run={sys.executable} -V", "timeout=1s"]
    assert main(["hook", "try", "checkpoint", *options, "--prepare"]) == 1
    assert "failed: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["nothing", "--prepare"], "There is no kind of hook nothing here."),
        (["haproxy", "server=web/a", "--prepare"], "socket is missing."),
        (["haproxy", "sever=web/a", "--prepare"], "haproxy has no option sever."),
        (["haproxy", "web/a", "--prepare"], "web/a is not of the form OPTION=VALUE."),
        (["galera", "remaining=two", "--prepare"], "remaining must be a whole number, not 'two'."),
        (["systemd", "unit=a.service", "block=maybe", "--prepare"], "block must be true or false, not 'maybe'."),
        (["probe", "wait=5", "--prepare"], "wait is not a duration: 5."),
    ],
)
def test_what_is_wrong_is_said(arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hook", "try", *arguments]) == 2
    assert error in capsys.readouterr().err
