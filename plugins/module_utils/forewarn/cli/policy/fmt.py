# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn policy fmt``: formats the files of policies and tests, whose meaning and comments stay as they are."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ...atomic_file import replace_file
from ...compiler.findings import render
from ...compiler.paths import find_files, is_test
from ...compiler.policies import compiles_alike
from ...compiler.requirements import require_libraries
from ...compiler.yaml.format import format_yaml, has_same_content
from ...compiler.yaml.tree import MOST_BYTES, YamlFile, read_bytes
from ...errors import InputError
from ..output.console import Console
from .common import defect, plural

_STDIN = "-"
_BYTE_ORDER_MARK = "\ufeff"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="PATH",
        help="files of policies and tests, or directories of them; '-': standard input, formatted on standard output",
    )
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a file would change")
    parser.add_argument("--diff", action="store_true", help="write nothing but what would change, as a unified diff")


def run(args: argparse.Namespace) -> int:
    """Format the files; with --check return 1 if one would change."""
    require_libraries()
    if _STDIN in args.paths:
        if len(args.paths) > 1:
            raise InputError("'-' stands alone: it formats standard input.", "Format files in another call.")
        contents = [("<stdin>", sys.stdin.buffer.read(MOST_BYTES + 1))]
    else:
        contents = [(str(path), read_bytes(path)) for path in find_files([Path(path) for path in args.paths])]
    files = _formatted(contents)
    changed = [file for file in files if file.changed]
    console = Console(sys.stdout)
    if args.diff:
        for file in changed:
            _show_diff(file, console)
    elif args.paths == [_STDIN] and not args.check:
        _write_bytes(files[0].after)
        return 0
    elif not args.check:
        for file in changed:
            replace_file(Path(file.path), file.after.encode("utf-8"))
    if not args.diff:
        _show(changed, len(files), console, check=args.check)
    return int(args.check and bool(changed))


class _FormattedFile(NamedTuple):
    path: str
    content: bytes
    before: str
    after: str

    @property
    def changed(self) -> bool:
        return self.content != self.after.encode("utf-8")


def _formatted(contents: Sequence[tuple[str, bytes]]) -> list[_FormattedFile]:
    """Format each file. Raises InputError with every mistake that keeps one from being read."""
    found, mistakes = [], []
    for path, content in contents:
        file = YamlFile.from_bytes(path, content)
        mistakes += file.report.findings
        if not file.report.findings:
            before = file.source.text
            after = format_yaml(before)
            if after.startswith(_BYTE_ORDER_MARK):  # which is part of a value: the next reader would drop it
                before = after = content.decode("utf-8")
            alike = before == after or is_test(Path(path)) or compiles_alike(path, before, after)
            if not (alike and has_same_content(before, after)):
                message = f"{path} would not mean the same if it was formatted. Nothing was written."
                raise defect(message, "Please report it with the file.")
            found.append(_FormattedFile(path, content, before, after))
    if mistakes:
        lines = [line for finding in mistakes for line in render(finding)]
        text = f"{plural(len(mistakes), 'mistake')}, and nothing was formatted:"
        raise InputError("\n".join([text, *lines]))
    return found


def _show(changed: Sequence[_FormattedFile], total: int, console: Console, *, check: bool) -> None:
    for file in changed:
        word = "would change:" if check else "formatted:"
        console.line(f"{console.style(word, 'yellow' if check else 'green')} {console.style(file.path, 'bold')}")
    done = "would change" if check else "formatted"
    left = f"{plural(total - len(changed), 'file')} already formatted"
    console.line(f"{plural(len(changed), 'file')} {done}, {left}" if changed else left)


def _show_diff(file: _FormattedFile, console: Console) -> None:
    """Write a unified diff. Line ends are compared as well, and shown where they are not that of the system."""
    before = file.content.decode("utf-8").splitlines(keepends=True)
    after = file.after.splitlines(keepends=True)
    colours = {"+": "green", "-": "red", "@": "cyan"}
    for line in difflib.unified_diff(before, after, file.path, file.path):
        styles = [colours[line[0]]] if line[0] in colours else []
        console.line(console.style(line.rstrip("\n"), *styles))
        if not line.endswith("\n"):
            console.line("\\ No newline at end of file")


def _write_bytes(text: str) -> None:
    """Write a text as UTF-8, whatever the locale is: it is the content of a file."""
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:
        sys.stdout.write(text)
    else:
        sys.stdout.flush()
        buffer.write(text.encode("utf-8"))
