# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn policy diff``: which events a change of policies decides differently, and whether it approves more."""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

from .. import __version__
from ..analysis.diff import ALIKE, INCOMPARABLE, LESS, MORE, NO_CHANGE, Change, Difference, compare
from ..analysis.report.page import difference_page
from ..compiler.policyfile import load_policies
from ..errors import ForewarnError, InputError
from ..policy.artifact import Artifact
from ..policy.params import from_options
from .console import Console, write_json
from .policy_common import add_api_version, add_html, write_html
from .policy_verify import analysed

_WORDS = {
    MORE: "more permissive: events start that waited before",
    LESS: "less permissive: events wait that started before",
    INCOMPARABLE: "incomparable: more permissive for some events, less for others",
    ALIKE: "neither more nor less permissive",
    NO_CHANGE: "no change",
}
_COLOURS = {MORE: "red", INCOMPARABLE: "red", LESS: "yellow", ALIKE: "cyan"}
_LEVELS = {MORE: "error", INCOMPARABLE: "error", LESS: "warning", ALIKE: "note"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = "a policy file or a directory of them, or git:REVISION:PATH"
    parser.add_argument("old", metavar="OLD", help=what)
    parser.add_argument("new", metavar="NEW", help="likewise")
    add_api_version(parser)
    parser.add_argument("--param", action="append", default=[], metavar="NAME=VALUE", help="a parameter; repeatable")
    parser.add_argument("--format", choices=("text", "json", "markdown", "sarif"), default="text")
    add_html(parser)
    parser.add_argument(
        "--fail-on",
        choices=("more-permissive", "any", "none"),
        default="more-permissive",
        help="exit with 1 if more is approved than before, if anything changes, or never (default: %(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    """Show the difference; return 1 if it is of the kind that --fail-on names."""
    old, new = load(args.old, args.api_version), load(args.new, args.api_version)
    given = from_options(args.param, (*old.params, *new.params))
    difference: Difference = analysed(lambda: compare(old, new, given))
    if args.html is not None:
        write_html(args.html, difference_page(old, new, difference, (args.old, args.new), given))
    if args.html == "-":
        pass  # the page is the output
    elif args.format == "json":
        write_json("difference", _as_json(difference))
    elif args.format == "sarif":
        json.dump(_sarif(difference, args.new), sys.stdout, indent=2)
        sys.stdout.write("\n")
    elif args.format == "markdown":
        sys.stdout.write(_markdown(difference, args.old, args.new))
    else:
        _show(difference, Console(sys.stdout))
    if args.fail_on == "any":
        return 1 if difference.changes else 0
    return 1 if args.fail_on == MORE and difference.verdict in (MORE, INCOMPARABLE) else 0


def load(place: str, api_version: str) -> Artifact:
    """Compile policies of a path, or of a revision in git. Raises InputError."""
    if not place.startswith("git:"):
        return load_policies([Path(place)], api_version)
    revision, colon, path = place[len("git:") :].partition(":")
    if not revision or not colon or not path or revision.startswith("-"):
        raise InputError(f"{place}: this is not git:REVISION:PATH", "For example git:HEAD~1:policies")
    with tempfile.TemporaryDirectory(prefix="forewarn-") as directory:
        _extract(revision, path, place, Path(directory))
        try:
            return load_policies([Path(directory) / path], api_version)
        except ForewarnError as error:
            raise InputError(error.message.replace(directory + "/", f"git:{revision}:"), error.hint) from error


def _extract(revision: str, path: str, place: str, directory: Path) -> None:
    command = ["git", "archive", "--format=tar", revision, "--", path]
    try:
        # pylint: disable-next=ansible-bad-function # a command, not a module that has run_command
        done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603 - git, and no shell
    except OSError as error:
        raise InputError(f"{place}: git cannot be run: {error.strerror}") from error
    if done.returncode != 0:
        raise InputError(f"{place}: git: {done.stderr.decode(errors='replace').strip()}")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(directory, filter="data")


def _as_json(difference: Difference) -> dict[str, Any]:
    return {
        "verdict": difference.verdict,
        "classes": difference.classes,
        "changes": [change.as_dict() for change in difference.changes],
        "assumptions": list(difference.assumptions),
        "not_understood": list(difference.not_understood),
    }


def _show(difference: Difference, console: Console) -> None:
    for change in difference.changes:
        console.line(console.style(change.what, "bold", _COLOURS[change.effect]) + console.style(f"  {change.effect}"))
        for part in change.parts:
            console.line("  when " + console.style(part.when))
            for note in _notes(part.usual, part.certain):
                console.line(console.style(f"    {note}", "dim"))
            console.line(console.style(f"    for example {json.dumps(part.case['event'])}", "dim"))
            if part.new["reason"]:
                console.line(console.style(f"    {part.old['reason']} → {part.new['reason']}", "dim"))
        if not change.complete:
            console.line("  and in other cases")
        console.line()
    for assumption in difference.assumptions:
        console.line(console.style("assumed: ", "dim") + console.style(assumption))
    for source in difference.not_understood:
        console.line(console.style("not understood: ", "dim") + console.style(source))
    console.line(console.style(_WORDS[difference.verdict], "bold"))


def _notes(usual: bool, certain: bool) -> list[str]:
    notes = [] if usual else ["by its documentation the service does not send such events"]
    return (
        notes
        if certain
        else [*notes, "perhaps: an expression is not understood, and no event was found that shows this"]
    )


def _markdown(difference: Difference, old: str, new: str) -> str:
    lines = [f"**{_WORDS[difference.verdict]}** (`{_plain(old)}` → `{_plain(new)}`)", ""]
    if difference.changes:
        lines += ["| Change | Effect | When | Decided by |", "| --- | --- | --- | --- |"]
    for change in difference.changes:
        by = "" if change.rule is None else f"{change.rule[0]}/{change.rule[1]}"
        for part in change.parts:
            notes = "".join(f" ({note})" for note in _notes(part.usual, part.certain))
            cells = [change.what, change.effect, part.when + notes, by]
            lines.append("| " + " | ".join(_plain(cell) for cell in cells) + " |")
        if not change.complete:
            lines.append(f"| {_plain(change.what)} | {change.effect} | and in other cases | |")
    lines += ["", *(f"- assumed: {_plain(one)}" for one in difference.assumptions)]
    return "\n".join(lines).rstrip() + "\n"


def _plain(text: str) -> str:
    for character in "\\|`*_<>[]":
        text = text.replace(character, "\\" + character)
    return " ".join(text.split())


def _sarif(difference: Difference, new: str) -> dict[str, Any]:
    rules = [
        {"id": effect, "shortDescription": {"text": _WORDS[effect]}, "defaultConfiguration": {"level": level}}
        for effect, level in _LEVELS.items()
    ]
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "forewarn", "version": __version__, "rules": rules}},
                "columnKind": "unicodeCodePoints",
                "results": [result for change in difference.changes for result in _results(change, new)],
            }
        ],
    }


def _results(change: Change, new: str) -> list[dict[str, Any]]:
    results = []
    for part in change.parts:
        notes = "".join(f" ({note})" for note in _notes(part.usual, part.certain))
        result: dict[str, Any] = {
            "ruleId": change.effect,
            "ruleIndex": list(_LEVELS).index(change.effect),
            "level": _LEVELS[change.effect],
            "message": {"text": f"{change.what} when {part.when}{notes}"},
        }
        if change.rule is not None:
            _policy, _path, source, line, column = change.rule
            region = {"startLine": line, "startColumn": column}
            result["locations"] = [
                {"physicalLocation": {"artifactLocation": {"uri": _uri(new, source)}, "region": region}}
            ]
        results.append(result)
    return results


def _uri(new: str, source: str) -> str:
    """Return the path of a policy of NEW, relative to the working directory if below it, as annotations need it."""
    place = Path(new.split(":", 2)[2] if new.startswith("git:") else new)
    path = place if place.name == source and place.suffix in (".yml", ".yaml") else place / source
    try:
        path = path.absolute().relative_to(Path.cwd())
    except ValueError:
        return path.absolute().as_uri()
    return quote(path.as_posix())
