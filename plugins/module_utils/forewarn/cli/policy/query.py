# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn policy query``: the events for which an expression about a decision holds."""

from __future__ import annotations

import argparse

from ...analysis.query.answers import NONE, NOT_PROVEN, SOME, QueryAnswer
from ...analysis.query.query import query
from ...compiler.policies import load_policies
from ...policy.params import from_options
from ..output.console import write_result
from .common import add_param, add_policy_arguments
from .event_groups import show_basis, show_groups, show_verdict
from .run_analysis import analysed

_TEXTS = {
    NONE: "no event: it is proven that the expression holds for none",
    SOME: "the expression holds for these events",
    NOT_PROVEN: "not proven",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_policy_arguments(parser)
    parser.add_argument(
        "expression",
        metavar="EXPRESSION",
        help="what to look for, in CEL: event, vm, params and all that rules may read; decision, which is approve or "
        "hold; and prepare, whether a hook prepares for the event. For example "
        "'decision == approve && event.EventType == \"Reboot\"'",
    )
    add_param(parser, "a parameter's value (default: every value that its limits allow, or its default)")
    parser.add_argument(
        "--expect", choices=(NONE, SOME), help="exit with 1 unless there is no such event, or unless there are some"
    )
    parser.add_argument("--json", action="store_true", help="write one JSON object")


def run(args: argparse.Namespace) -> int:
    """Show the events; return 1 if nothing is proven, or the answer is not the one that --expect names."""
    artifact = load_policies(args.paths, args.api_version)
    given = from_options(args.param, artifact.params)
    found: QueryAnswer = analysed(
        lambda progress: query([artifact], args.expression, given, progress), expression=args.expression
    )
    console = write_result(args.json, "query", {"expression": args.expression, **found.as_dict()})
    show_groups(found, console, [args.paths])
    show_basis(found, console)
    show_verdict(found, console, _TEXTS)
    return int(found.verdict == NOT_PROVEN or args.expect not in (None, found.verdict))
