# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the analysis says about policies, kept for other hosts and later runs: findings, and what a rollout changes.

Policies in use and those to come are compared as ``policy diff`` does.

"Less" is what a rollout has to be told. It is proven, with an event that the service may send: an event is held that
was approved, or approved with a prepare hook less (of the kinds ``held``, or ``preparation-lost`` alone).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..analysis.diff.kinds import ALIKE, HELD, PREPARATION_ADDED, PREPARATION_LOST
from ..errors import ForewarnError
from ..pages import counted
from ..policy.artifact import Artifact
from .cache import Cache

_MOST_FINDINGS = 10
_MOST_EVENTS = 3  # of one change


class Changes(NamedTuple):
    """What changes for events, and of that what is less, as lines; ``doubt`` says why there may be more, or is ""."""

    all: Sequence[str] = ()
    less: Sequence[str] = ()
    doubt: str = ""


def changes(old: Artifact, new: Artifact, cache: Cache) -> Changes:
    """Compare policies, or return what was found for the same ones before: for other hosts, or in an earlier run."""
    if old.digest == new.digest:
        return Changes()
    from ..analysis.proof import AnalysisError  # not at the top: most hosts find a kept result

    try:
        return cache.once(
            "changes",
            [old.digest, new.digest],
            lambda: _compared(old, new),
            lambda content: Changes(**json.loads(content)),
        )
    except (AnalysisError, ForewarnError) as error:  # not kept: the reason may be this machine
        return Changes(doubt=str(error))


def _compared(old: Artifact, new: Artifact) -> bytes:
    from ..analysis.diff.diff import compare

    difference = compare(old, new)
    found: dict[str, list[str]] = {"all": [], "less": []}
    others = 0
    for change in difference.changes:
        events = [part.when for part in change.parts if part.usual and part.certain]
        if change.effect == ALIKE or not events:
            others += 1
            continue
        further = len(events) > _MOST_EVENTS or not change.complete
        text = f"{change.what}, when {'; or '.join(events[:_MOST_EVENTS])}{'; and in other cases' if further else ''}"
        found["all"].append(f"{text} ({change.effect})")
        if HELD in change.kinds or (PREPARATION_LOST in change.kinds and PREPARATION_ADDED not in change.kinds):
            found["less"].append(text)
    others += len(difference.declarations)
    if others:
        found["all"].append(f"{counted(others, 'other change')}: see forewarn policy diff")
    return json.dumps({**found, "doubt": difference.unproven}).encode()


def warnings(artifact: Artifact, params: Mapping[str, Any], cache: Cache) -> list[str]:
    """Return warnings about policies that compile, with these parameters."""

    def proven() -> bytes:
        return json.dumps(_verify(artifact, params)).encode()

    from ..analysis.proof import AnalysisError  # not at the top: most runs find a kept result

    try:
        found: list[str] = cache.once("verified", [artifact.digest, dict(params)], proven, json.loads)
    except (AnalysisError, ForewarnError) as error:  # not kept: the reason may be this machine
        return [f"The policies could not be verified: {error}"]
    return found


def _verify(artifact: Artifact, params: Mapping[str, Any]) -> list[str]:
    from ..analysis.verify.verify import verify

    findings = [
        f"{finding.source}:{finding.line}:{finding.column}: {finding.severity} {finding.code}: {finding.message}"
        for finding in verify(artifact, params).findings
        if finding.severity != "note" and finding.suppressed is None
    ]
    more = (
        [f"and {len(findings) - _MOST_FINDINGS} more: see forewarn policy verify"]
        if len(findings) > _MOST_FINDINGS
        else []
    )
    return findings[:_MOST_FINDINGS] + more
