# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn policy implies``: proves that whatever some policies approve, others approve as well."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from ...analysis.query.answers import NONE, NOT_PROVEN, SOME, QueryAnswer
from ...analysis.query.implies import DISJOINT, EQUIVALENT, IMPLIES, exceptions
from ...compiler.policies import load_policies
from ...errors import InputError
from ...policy.artifact import Artifact, load_file
from ...policy.params import from_options
from ..output.console import write_result
from .common import add_api_version, add_param
from .event_groups import show_basis, show_groups, show_verdict
from .revision import load
from .run_analysis import analysed

_CLAIMS = {
    IMPLIES: ("whatever {0} approves, {1} approves",),
    EQUIVALENT: ("whatever {0} approves, {1} approves", "whatever {1} approves, {0} approves"),
    DISJOINT: ("no event is approved by both {0} and {1}",),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = "a policy file, a directory of them, an artifact, or git:REVISION:PATH"
    parser.add_argument("one", nargs="+", metavar="A", help=f"{what}; or several files and directories")
    parser.add_argument("other", metavar="B", help=f"{what}; it must approve whatever A approves")
    relation = parser.add_mutually_exclusive_group()
    relation.add_argument(
        "--equivalent",
        dest="relation",
        action="store_const",
        const=EQUIVALENT,
        default=IMPLIES,
        help="prove that A and B approve the same events",
    )
    relation.add_argument(
        "--disjoint",
        dest="relation",
        action="store_const",
        const=DISJOINT,
        help="prove that no event is approved by both",
    )
    add_api_version(parser)
    add_param(parser, "a parameter's value, in A and in B (default: every value that its limits allow, or its default)")
    parser.add_argument("--json", action="store_true", help="write one JSON object")


def run(args: argparse.Namespace) -> int:
    """Show the events that contradict the claim; return 1 if there are any, or it is not proven."""
    one, other = _load(args.one, args.api_version), _load([args.other], args.api_version)
    given = from_options(args.param, (*one.params, *other.params))
    found: tuple[QueryAnswer, ...] = analysed(
        lambda progress: exceptions(args.relation, one, other, given, progress), relation=args.relation
    )
    proven = all(answer.verdict == NONE for answer in found)
    claims = [claim.format(", ".join(args.one), args.other) for claim in _CLAIMS[args.relation]]
    parts = [{"claim": claim, **_as_dict(answer)} for claim, answer in zip(claims, found)]
    content = {"relation": args.relation, "proven": proven, "claims": parts}
    console = write_result(args.json, "implication", content)
    policies = [_files(args.one), _files([args.other])]
    for answer in found:
        show_groups(answer, console, policies)
    show_basis(found[0], console)
    for claim, answer in zip(claims, found):
        texts = {NONE: f"proven: {claim}", SOME: f"refuted: {claim}", NOT_PROVEN: f"not proven: {claim}"}
        show_verdict(answer, console, texts)
    return int(not proven)


def _load(places: Sequence[str], api_version: str) -> Artifact:
    """Load an artifact, or compile policies that run together. Raises InputError."""
    if len(places) > 1:
        if len(_files(places)) < len(places):
            raise InputError("an artifact, or a revision in git, stands alone", "Name a directory of all policies.")
        return load_policies([Path(place) for place in places], api_version)
    (place,) = places
    if place.startswith("git:") or not place.endswith(".json"):
        return load(place, api_version)
    artifact = load_file(place)
    if artifact.api_version != api_version:
        hint = f"Use --api-version {artifact.api_version}, or compile it again."
        raise InputError(f"{place} was compiled for api-version {artifact.api_version}, not {api_version}", hint)
    return artifact


def _files(places: Sequence[str]) -> list[str]:
    """Return the places that ``policy explain`` can read."""
    return [place for place in places if not place.startswith("git:") and not place.endswith(".json")]


def _as_dict(answer: QueryAnswer) -> dict[str, object]:
    verdict = {NONE: "proven", SOME: "refuted", NOT_PROVEN: "not-proven"}[answer.verdict]
    return {**{name: one for name, one in answer.as_dict().items() if name != "no_value"}, "verdict": verdict}
