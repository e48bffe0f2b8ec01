# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The notes of ``policy verify`` by their causes: whoever sees many lines that say the same reads none of them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...analysis.verify.finding import ProofFinding

_MOST_NAMED = 12  # rules
# What an evaluation error names (policy/evaluation_error.py) -> which events are held for it.
_CAUSES = (
    (re.compile(r".*: there is no (\w+)", re.DOTALL), "an event without {} is held"),
    (re.compile(r".*: (\S+) is not known", re.DOTALL), "an event is held where {} is not known"),
)


def note_groups(findings: Sequence[ProofFinding]) -> list[list[ProofFinding]]:
    """Return the notes among findings, those of one kind and cause together; any other is by itself."""
    groups: dict[tuple[str, ...], list[ProofFinding]] = {}
    for number, one in enumerate(findings):
        if one.severity == "note":
            groups.setdefault((one.code, _cause(one)) if one.cause else (str(number),), []).append(one)
    return list(groups.values())


def in_one_sentence(alike: Sequence[ProofFinding]) -> str:
    """Return a group of several notes as a sentence, which names the rules."""
    rules = list(dict.fromkeys(f"{one.policy}/{one.rule}" if one.rule else one.policy for one in alike))
    more = f" and {len(rules) - _MOST_NAMED} others" if len(rules) > _MOST_NAMED else ""
    named = f"{len(rules)} {'rule' if len(rules) == 1 else 'rules'}: {', '.join(rules[:_MOST_NAMED])}{more}"
    if alike[0].certain:
        return f"{_cause(alike[0])}, by {named}"
    return f"perhaps, since {_cause(alike[0])}; {named}"


def _cause(finding: ProofFinding) -> str:
    if not finding.certain:
        return finding.cause
    for pattern, words in _CAUSES:
        match = pattern.fullmatch(finding.cause)
        if match:
            return words.format(match[1])
    return f"an event is held where a rule has no value ({finding.cause})"
