# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn policy schema``: the JSON Schema of a kind of file, for editors that have no network."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[2]
_SCHEMAS = {
    "policy": "compiler/policy.schema.json",
    "test": "compiler/policy-test.schema.json",
    "scenario": "emulator/scenario.schema.json",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "kind",
        nargs="?",
        choices=tuple(_SCHEMAS),
        default="policy",
        help="of policies (the default), of their tests, or of scenarios of forewarn emulate",
    )
    parser.epilog = (
        "For an editor, write it to a file, and name that in the first line of a policy: "
        "# yaml-language-server: $schema=policy.schema.json"
    )


def run(args: argparse.Namespace) -> int:
    """Print the schema."""
    sys.stdout.write((_PACKAGE / _SCHEMAS[args.kind]).read_text(encoding="utf-8"))
    return 0
