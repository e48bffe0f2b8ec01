# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``policy verify``: looks for problems of valid policies over every possible event."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..compiler.second_opinion import CODE as ENGINES_DIFFER
from ..policy.artifact import Artifact
from .counterexamples import Prover
from .differing import Differing
from .finding import CODES, RANK, ProofFinding
from .recovering import early, recovery
from .search import TYPES, WHEN, Dead, Refuted, Search, SliceFinding, never
from .symbolic.comparing import compared
from .symbolic.decide import Decided
from .symbolic.reading import Reading, read
from .symbolic.regions import united
from .symbolic.space import CONSTRAINTS, Space

__all__ = ["CODES", "Verification", "verify"]


@dataclass(frozen=True)
class Verification:
    """The findings and what they rest on. ``not_understood`` are expressions that may be true or false."""

    findings: tuple[ProofFinding, ...]
    classes: int
    assumptions: tuple[str, ...]
    not_understood: tuple[str, ...]
    constraints: tuple[str, ...] = CONSTRAINTS


def verify(reading: Reading) -> Verification:
    """Look for findings.

    Raises InputError if there are too many classes or cel-python is missing, AnalysisError on a defect of our own.
    """
    together, prover, classes = _Merged(), Prover(reading), 0
    single = len(reading.policies) == 1
    differing = Differing(reading)
    for space in reading.spaces():
        decided = Decided(reading, space)
        classes += space.reachable.bit_count()
        search = Search(decided, prover)
        together.add(space, search.together())
        together.add(space, compared(search))
        together.add(space, early(search))
        together.add(space, differing.found(search))
        if single:
            together.add(space, search.rules(), never(decided))
            together.add(space, recovery(search))
    found = together.findings()
    by_itself: list[ProofFinding] = []  # findings of policies with suppressions, each by itself
    for part in () if single else _each(reading):  # a rule depends only on its own policy, which reads less
        alone, undisturbed, prover = _Merged(), _Merged(), Prover(part)
        for space in part.spaces():
            decided = Decided(part, space)
            search = Search(decided, prover)
            alone.add(space, search.rules(), never(decided))
            alone.add(space, recovery(search))
            if part.policies[0].data.get("suppress"):
                undisturbed.add(space, search.together())
                undisturbed.add(space, compared(search))
                undisturbed.add(space, early(search))
        by_itself += undisturbed.findings()
        found += [replace(one, alone=True) for one in alone.findings()]
    findings = _suppressed(reading, found, by_itself)
    findings.sort(key=lambda one: (one.source, one.line, one.column, one.code))
    sources = tuple(dict.fromkeys(opaque.source for opaque in reading.symbols.opaque_terms.values()))
    return Verification(tuple(findings), classes, reading.assumptions, sources)


def _each(reading: Reading) -> Iterator[Reading]:
    """Yield each policy by itself."""
    artifact = reading.artifact
    for data in artifact.data["policies"]:
        declared = {entry["name"] for entry in data["params"]}
        params = {name: value for name, value in reading.fixed.items() if name in declared}
        one = Artifact({**artifact.data, "policies": [{**data, "invariants": []}]}, "", artifact.api_version)
        yield read(one, params)


class _Merged:
    """Findings of all slices of a space, each once."""

    def __init__(self) -> None:
        self._found: dict[tuple[Any, ...], list[SliceFinding]] = {}
        self._dead: dict[int, Dead] | None = None
        self._refuted: set[Refuted] = set()
        self._space: Space | None = None

    def add(
        self, space: Space, found: Iterator[SliceFinding | Refuted], dead: Mapping[int, Dead] | None = None
    ) -> None:
        """Add the findings of a slice. A rule is dead only if it is dead in every slice."""
        self._space = space
        for one in found:
            if isinstance(one, Refuted):
                self._refuted.add(one)
                continue
            place = (one.finding.source, one.finding.line, one.finding.column)
            key = (one.finding.code, one.finding.policy, one.finding.rule, place, one.about)
            self._found.setdefault(key, []).append(one)
        if dead is not None:
            known = dead if self._dead is None else self._dead
            self._dead = {key: one.merged(dead[key]) for key, one in known.items() if key in dead}

    def findings(self) -> list[ProofFinding]:
        """Return all findings, with their messages completed."""
        dead = {one.match.path: one for one in (self._dead or {}).values()}
        outermost = [one for path, one in dead.items() if not any(path.startswith(other + ".") for other in dead)]
        refuted: set[tuple[str | None, ...]] = set(self._refuted)
        found = [one for key, one in self._found.items() if key[:3] not in refuted]
        return [*(self._merge(one) for one in found), *(one.finding() for one in outermost)]

    def _merge(self, found: list[SliceFinding]) -> ProofFinding:
        # Findings that an event shows come before possible ones.
        ranks = [(RANK[one.finding.severity], not one.finding.certain) for one in found]
        alike = [one for one, rank in zip(found, ranks) if rank == min(ranks)]
        first = alike[0]
        message = first.finding.message
        if WHEN in message and self._space is not None:
            message = message.replace(WHEN, united(self._space, [(one.when, one.cell) for one in alike]))
        if TYPES in message:
            name, *others = dict.fromkeys(name for one in alike for name in one.types)
            message = message.replace(TYPES, f"{'an' if name[:1] in 'AEIOU' else 'a'} {name}")
            if others:
                message += f"; likewise for {' and '.join(', '.join(others).rsplit(', ', 1))}"
        return replace(first.finding, message=message)


def _suppressed(reading: Reading, findings: list[ProofFinding], by_itself: list[ProofFinding]) -> list[ProofFinding]:
    """Return the findings, the suppressed ones marked, and a finding for each unused suppression.

    A suppression that a policy needs when it runs ``by_itself`` counts as used beside other policies.
    """
    result = list(findings)
    for policy in reading.policies:
        for entry in policy.data.get("suppress", ()):
            code, rule = entry["code"], entry.get("rule")
            used = any(_meant(finding, code, policy.name, rule) for finding in by_itself)
            for place, finding in enumerate(result):
                if _meant(finding, code, policy.name, rule):
                    result[place], used = replace(finding, suppressed=entry["reason"]), True
            if not used and code != ENGINES_DIFFER:  # tests may have an event for it
                about = f"of rule {rule} " if rule else ""
                message = f"the file suppresses {code} {about}and there is no such finding"
                source = policy.data["source"]
                hint = "remove it from 'suppress'" if code in CODES else f"the codes are {', '.join(CODES)}"
                result.append(
                    ProofFinding("unused-suppression", "warning", policy.name, rule, source, 1, 1, message, hint)
                )
    return result


def _meant(finding: ProofFinding, code: str, policy: str, rule: str | None) -> bool:
    return (finding.code, finding.policy) == (code, policy) and rule in (None, finding.rule)
