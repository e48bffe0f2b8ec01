# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files that ``forewarn policy init`` writes: a policy, its tests, and a workflow that checks both."""

from __future__ import annotations

import json
import re
from pathlib import Path

from ....compiler.yaml.schema import load
from ....system.common.windows_program import is_windows_path
from .questions import KINDS, LONGEST_FREEZE, Answers

_HERE = Path(__file__).parent
_GUIDE = "https://github.com/forewarn/forewarn.azure/blob/main/docs/guides/git-and-ci.md"
# CI system -> its file in the repository, and in this package.
CI_FILES = {
    "github": (".github/workflows/policies.yml", "github.yml"),
    "gitlab": (".gitlab-ci.yml", "gitlab-ci.yml"),
    "azure": ("azure-pipelines.yml", "azure-pipelines.yml"),
}
_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9/._-]*")
_WORDS = ("true", "false", "null", "yes", "no", "on", "off", "y", "n")


def policy_text(name: str, answers: Answers) -> str:
    """Return the policy. It passes ``policy check``, ``test`` and ``verify --strict``, whatever the answers are."""
    return _rendered("policy.yml.j2", "policy.schema.json", answers, name=_scalar(name))


def tests_text(answers: Answers) -> str:
    """Return the tests of the policy. Each rule decides in one of them."""
    return _rendered("tests.yml.j2", "policy-test.schema.json", answers)


def _rendered(template: str, schema: str, answers: Answers, **more: str) -> str:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # here: on a VM there is none

    environment = Environment(  # noqa: S701 - YAML, whose texts are checked
        loader=FileSystemLoader(_HERE),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(template).render(
        schema=load(schema)["$id"],
        freeze=answers.freeze,
        reboot=answers.reboot,
        prepare=_scalar(answers.prepare),
        program=answers.prepare.startswith("/") or is_windows_path(answers.prepare),
        kinds=KINDS,
        longest_freeze=LONGEST_FREEZE,
        **more,
    )


def _scalar(text: str) -> str:
    """Return a text as YAML, in quotes unless every reader takes it for a text without them."""
    plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS
    return text if plain else json.dumps(text)


def workflow_text(system: str, directory: str) -> str:
    """Return the workflow of a CI system for the policies in a directory of the repository, as POSIX writes it."""
    _path, name = CI_FILES[system]
    body = (_HERE / "ci" / name).read_text(encoding="utf-8").partition("---\n")[2]
    return f"# Written by forewarn policy init. {_GUIDE} explains each step.\n---\n" + body.replace(
        "@DIRECTORY@", directory
    )
