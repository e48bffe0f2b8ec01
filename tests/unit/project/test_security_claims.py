# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every claim of docs/SECURITY.md names its tests, and they exist. Also claims that no module keeps by itself."""

from __future__ import annotations

import ast
import json
import os
import re
import threading
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from forewarn.cli.main import main
from forewarn.events import Event
from forewarn.runner.hooks import commands
from forewarn.runner.hooks.executor import Executor, HookResult
from tools.fixtures.policy_data import artifact_data, policy

ARTIFACT = json.dumps(artifact_data(policy({"output": "hold"})))
REFERENCE = re.compile(r"`((?:unit|integration)/[\w/]+\.py)::(\w+)`")


def claims(text: str) -> Iterator[tuple[str, str]]:
    """Yield what each row of each table claims, and its last cell."""
    for line in text.splitlines():
        if not line.startswith("|") or set(line) <= set("|- "):
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[-1] != "Shown by":
            yield cells[0], cells[-1]


@cache
def functions(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_bytes())
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def unfounded(text: str, tests: Path) -> list[str]:
    """Return what is wrong with the claims of a text."""
    found = []
    for claim, shown_by in claims(text):
        references = REFERENCE.findall(shown_by)
        if not references:
            found.append(f"{claim}: no test")
        if REFERENCE.sub("", shown_by).strip(", "):
            found.append(f"{claim}: cannot read {shown_by}")
        for file, name in references:
            if not (tests / file).is_file() or name not in functions(tests / file) or not name.startswith("test_"):
                found.append(f"{claim}: there is no {file}::{name}")
    return found


def test_every_claim_names_tests_that_exist(repository: Path) -> None:
    text = (repository / "docs" / "SECURITY.md").read_text()
    assert unfounded(text, repository / "tests") == []
    assert len(list(claims(text))) > 20


@pytest.mark.parametrize(
    ("cell", "wrong"),
    [
        ("`unit/project/test_security_claims.py::test_a_claim_without_a_test_is_found`", None),
        ("`unit/project/test_security_claims.py::test_none`", "there is no"),
        ("`unit/project/test_security_claims.py::claims`", "there is no"),
        ("`unit/test_none.py::test_none`", "there is no"),
        ("obvious", "no test"),
        ("`unit/project/test_security_claims.py::test_a_claim_without_a_test_is_found`, or so", "cannot read"),
    ],
)
def test_a_claim_without_a_test_is_found(repository: Path, cell: str, wrong: str | None) -> None:
    found = unfounded(f"| Claim | Shown by |\n| --- | --- |\n| It is safe | {cell} |\n", repository / "tests")
    assert (wrong is None and not found) or (wrong is not None and wrong in found[0])


def run(hook: Mapping[str, Any], description: str = "") -> HookResult:
    event = Event("C7-A", "Reboot", resources=("web_0",), event_status="Scheduled", description=description)
    decision = {"output": "approve", "policy": "web-tier", "rule": "drain", "reason": "because"}
    occasion = commands.HookContext("prepare", None, 1, False, event, "web_0", decision, None, 60.0, 0)
    ended = threading.Event()
    executor = Executor(ended.set, grace_seconds=0.1)
    try:
        executor.start("hook", commands.command(hook, occasion, commands.HookSettings(), 20))
        assert ended.wait(30)
        ((_, outcome),) = executor.take_results()
        return outcome
    finally:
        executor.close()


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "hook"
    path.touch(mode=0o755)
    return path


def test_a_hook_gets_nothing_of_the_runners_environment(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NOTIFY_SOCKET", "WATCHDOG_USEC", "CREDENTIALS_DIRECTORY", "LD_PRELOAD", "PYTHONPATH", "SECRET"):
        monkeypatch.setenv(name, "of the runner")
    monkeypatch.setenv("PATH", f"/of-the-runner:{os.environ['PATH']}")
    program.write_text("#!/bin/sh\nexec env -0\n")
    outcome = run({"run": [str(program)]})
    assert outcome.result == "succeeded", outcome.reason
    given = dict(line.split("=", 1) for line in outcome.output.split("\0") if line)
    for name in ("PWD", "SHLVL", "_", "OLDPWD"):  # which sh sets by itself
        given.pop(name, None)
    assert {name for name in given if not name.startswith("FOREWARN_")} == {"PATH", "LANG", "HOME"}
    assert "of the runner" not in outcome.output
    assert "/of-the-runner" not in outcome.output


def test_no_shell_interprets_policy_or_service_text(program: Path, tmp_path: Path) -> None:
    touch = f"touch {tmp_path}/owned"
    nasty = f"; {touch}; $({touch}) `{touch}` | & > < * ~ $PATH \\ ' \" \n{touch}\n\t#"
    program.write_text(
        "#!/bin/sh\n"
        'printf "%s" "$1" > "$2.argument"\n'
        'printf "%s" "$FOREWARN_DESCRIPTION" > "$2.description"\n'
        'cat > "$2.json"\n'
    )
    outcome = run({"run": [str(program), nasty, str(program)]}, description=nasty)
    assert outcome.result == "succeeded", outcome.reason
    assert Path(f"{program}.argument").read_text() == nasty
    assert Path(f"{program}.description").read_text() == nasty
    assert json.loads(Path(f"{program}.json").read_text())["event"]["Description"] == nasty
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize("option", ["--artifact", "--shadow", "--config"])
def test_runner_refuses_files_writable_by_others(
    tmp_path: Path, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    good = {
        "--artifact": tmp_path / "policy.json",
        "--shadow": tmp_path / "other.json",
        "--config": tmp_path / "c.json",
    }
    for path in good.values():
        path.write_text(ARTIFACT if path.name != "c.json" else "{}")
    good[option].chmod(0o666)
    arguments = [word for name, path in good.items() for word in (name, str(path))]
    assert main(["run", "--once", "--dry-run", *arguments]) == 2
    assert f"{good[option]} can be changed by others: it is writable by" in capsys.readouterr().err


@pytest.mark.parametrize("by", ["option", "environment", "configuration"])
def test_the_runner_does_not_believe_a_service_elsewhere(
    tmp_path: Path, by: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    far = "http://192.0.2.1:9"
    artifact, config = tmp_path / "policy.json", tmp_path / "config.json"
    artifact.write_text(ARTIFACT)
    config.write_text(json.dumps({"endpoint": far} if by == "configuration" else {}))
    arguments = ["run", "--once", "--dry-run", "--artifact", str(artifact), "--config", str(config)]
    if by == "option":
        arguments += ["--endpoint", far]
    if by == "environment":
        monkeypatch.setenv("FOREWARN_ENDPOINT", far)
    # The guard of the tests lets no request out: one would end in its error, not in this one.
    assert main(arguments) == 2
    assert f"endpoint {far}: 192.0.2.1 is neither link-local nor loopback" in capsys.readouterr().err
