# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes policies about which a claim is false shorter, as long as a claim of the same kind stays false."""

from __future__ import annotations

import random
from collections.abc import Iterator

import yaml
from forewarn.errors import ForewarnError

from ..judges.claim_judge import VerifyJudge
from ..judges.claim_results import Contradiction, Results
from ..judges.claims import compiled, verify
from .drawn_policies import Data, DrawnPolicies, of

_MOST = 100  # attempts


def shrunk(found: Contradiction) -> Contradiction:
    """Return the same kind of contradiction of verify, in policies that are as short as could be found."""
    best, left = found, _MOST
    while left:
        for smaller in _smaller([yaml.safe_load(text) for text in best.texts]):
            left -= 1
            again = _still(found, of(smaller, found.api_version))
            if again is not None:
                best = again
                break
            if not left:
                break
        else:
            break
    return best


def _still(found: Contradiction, policies: DrawnPolicies) -> Contradiction | None:
    results = Results()
    try:
        artifact = compiled(*policies.texts, api_version=policies.api_version)
        proof = verify(*policies.texts, api_version=policies.api_version, seconds=3)
        if not proof.answered:
            return None
        judge = VerifyJudge(policies, artifact, proof, results)
        judge.static()
        if not found.kind.startswith("case "):
            seen, params, _decision = found.seen
            engines = judge.engines(params)
            for _ in range(20 if engines and found.kind == "no unprepared" else 1 if engines else 0):
                judge.judge(engines, seen, params, random.Random(found.kind))  # type: ignore[arg-type]  # of either judge
    except (ForewarnError, ValueError):  # the compiler refuses it
        return None
    return next(iter(results.of(found.kind)), None)


def _smaller(policies: list[Data]) -> Iterator[list[Data]]:
    """Yield the same policies with something left out."""
    for number, data in enumerate(policies):
        rest = policies[:number], policies[number + 1 :]
        if len(policies) > 1:
            yield [*rest[0], *rest[1]]
        for one in _without(data):
            yield [*rest[0], one, *rest[1]]


def _without(data: Data) -> Iterator[Data]:
    if "extra_values" in data:
        yield {key: value for key, value in data.items() if key != "extra_values"}
    for key in ("invariants", "params"):
        for number in range(len(data[key])):
            yield {**data, key: data[key][:number] + data[key][number + 1 :]}
    for entry in _expressions(data.get("invariants", []), "expression"):
        yield {**data, "invariants": entry}
    for rule in _blocks(data["rule"]):
        yield {**data, "rule": rule}


def _blocks(block: Data) -> Iterator[Data]:
    matches = block["match"]
    if block.get("variables"):
        yield {**block, "variables": block["variables"][1:]}
    for number, match in enumerate(matches):
        before, after = matches[:number], matches[number + 1 :]
        if len(matches) > 1:
            yield {**block, "match": [*before, *after]}
        for key in sorted(match.keys() - {"id", "output", "rule"}):
            yield {**block, "match": [*before, {name: one for name, one in match.items() if name != key}, *after]}
        if "rule" in match:
            yield {**block, "match": [*before, *match["rule"]["match"], *after]}
            for rule in _blocks(match["rule"]):
                yield {**block, "match": [*before, {**match, "rule": rule}, *after]}
    for one in _expressions(matches, "condition"):
        yield {**block, "match": one}


def _expressions(entries: list[Data], key: str) -> Iterator[list[Data]]:
    """Yield the entries with a part of one expression in its place."""
    for number, entry in enumerate(entries):
        for part in _parts(str(entry.get(key, ""))):
            yield [*entries[:number], {**entry, key: part}, *entries[number + 1 :]]


def _parts(source: str) -> Iterator[str]:
    """Yield the texts in brackets, and the sides of operators outside of brackets."""
    begins: list[int] = []
    for place, character in enumerate(source):
        if character == "(":
            begins.append(place + 1)
        elif character == ")" and begins:
            begin = begins.pop()
            if begin < 2 or not (source[begin - 2].isalnum() or source[begin - 2] == "_"):
                yield source[begin:place]
    for operator in (" && ", " || "):
        if operator in source and "(" not in source:
            yield from source.split(operator)
