# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn policy diff``: which events a change of policies decides differently, and whether it approves more."""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial

from ...analysis.diff.diff import Difference, compare
from ...analysis.diff.kinds import MORE
from ...analysis.query.query import query
from ...analysis.report.page import difference_page
from ...policy.params import from_options
from ..output.console import Console, write_json
from .common import add_api_version, add_html, add_param, write_html
from .diff_options import add_fail_on, add_forbid, is_refused
from .diff_report import Forbidden, as_json, as_markdown, as_sarif, show, show_forbidden
from .revision import load
from .run_analysis import analysed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = "a policy file or a directory of them, or git:REVISION:PATH"
    parser.add_argument("old", metavar="OLD", help=what)
    parser.add_argument("new", metavar="NEW", help="likewise")
    add_api_version(parser)
    add_param(parser)
    parser.add_argument("--format", choices=("text", "json", "markdown", "sarif"), default="text")
    add_html(parser)
    add_fail_on(parser, MORE)
    add_forbid(parser)


def run(args: argparse.Namespace) -> int:
    """Show the difference; return 1 if it is of the kind that --fail-on names."""
    old, new = load(args.old, args.api_version), load(args.new, args.api_version)
    given = from_options(args.param, (*old.params, *new.params))
    forbidden: list[Forbidden] = [
        Forbidden(one, analysed(partial(query, [old, new], one, given), expression=one)) for one in args.forbid
    ]
    difference: Difference = analysed(lambda progress: compare(old, new, given, progress))
    if args.html is not None:
        write_html(args.html, difference_page(old, new, difference, (args.old, args.new), given))
    if args.html == "-":
        pass  # the page is the output
    elif args.format == "json":
        write_json("difference", as_json(difference, forbidden))
    elif args.format == "sarif":
        json.dump(as_sarif(difference, args.new, forbidden), sys.stdout, indent=2)
        sys.stdout.write("\n")
    elif args.format == "markdown":
        sys.stdout.write(as_markdown(difference, args.old, args.new, forbidden))
    else:
        show(difference, Console(sys.stdout))
        show_forbidden(forbidden, (args.old, args.new), Console(sys.stdout))
    return int(is_refused(difference, forbidden, args.fail_on))
