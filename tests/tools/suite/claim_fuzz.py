# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looks for false claims of the prover: random policies, and random events that the engine decides.

    python -m tools.suite.claim_fuzz [--seconds N] [--policies N] [--seed N] [--show KIND] [--within-limits]

Each number from the seed on is one drawing: policies, and another version of them. What is contradicted is printed
with the number that repeats it. Parameters have any value that their declarations allow.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from forewarn.errors import ForewarnError
from forewarn.events import API_VERSIONS, LATEST_API_VERSION
from forewarn.policy.artifact import Artifact

from ..generators.claim_shrink import shrunk
from ..generators.drawn_changes import changed
from ..generators.drawn_events import Observation, pool, several
from ..generators.drawn_policies import DrawnPolicies, drawn
from ..judges.claim_diff_judge import DiffJudge
from ..judges.claim_judge import VerifyJudge
from ..judges.claim_results import Results
from ..judges.claims import GAVE_UP, compiled, diff, verify

POOL = 8000  # events of each api-version
_MODES = ("--small", "--within-limits")
CHOICES = 6  # of parameters, for each policy


class Effort(NamedTuple):
    """How much is done for each drawing. ``seconds`` are those after which a proof is given up."""

    events: int = 20_000
    diff_events: int = 4_000
    seconds: float = 3.0
    within_limits: bool = False  # whether parameters without limits keep their default
    small: bool = False  # whether policies are small


class Fuzzer:
    """Judges drawings by a pool of events that all of them share."""

    def __init__(self, seed: int, effort: Effort, results: Results | None = None) -> None:
        self.effort = effort
        self.results = Results() if results is None else results
        self._seed = seed
        self._pools: dict[str, list[Observation]] = {}

    def one(self, number: int) -> None:
        """Judge one drawing."""
        chance = random.Random(number)
        api_version = LATEST_API_VERSION if chance.random() < 0.85 else chance.choice(API_VERSIONS)
        policies, artifact = self._drawn(chance, api_version)
        self._verify(chance, policies, artifact)
        for _ in range(5):
            other = changed(policies, chance)
            try:
                artifacts = artifact, compiled(*other.texts, api_version=api_version)
            except ForewarnError:
                continue
            self._diff(chance, (policies, other), artifacts)
            break

    def _drawn(self, chance: random.Random, api_version: str) -> tuple[DrawnPolicies, Artifact]:
        """Return policies that the compiler takes."""
        while True:
            policies = drawn(chance, api_version, small=self.effort.small)
            try:
                return policies, compiled(*policies.texts, api_version=api_version)
            except ForewarnError:
                self.results.counts["refused by the compiler"] += 1

    def _verify(self, chance: random.Random, policies: DrawnPolicies, artifact: Artifact) -> None:
        proof = verify(*policies.texts, api_version=policies.api_version, seconds=self.effort.seconds)
        self._count("policies", proof.code, proof.problem, policies.texts)
        if not proof.answered:
            return
        judge = VerifyJudge(policies, artifact, proof, self.results)
        judge.static()
        choices = list(several(chance, self._varying([policies]), CHOICES, policies.required()))
        for params in choices:
            engines = judge.engines(params)
            if engines is not None:
                for seen in self._events(chance, policies.api_version, self.effort.events // len(choices)):
                    judge.judge(engines, seen, params, chance)

    def _diff(self, chance: random.Random, versions: Sequence[DrawnPolicies], artifacts: Sequence[Artifact]) -> None:
        old, new = versions
        found = diff(old.texts, new.texts, api_version=old.api_version, seconds=self.effort.seconds)
        self._count("changes", found.code, found.problem, (*old.texts, *new.texts))
        if not found.answered:
            return
        judge = DiffJudge(versions, artifacts, found, self.results)
        judge.static()
        choices = list(several(chance, self._varying(versions), CHOICES, old.required() | new.required()))
        for params in choices:
            engines = judge.engines(params)
            if any(engines):
                for seen in self._events(chance, old.api_version, self.effort.diff_events // len(choices)):
                    judge.judge(engines, seen, params)

    def _varying(self, versions: Sequence[DrawnPolicies]) -> list[str]:
        names = {name for one in versions for name in one.params()}
        if self.effort.within_limits:
            names -= {name for one in versions for name in one.unlimited()}
        return sorted(names)

    def _count(self, what: str, code: int, problem: str, texts: Sequence[str]) -> None:
        counts = self.results.counts
        counts[what] += 1
        if code == GAVE_UP:
            counts[f"{what} given up"] += 1
        elif code == 2:
            counts[f"{what} refused"] += 1
        elif code not in (0, 1):
            counts[f"{what} with exit code {code}"] += 1
            self.results.crashes.append((problem, tuple(texts)))

    def _events(self, chance: random.Random, api_version: str, count: int) -> Iterator[Observation]:
        if api_version not in self._pools:
            self._pools[api_version] = pool(random.Random(f"{self._seed} {api_version}"), api_version, POOL)
        listed = self._pools[api_version]
        begin = chance.randrange(POOL)
        return (listed[(begin + step) % POOL] for step in range(min(count, POOL)))  # each once


def main(arguments: Sequence[str]) -> int:
    """Return 1 if a claim was contradicted or the prover crashed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--policies", type=int, default=sys.maxsize)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**31))
    parser.add_argument("--show", action="append", default=[], help="only this kind of claim; repeatable")
    parser.add_argument("--most", type=int, default=3, help="how many of each kind are shown")
    parser.add_argument("--shrink", action="store_true", help="make shown policies shorter (verify only)")
    parser.add_argument("--within-limits", action="store_true", help="no value but the default where no limit is")
    parser.add_argument("--small", action="store_true", help="small policies")
    args = parser.parse_args(arguments)
    fuzzer = Fuzzer(args.seed, Effort(within_limits=args.within_limits, small=args.small))
    results, shown, told_of = fuzzer.results, 0, Counter[str]()
    again = " ".join(["Again: python -m tools.suite.claim_fuzz", *(one for one in arguments if one in _MODES)])
    began = told = time.monotonic()
    _say(f"policies from number {args.seed} on (--seed {args.seed})")
    for number in range(args.seed, args.seed + args.policies):
        fuzzer.one(number)
        for found in results.contradictions[shown:]:
            told_of[found.kind] += 1
            if told_of[found.kind] <= args.most and (not args.show or found.kind in args.show):
                found = shrunk(found) if args.shrink and "OLD" not in found.texts else found
                _say(f"\nnumber {number}: {found}\n{again} --seed {number} --policies 1")
        shown = len(results.contradictions)
        now = time.monotonic()
        if now - told > 30:
            told = now
            counts = results.counts
            _say(
                f"{now - began:6.0f} s  {number - args.seed + 1} drawings, {counts['pairs']:,} pairs for verify, "
                f"{counts['pairs of diff']:,} for diff, {shown} contradictions"
            )
        if args.seconds and now - began > args.seconds:
            break
    _say(results.text())
    for problem, texts in results.crashes[:3]:
        _say("\n".join(("", problem, *texts)))
    return 1 if results.contradictions or results.crashes else 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
