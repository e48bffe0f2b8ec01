# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn policy compile``: makes of policies the artifact that a runner loads."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

from ..compiler.policyfile import compile_policies
from ..errors import InputError
from .console import Console
from .policy_common import add_policy_arguments, is_same_file, plural, show_findings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_policy_arguments(parser)
    parser.add_argument(
        "-o", "--output", required=True, metavar="FILE", help="where to write the artifact; '-' for standard output"
    )


def run(args: argparse.Namespace) -> int:
    """Compile the policies; return 1 and write nothing if they have mistakes."""
    compilation = compile_policies(args.paths, args.api_version)
    if any(is_same_file(Path(args.output), Path(file)) for file in compilation.files):
        raise InputError(
            f"{args.output} is a policy: it would be overwritten", "Name another file, such as policy.json."
        )
    problems = Console(sys.stderr)
    if compilation.findings:
        show_findings(compilation.findings, problems)
    if compilation.artifact is None:
        return 1
    content = json.dumps(compilation.artifact, indent=1, sort_keys=True) + "\n"
    if args.output == "-":
        sys.stdout.write(content)
        return 0
    _replace(Path(args.output), content)
    count = plural(len(compilation.artifact["policies"]), "policy")
    Console(sys.stdout).line(f"{args.output}: {count}, {compilation.artifact['digest']}")
    return 0


def _replace(path: Path, content: str) -> None:
    """Write a file whole or not at all: a runner may read it at any moment.

    A device or a pipe is written to directly.
    """
    temporary: str | None = None
    try:
        path = Path(os.path.realpath(path))  # a link stays one
        if path.exists() and not path.is_file():
            with path.open("w", encoding="utf-8") as stream:
                stream.write(content)
            return
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        Path(temporary).chmod(_mode_of(path))
        Path(temporary).replace(path)
    except OSError as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        raise InputError(f"{path} cannot be written: {error.strerror}") from error


def _mode_of(path: Path) -> int:
    """Return a file's permissions, or those that the umask gives a new file.

    A runner trusts no file that others may write to.
    """
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o644 & ~mask
