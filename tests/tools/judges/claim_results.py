# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kinds of claims of the prover that are judged, and what is counted of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from forewarn.errors import InputError
from forewarn.policy.artifact import Artifact
from forewarn.policy.engine import PolicySet

# The kinds of claims that are judged.
VERIFY_KINDS = (
    *("shadowed-rule", "unsatisfiable-rule", "cannot fail", "fails for unusual events only", "invariant holds"),
    *("invariant has a value", "covered", "no unknown duration", "no follower", "no unprepared"),
    "none before others",
)
CASE_KINDS = tuple(
    f"case of {code}"
    for code in (
        *("rule-can-fail", "uncovered-events", "invariant-violated", "invariant-can-fail", "unknown-duration-approved"),
        *("follower-approves", "approved-unprepared", "approves-before-others", "another finding"),
    )
)
DIFF_KINDS = ("no change", "not more permissive", "not less permissive", "hold to abstain", "case of a change")


class Contradiction(NamedTuple):
    """A claim and an event that refutes it."""

    kind: str
    about: str
    texts: tuple[str, ...]
    seen: Any
    api_version: str

    def __str__(self) -> str:
        return "\n".join((f"{self.kind}: {self.about}", *self.texts, self._event()))

    def _event(self) -> str:
        if not isinstance(self.seen, tuple):
            return json.dumps({key: one for key, one in self.seen.items() if key != "test"})
        seen, params, *decision = self.seen
        vm, now = seen.facts.vm.as_dict(), str(seen.facts.now)
        age = str(seen.facts.now - min(seen.facts.first_seen.values()))
        facts = {"events": [one.as_dict() for one in seen.document.events], "vm": vm, "now": now, "age": age}
        shown = json.dumps({**facts, "params": params, "api_version": seen.document.api_version})
        return "\n".join((shown, *(f"{one.output} by {one.policy}/{one.rule}: {one.reason}" for one in decision)))


class Results:
    """Counts pairs of policies and events, the claims that were judged, and keeps what was contradicted."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.claims: Counter[str] = Counter()
        self.contradictions: list[Contradiction] = []
        self.crashes: list[tuple[str, tuple[str, ...]]] = []  # what the command wrote, and the policies
        self._known: set[tuple[str, tuple[str, ...]]] = set()

    def add(self, found: Contradiction) -> None:
        """Keep a contradiction: one of each kind for the same policies."""
        key = found.kind, found.texts
        if key not in self._known:
            self._known.add(key)
            self.contradictions.append(found)

    def of(self, kind: str) -> list[Contradiction]:
        """Return what contradicts claims of a kind."""
        return [one for one in self.contradictions if one.kind == kind]

    def text(self) -> str:
        """Return all counts in a few lines."""
        wrong = Counter(one.kind for one in self.contradictions)
        claims = ", ".join(f"{kind} {count:,}" for kind, count in sorted(self.claims.items()))
        counts = ", ".join(f"{kind} {count:,}" for kind, count in sorted(self.counts.items()))
        return f"{counts}\nclaims judged: {claims}\ncontradicted, in policies: {dict(wrong) or 'none'}"


def engine(artifact: Artifact, params: Mapping[str, Any]) -> PolicySet | None:
    """Return the engine, or None if the policies do not run with these parameters."""
    declared = {entry["name"] for entry in artifact.params}
    try:
        return PolicySet(artifact, {name: value for name, value in params.items() if name in declared})
    except InputError:
        return None
