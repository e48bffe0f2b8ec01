# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What makes a change of policies fail: options that ``policy diff`` and ``fleet publish`` share."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ...analysis.diff.diff import Difference
from ...analysis.diff.kinds import FAIL_ON, KINDS, fails
from ...analysis.query.answers import NONE
from ...compiler.wording import closest
from .diff_report import Forbidden


def add_fail_on(parser: argparse.ArgumentParser, default: str) -> None:
    """Add ``--fail-on``."""
    parser.add_argument(
        "--fail-on",
        type=fail_on,
        metavar="WHAT",
        default=(default,),
        help="exit with 1 if more is approved than before (more-permissive), if anything changes (any), never (none), "
        "or for a comma-separated list of more-permissive, less-permissive, fewer-promises and kinds of change: "
        f"{', '.join(KINDS)} (default: {default})",
    )


def add_forbid(parser: argparse.ArgumentParser) -> None:
    """Add ``--forbid``."""
    parser.add_argument(
        "--forbid",
        action="append",
        default=[],
        metavar="EXPRESSION",
        help="exit with 1 if an event changes so, or if it is not proven that none does, whatever --fail-on says; "
        "repeatable. An expression of CEL: 'was' is the old decision, 'decision' the new one ('now' is the time, as in "
        "rules). For example 'was == hold && decision == approve && event.EventType == \"Terminate\"'",
    )


def is_refused(difference: Difference, forbidden: Sequence[Forbidden], words: Sequence[str]) -> bool:
    """Return whether a change is of the kind that the words of ``--fail-on`` name, or is forbidden."""
    if any(one.found.verdict != NONE for one in forbidden):
        return True
    if difference.incomplete and "none" not in words:
        return True
    failed = any(fails(words, change.effect, change.kinds) for change in difference.changes)
    return failed or any(fails(words, one.effect, (one.kind,)) for one in difference.declarations)


def fail_on(text: str) -> tuple[str, ...]:
    """Read the list of --fail-on. Raises argparse.ArgumentTypeError."""
    words = tuple(word.strip() for word in text.split(","))
    for word in words:
        if word not in FAIL_ON and word not in KINDS:
            meant = closest(word, [*FAIL_ON, *KINDS])
            hint = (
                f"did you mean {meant}?"
                if meant
                else f"use {', '.join(FAIL_ON)} or kinds of change, which --help lists"
            )
            raise argparse.ArgumentTypeError(f"{word!r} is no kind of change; {hint}")
    if "none" in words and len(words) > 1:
        raise argparse.ArgumentTypeError("'none' stands alone: it means that nothing fails")
    return words
