# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn status`` shows what the runner lacks, and whether it would start again with what is on disk."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest
from forewarn import __version__
from forewarn.cli.run import next_start
from forewarn.runner.hooks.commands import ROOT
from tools.fixtures.recorded_state import RecordedState, Run
from tools.sites.runner_process import compiled, program

POLICY = "name: freezes\nrule:\n  match:\n    - {output: approve, prepare: [{run: [HOOK]}]}\n"
SOURCE = {"repository": "https://git.example/p.git", "ref": "main", "commit": "0123456789abcdef", "modified": False}


class Installation:
    """What a role has installed, and a runner that has loaded it."""

    def __init__(self, directory: Path, recorded: RecordedState, status: Run) -> None:
        self.directory = directory
        self.hook = program(directory / "drain", "true")
        self.artifact = compiled(directory, POLICY.replace("HOOK", str(self.hook)))
        self.config = directory / "config.json"
        self.config.write_text('{"artifact": "policy.json"}')
        self.program = directory / "forewarn.pyz"
        self.install(__version__)
        self._recorded = recorded
        self._status = status
        self.fields: dict[str, Any] = {
            "version": __version__,
            "options": {"config": str(self.config)},
            "config": f"sha256:{hashlib.sha256(self.config.read_bytes()).hexdigest()}",
            "policy": json.loads(self.artifact.read_text())["digest"],
            "policies": ["freezes"],
            "program": str(self.program),
            "source": None,
            "missing": [],
        }

    def install(self, version: str) -> None:
        with zipfile.ZipFile(self.program, "w") as bundle:
            bundle.writestr("forewarn/__init__.py", f'"""x"""\n__version__ = "{version}"  # y\n')

    def status(self, **fields: Any) -> dict[str, Any]:
        """Return what ``status --json`` writes of a runner with these fields in its heartbeat."""
        self._recorded.beat(**{**self.fields, **fields})
        shown = self._status("--json")
        report: dict[str, Any] = json.loads(shown.out)
        assert shown.code == (1 if report["problems"] else 0)
        return report

    def lines(self, **fields: Any) -> list[str]:
        self._recorded.beat(**{**self.fields, **fields})
        return self._status().lines


@pytest.fixture
def installed(tmp_path: Path, recorded: RecordedState, status: Run) -> Installation:
    """Return what is on disk as it was loaded."""
    return Installation(tmp_path, recorded, status)


def test_unchanged_host_has_no_problem(installed: Installation) -> None:
    report = installed.status(source=SOURCE)
    assert report["problems"] == []
    assert report["runner"]["config"] == report["on_disk"]["digest"] == installed.fields["config"]
    assert report["runner"]["policy"] == report["on_disk"]["policy"]
    assert (report["runner"]["policies"], report["runner"]["source"]) == (["freezes"], SOURCE)
    assert report["on_disk"] == {
        "config": str(installed.config),
        "digest": installed.fields["config"],
        "policy": installed.fields["policy"],
        "refused": None,
        "error": None,
        "program": str(installed.program),
        "version": __version__,
    }
    lines = installed.lines(source={**SOURCE, "modified": True})
    place = lines.index("policy   freezes")
    assert lines[place + 1 : place + 3] == [
        f"         {installed.fields['policy']}",
        "         main commit 0123456789ab of https://git.example/p.git, with changes that are not in it",
    ]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('{"artifact": "policy.json", "interval": 500}', "the runner would not start again: the interval is not"),
        ('{"artifact": "policy.json", "interval": "5"}', "the runner would not start again: "),
        ('{"artifact": "policy.json", "metrics_listen": "0.0.0.0:1"}', "the runner would not start again: "),
        ("{", "the runner would not start again: "),
        ('{"artifact": "policy.json" }', "the configuration /"),
    ],
)
def test_a_configuration_that_was_changed(installed: Installation, content: str, problem: str) -> None:
    installed.config.write_text(content)
    report = installed.status()
    (said,) = report["problems"]
    assert said.startswith(problem)
    assert ("would not" in said) is (report["on_disk"]["error"] is not None)
    assert any(line.startswith("on disk") for line in installed.lines())
    # Once a reload is refused for that reason, it is not said twice.
    error = report["on_disk"]["error"]
    if error is not None:
        (said,) = installed.status(reload_problem=error[:30] + "…")["problems"]
        assert said.startswith("the last reload was refused")


def test_a_configuration_that_is_gone(installed: Installation) -> None:
    installed.config.unlink()
    (said,) = installed.status()["problems"]
    assert said.startswith(f"the runner would not start again: configuration {installed.config}: No such file")


def test_policies_that_were_changed_or_damaged(installed: Installation) -> None:
    compiled(installed.directory, POLICY.replace("HOOK", "/bin/true"))
    (said,) = installed.status()["problems"]
    assert said.startswith("the policies on disk have changed since the runner loaded them, to sha256:")
    installed.artifact.write_text(installed.artifact.read_text().replace("freezes", "frozen"))
    (said,) = installed.status()["problems"]
    assert "digest does not match" in said


def test_program_writable_by_others_prevents_the_start(installed: Installation) -> None:
    installed.hook.chmod(0o777)
    (said,) = installed.status()["problems"]
    assert said.startswith(f"the runner would not start again: hook program {installed.hook} can be changed by others")


def test_an_upgrade_without_a_restart(installed: Installation) -> None:
    installed.install("9.9.9")
    (said,) = installed.status()["problems"]
    assert said == f"forewarn {__version__} is running, and {installed.program} is now 9.9.9: restart it"
    for spoil in (lambda: installed.program.write_text("not a zip file"), installed.program.unlink):
        spoil()
        (said,) = installed.status()["problems"]
        assert said == f"the runner would not start again: its program {installed.program} is gone"


def test_a_runner_from_a_directory(installed: Installation) -> None:
    assert installed.status(program=ROOT)["on_disk"]["version"] == __version__


def test_stopped_runner_reports_why_it_would_fail(installed: Installation) -> None:
    """What it had loaded, and lacked then, does not matter any more."""
    installed.config.write_text('{"artifact": "policy.json"} ')
    installed.install("9.9.9")
    gone = installed.status(pid=2**22 + 1, missing=["x"])
    assert [text.partition(":")[0] for text in gone["problems"]] == ["the runner is not running"]
    installed.config.write_text('{"artifact": "nowhere.json"}')
    gone = installed.status(pid=2**22 + 1)
    assert [text.partition(":")[0] for text in gone["problems"]] == [
        "the runner is not running",
        "the runner would not start",
    ]


def test_what_hooks_lack(installed: Installation) -> None:
    missing = ["rule drain of policy web-tier: there is no program /usr/local/bin/drain", "…"]
    report = installed.status(missing=missing)
    assert report["runner"]["missing"] == missing
    assert report["problems"] == [f"a hook lacks what it needs: {text}" for text in missing]
    assert f"hooks    one lacks what it needs: {missing[0]}" in installed.lines(missing=missing)


def test_options_of_the_command_line_count(installed: Installation) -> None:
    config = str(installed.config)
    assert installed.status(options={"config": config, "interval": 5.0, "vm_name": "web_0"})["problems"] == []
    (said,) = installed.status(options={"config": config, "param": ["nobody=1"]})["problems"]
    assert "no policy declares a parameter nobody" in said
    report = installed.status(options={"artifact": str(installed.artifact)}, config=None)
    assert (report["problems"], report["on_disk"]["config"], report["on_disk"]["digest"]) == ([], None, None)


def test_a_dry_run_that_is_to_go_live(installed: Installation) -> None:
    """Its next start uses the live runner's directory, so the mark of this one says nothing against it."""
    (installed.directory / "mode").write_text("dry-run\n")
    assert installed.status(dry_run=True)["problems"] == []
    assert installed.status(dry_run=True, options={**installed.fields["options"], "dry_run": True})["problems"] == []


def test_nothing_is_said_of_what_is_not_known(installed: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    assert installed.status(options=None, program=None, config=None)["on_disk"] is None
    installed.config.write_text("{")
    odd: list[Any] = ["x", [], 3, True]
    for value in odd:
        assert installed.status(options=value)["problems"] == []
        report = installed.status(policies=value, source=value, missing=value, program=value, config=value)
        assert len(report["problems"]) <= 2
    # Another user's runner trusts files of that user.
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert next_start.examine(str(installed.directory), installed.fields) is None
