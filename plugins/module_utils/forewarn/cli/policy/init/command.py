# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn policy init``: a first policy with its tests and a workflow, after three questions."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from ....errors import InputError
from ...output.console import Console
from ..output.repository_paths import repository_of
from .files import CI_FILES, policy_text, tests_text, workflow_text
from .questions import HOLD, QUESTIONS, Answers, ask, checked

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")
_PLAIN_PATH = re.compile(r"[A-Za-z0-9._][A-Za-z0-9._/-]*")  # which needs no quotes in any workflow
_TESTS = "tests"  # a policy of this name, or in a directory of this name, would be taken for a test


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "directory",
        nargs="?",
        type=Path,
        default=Path("policies"),
        metavar="DIRECTORY",
        help="where to write the policy and its tests (default: policies)",
    )
    for question in QUESTIONS:
        text = f"{question.text} {question.accepts} (default: {question.default})"
        parser.add_argument(f"--{question.option}", metavar="ANSWER", help=text)
    parser.add_argument("--name", default="maintenance", help="the policy's name (default: maintenance)")
    parser.add_argument(
        "--ci",
        choices=(*CI_FILES, "none"),
        default="none",
        help="also write a workflow that checks each change, for this CI system (default: none)",
    )


def run(args: argparse.Namespace) -> int:
    """Write the files; a question that no option answers is asked on a terminal, and elsewhere has its default."""
    name, directory = _name(args.name), args.directory
    if directory.absolute().name == _TESTS:
        raise InputError(f"{directory}: files in a directory of this name are tests.", "Choose another directory.")
    workflow = _workflow(args.ci, directory)
    suffixes = (".yml", ".yaml", ".test.yml", ".test.yaml")
    _refuse_existing([*(directory / (name + suffix) for suffix in suffixes), *workflow])
    answers = _answers(args)
    files = {
        directory / f"{name}.yml": policy_text(name, answers),
        directory / f"{name}.test.yml": tests_text(answers),
        **workflow,
    }
    _write(files)
    console = Console(sys.stdout)
    for path in files:
        console.line(f"{console.style('written:', 'green')} {console.style(str(path), 'bold')}")
    console.line(f"next: forewarn policy test {directory}, forewarn policy verify {directory}")
    return 0


def _name(name: str) -> str:
    if _NAME.fullmatch(name) and name != _TESTS:
        return name
    raise InputError(
        f"--name {name}: no name of a policy.", "Use letters, digits, '_' and '-', at most 63, and not 'tests'."
    )


def _answers(args: argparse.Namespace) -> Answers:
    """Return the answers: first those that options give, so that no mistake in one comes after questions."""
    options = {question.option: getattr(args, question.option) for question in QUESTIONS}
    found = {one.option: checked(one, options[one.option]) for one in QUESTIONS if options[one.option] is not None}
    for question in QUESTIONS:
        if question.option not in found:
            interactive = sys.stdin.isatty()
            found[question.option] = ask(question, sys.stdin, Console(sys.stderr)) if interactive else question.default
    return Answers(None if found["freeze"] == HOLD else int(found["freeze"]), found["reboot"], found["prepare"])


def _workflow(system: str, directory: Path) -> dict[Path, str]:
    """Return the file of a CI system, which is found from the root of the repository. Raises InputError."""
    if system == "none":
        return {}
    root = repository_of(directory)
    inside = Path(directory.absolute()).resolve().relative_to(root.resolve()).as_posix()
    if inside == ".":
        raise InputError(
            f"{directory} is the root of the repository: the workflow would be among the policies.",
            "Name a directory below it, such as policies.",
        )
    if not _PLAIN_PATH.fullmatch(inside):
        raise InputError(
            f"{inside}: a workflow cannot name this directory.", "Use letters, digits, '.', '_', '-' and '/'."
        )
    return {_shown(root / CI_FILES[system][0]): workflow_text(system, inside)}


def _shown(path: Path) -> Path:
    """Return a path from the working directory, if it is below."""
    try:
        return path.relative_to(Path.cwd())
    except ValueError:
        return path


def _refuse_existing(paths: list[Path]) -> None:
    existing = [str(path) for path in paths if path.is_symlink() or path.exists()]
    if existing:
        there = "is" if len(existing) == 1 else "are"
        raise InputError(
            f"{', '.join(existing)} {there} there already, and nothing was written.",
            "Choose another directory, or another --name.",
        )


def _write(files: Mapping[Path, str]) -> None:
    """Write all files, or none. Raises InputError."""
    with ExitStack() as undo:
        for path, text in files.items():
            _create(path, text, undo)
        undo.pop_all()


def _create(path: Path, text: str, undo: ExitStack) -> None:
    """Write a new file, and the directories above it; ``undo`` takes all of that away again."""
    try:
        for directory in reversed([one for one in path.parents if not one.exists()]):
            directory.mkdir()
            undo.callback(directory.rmdir)
        with path.open("x", encoding="utf-8") as stream:
            undo.callback(path.unlink)
            stream.write(text)
    except OSError as error:
        message = f"{path} cannot be written: {error.strerror}. Nothing was written."
        raise InputError(message, "Choose another directory.") from error
