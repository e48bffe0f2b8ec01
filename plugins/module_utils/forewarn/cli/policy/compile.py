# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn policy compile``: makes of policies the artifact that a runner loads."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from ...atomic_file import replace_file
from ...compiler.policies import compile_policies
from ...errors import InputError
from ...fleet import signing
from ...policy.artifact import LARGEST_SERIAL, encode
from ...policy.signature import SUFFIX
from ..output.console import Console
from .common import add_policy_arguments, add_target, is_same_file, plural, show_findings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_policy_arguments(parser)
    add_target(parser)
    parser.add_argument(
        "-o", "--output", required=True, metavar="FILE", help="where to write the artifact; '-' for standard output"
    )
    parser.add_argument(
        "--sign",
        metavar="KEY",
        help=f"sign it by ssh-keygen, into FILE{SUFFIX}: a private key, or a public one whose other half an agent or a "
        "security key has",
    )
    parser.add_argument(
        "--serial",
        type=_serial,
        metavar="NUMBER",
        help="number of this version, which a VM with signers lets only grow (default with --sign: when the policies "
        "were committed, or last changed if they are not; in seconds since 1970)",
    )


def run(args: argparse.Namespace) -> int:
    """Compile the policies; return 1 and write nothing if they have mistakes."""
    compilation = compile_policies(args.paths, args.api_version, target=args.target)
    read = [*compilation.files, *(source.path for source in compilation.imported.values())]
    if any(is_same_file(Path(args.output), Path(file)) for file in read):
        raise InputError(
            f"{args.output} is a policy: it would be overwritten", "Name another file, such as policy.json."
        )
    problems = Console(sys.stderr)
    if compilation.findings:
        show_findings(compilation.findings, problems)
    if compilation.artifact is None:
        return 1
    if args.sign is not None and args.output == "-":
        raise InputError("--sign needs a file to put the signature beside.", "Name one: --output policy.json.")
    artifact = dict(compilation.artifact)
    if args.serial is not None or args.sign is not None:
        artifact["serial"] = args.serial or signing.serial_of(args.paths)
    content = encode(artifact)
    if args.output == "-":
        sys.stdout.write(content.decode("ascii"))
        return 0
    text = f"{args.output}: {plural(len(artifact['policies']), 'policy')}, {artifact['digest']}"
    if args.sign is not None:  # before the artifact: without a signature it is of no use
        replace_file(Path(args.output + SUFFIX), signing.sign(content, args.sign))
        text += f", serial {artifact['serial']}, signed"
    replace_file(Path(args.output), content)
    Console(sys.stdout).line(text)
    return 0


def _serial(text: str) -> int:
    """Read --serial. Raises argparse.ArgumentTypeError."""
    if not re.fullmatch("[0-9]{1,16}", text) or not 1 <= int(text) <= LARGEST_SERIAL:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to {LARGEST_SERIAL}")
    return int(text)
