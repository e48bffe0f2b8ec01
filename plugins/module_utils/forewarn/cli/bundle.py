# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn bundle``: the runner as one file, for VMs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ..bundle import build
from .output.console import Console

PACKAGE = Path(__file__).resolve().parent.parent


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("forewarn.pyz"),
        metavar="FILE",
        help="where to write it (default: %(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    """Write the file, and report its size and digest."""
    bundle = build(PACKAGE, args.output)
    Console(sys.stdout).line(f"{bundle.path}: {bundle.size} bytes, sha256:{bundle.sha256}")
    return 0
