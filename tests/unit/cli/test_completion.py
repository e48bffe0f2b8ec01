# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn --print-completion``, judged by bash, and ``forewarn policy schema``, by jsonschema."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from forewarn.cli import main as entry
from jsonschema import Draft202012Validator


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as exit_:
        entry.main(arguments)
    assert exit_.value.code == 0
    return capsys.readouterr().out


def completed(script: Path, *words: str) -> list[str]:
    """Return what bash offers for the last word."""
    program = (
        f'source {script}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; '
        '_shtab_forewarn; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    command = ["bash", "--norc", "-c", program, "bash", "forewarn", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, cwd=script.parent)
    return done.stdout.split()


def test_bash_completes_every_command_and_its_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "forewarn.bash"
    script.write_text(printed(capsys, "--print-completion", "bash"))
    (tmp_path / "some.yml").touch()
    assert set(completed(script, "")) >= entry.COMMANDS.keys()
    assert completed(script, "policy", "ver") == ["verify"]
    assert set(completed(script, "policy", "")) >= entry.POLICY_COMMANDS.keys()
    assert set(completed(script, "group", "")) >= entry.GROUP_COMMANDS.keys()
    assert completed(script, "policy", "diff", "--fa") == ["--fail-on"]
    assert completed(script, "policy", "check", "so") == ["some.yml"]
    assert completed(script, "policy", "schema", "te") == ["test"]
    assert completed(script, "policy", "check", "--target", "w") == ["windows"]
    assert completed(script, "run", "--arti") == ["--artifact"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_reads_its_script(shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "--print-completion", shell)
    for name in (*entry.COMMANDS, *entry.POLICY_COMMANDS, *entry.EMULATE_COMMANDS):
        assert name in text
    if shutil.which(shell):  # Debian always has the first
        (tmp_path / "script").write_text(text)
        subprocess.run([shell, "-n", tmp_path / "script"], check=True, timeout=60)


def test_without_shtab_it_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert entry.main(["--print-completion", "bash"]) == 2
    assert "-m pip install shtab" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "file"),
    [
        ([], "policies/web-tier.yml"),
        (["policy"], "policies/rabbitmq.yml"),
        (["test"], "policies/web-tier.test.yml"),
        (["scenario"], "demo/scenario.yml"),
    ],
)
def test_schemas_are_printed_and_right(
    kind: list[str], file: str, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert entry.main(["policy", "schema", *kind]) == 0
    schema = json.loads(capsys.readouterr().out)
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    document = yaml.safe_load((repository / file).read_text())
    assert [error.message for error in validator.iter_errors(document)] == []
    assert list(validator.iter_errors({**document, "nonsense": 1}))
