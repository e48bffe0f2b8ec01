# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role says after a failure: sentences, each with a period, whatever a program has said.

The role's variables are put together by the real ``ansible-playbook``. What it restores is tested in tests/lab.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tools.sites.adhoc import AdHoc
from tools.sites.ansible_cores import ansible
from tools.sites.commands import run_program

pytestmark = pytest.mark.in_turn(3)

HEALTHY: dict[str, Any] = {
    "runner": {"condition": "running", "config": "c", "missing": [], "version": "1"},
    "service": {"state": "ok"},
}
FAILURES: dict[str, tuple[dict[str, Any], str]] = {
    "an error of the system": ({"msg": "[Errno 22] Invalid argument"}, "[Errno 22] Invalid argument."),
    "a sentence": ({"msg": "It was given 6 s."}, "It was given 6 s."),
    "a question": ({"msg": "Is it mounted?"}, "Is it mounted?"),
    "lines of a program": ({"msg": "non-zero return code", "stderr": "one\ntwo\n"}, "one\ntwo."),
    "a service that does not start": ({"msg": "Unable to start service x"}, "The service does not start: code=226."),
    "nothing": ({}, "The rollout failed."),
}
RELOADS = {"no space left": "no space left.", "The file is empty. Write it.": "The file is empty. Write it."}


@pytest.fixture
def said(tmp_path: Path, repository: Path, collections_path: Path) -> dict[str, str]:
    """Return what the role says after each failure, and of each reload that was refused."""
    role_variables = str(repository / "roles" / "forewarn" / "vars" / "main.yml")

    def play(variables: dict[str, Any], name: str, text: str) -> dict[str, Any]:
        task = {"ansible.builtin.copy": {"content": f"{{{{ {text} }}}}", "dest": str(tmp_path / name), "mode": "0644"}}
        return {
            "hosts": "localhost",
            "gather_facts": False,
            "vars": variables,
            "vars_files": [role_variables],
            "tasks": [task],
        }

    log = {"stdout_lines": ["starting", "code=226"]}
    plays = [
        play({"__forewarn_failure": failure, "__forewarn_log": log}, f"failure-{number}", "__forewarn_cause")
        for number, (failure, _) in enumerate(FAILURES.values())
    ]
    for number, problem in enumerate(RELOADS):
        report = {**HEALTHY, "runner": {**HEALTHY["runner"], "reload_problem": problem}}
        variables = {
            "__forewarn_status": {"stdout": json.dumps(report)},
            "__forewarn_checked": {"stdout": json.dumps({"config": "c", "usable": True})},
            "__forewarn_built": {"version": "1"},
        }
        plays.append(play(variables, f"reload-{number}", "__forewarn_unhealthy | first"))
    (tmp_path / "said.yml").write_text(yaml.safe_dump(plays))
    environ = AdHoc(tmp_path, collections_path).environ
    options = ("-i", "localhost,", "-c", "local", "-e", f"ansible_python_interpreter={sys.executable}")
    done = run_program(ansible("ansible-playbook"), *options, "said.yml", cwd=tmp_path, env=environ)
    assert done.returncode == 0, done.stdout + done.stderr
    return {path.name: path.read_text() for path in tmp_path.iterdir() if path.name.startswith(("failure-", "reload-"))}


def test_whatever_failed_another_sentence_can_follow(said: dict[str, str]) -> None:
    expected = {f"failure-{number}": text for number, (_, text) in enumerate(FAILURES.values())}
    expected |= {
        f"reload-{number}": f"The runner has refused to reload: {text}" for number, text in enumerate(RELOADS.values())
    }
    assert said == expected
