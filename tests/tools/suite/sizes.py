# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much the tests try: the one place that reads FOREWARN_SIZE and FOREWARN_SEED.

FOREWARN_SIZE is ``small`` (the default: make test and CI), ``full`` (make test-all, each night) or ``soak`` (ten times
full, and a million evaluations of CEL). FOREWARN_SEED is the number from which random tests count: 0 unless it is set,
another one in each run of CI. The same seed gives the same tests. Tests marked ``full`` are skipped at size small, and
so are some of those marked ``in_turn`` (turns.py).
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pytest
from _pytest.mark import ParameterSet

NAMES = ("small", "full", "soak")
_SOAK = 10  # times as much as full


@dataclass(frozen=True)
class Sizes:
    """How many of each thing the tests of one run try; the names are also the words of the report."""

    cel_evaluations: int  # by our evaluator and by another, all random tests together
    killed_runners: int  # each again and again, as soon as its journal has grown
    flipped_bits: int  # of a journal, one by one, in each of three kinds of place
    hooks_due_at_once: int
    fault_pairs_percent: int  # of two faults of the service, one after the other
    store_writers: int  # that count together in the store of a group
    started_configurations_percent: int  # of wrong ones and random ones: a runner starts with them
    expression_cases: int  # events for which each single expression is translated and evaluated
    fuzzed_policies: int  # random ones, whose claims random events contradict
    mutants: int  # of each package, by tools.suite.mutants
    needless_policies: int  # random ones, of which what changes nothing is left out
    policy_mutants: int  # of each shipped policy: all at size full
    policy_classes: int  # of each shipped policy: all at size full
    single_suggestions: int  # of each policy, tried by themselves: all at size full
    smt_cases: int  # of CEL's conformance cases
    smt_conditions: int  # over any event
    smt_expressions: int  # over one event, of each kind
    smt_bound_loops: int  # pairs of expressions
    smt_policies: int  # beside those that are shipped
    suggested_policies: int  # random ones, for which tests are suggested
    wild_changes: int  # of policies that are hard to analyse
    wild_policies: int  # that are hard to analyse
    z3_policies: int  # which another translation for z3 judges
    group_runners: int  # VMs of the group whose store fails on hosts
    group_seconds: int  # for which it does, with etcd; half of it with Azurite
    group_stories: int  # of many VMs, in which anything may fail
    group_members: int  # of a group with up to twenty events at once
    group_policies: int  # random ones with groups and limits
    runner_crashes: int  # in scenarios of virtual time
    windows_kills: int  # of runners on Windows, in such scenarios
    hypothesis_percent: int  # of the examples that each property test asks for


SMALL = Sizes(
    cel_evaluations=4_000,
    killed_runners=1,
    flipped_bits=30,
    hooks_due_at_once=60,
    fault_pairs_percent=20,
    store_writers=4,
    started_configurations_percent=10,
    expression_cases=8,
    fuzzed_policies=4,
    mutants=40,
    needless_policies=5,
    policy_mutants=6,
    policy_classes=150,
    single_suggestions=3,
    smt_cases=50,
    smt_conditions=16,
    smt_expressions=40,
    smt_bound_loops=60,
    smt_policies=10,
    suggested_policies=3,
    wild_changes=16,
    wild_policies=30,
    z3_policies=16,
    group_runners=12,
    group_seconds=24,
    group_stories=2,
    group_members=30,
    group_policies=60,
    runner_crashes=36,
    windows_kills=100,
    hypothesis_percent=15,
)
FULL = Sizes(
    cel_evaluations=24_000,
    killed_runners=3,
    flipped_bits=150,
    hooks_due_at_once=200,
    fault_pairs_percent=100,
    store_writers=8,
    started_configurations_percent=100,
    expression_cases=24,
    fuzzed_policies=36,
    mutants=200,
    needless_policies=50,
    policy_mutants=100,
    policy_classes=3_000,
    single_suggestions=100,
    smt_cases=652,
    smt_conditions=80,
    smt_expressions=600,
    smt_bound_loops=1_000,
    smt_policies=40,
    suggested_policies=24,
    wild_changes=120,
    wild_policies=300,
    z3_policies=200,
    group_runners=30,
    group_seconds=80,
    group_stories=12,
    group_members=100,
    group_policies=240,
    runner_crashes=216,
    windows_kills=360,
    hypothesis_percent=100,
)


def _sizes(name: str) -> Sizes:
    if name not in NAMES:
        raise SystemExit(f"FOREWARN_SIZE is {name!r}: it must be one of {', '.join(NAMES)}")
    if name == "soak":
        much = Sizes(**{field: value * _SOAK for field, value in dataclasses.asdict(FULL).items()})
        return dataclasses.replace(
            much,
            cel_evaluations=1_000_000,
            fault_pairs_percent=100,
            group_runners=FULL.group_runners,
            hooks_due_at_once=FULL.hooks_due_at_once,
            store_writers=FULL.store_writers,
        )
    return SMALL if name == "small" else FULL


NAME = os.environ.get("FOREWARN_SIZE") or "small"
SIZE = _sizes(NAME)
SEED = int(os.environ.get("FOREWARN_SEED") or 0)


def seeds(count: int) -> range:
    """Return the seeds of this run: ``count`` numbers, from SEED on."""
    return range(SEED, SEED + count)


def examples(full: int) -> int:
    """Return how many examples a property test draws, of those that it draws at size full."""
    return max(1, full * SIZE.hypothesis_percent // 100)


def in_turn(cases: Iterable[object], number: int = 1) -> list[ParameterSet]:
    """Return all cases as parameters of a test, of which size small takes a number: with another seed others."""
    listed = list(cases)
    taken = {(SEED + step) % len(listed) for step in range(min(number, len(listed)))}
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)), marks=[] if place in taken else [pytest.mark.full]
        )
        for place, case in enumerate(listed)
    ]


def enough(full: int) -> int:
    """Return how many of something rare a random test has to meet at least: so many at size full, 0 at small."""
    return 0 if NAME == "small" else full


def left_out() -> Iterator[str]:
    """Yield what this run tries less of than size full: "3 of 12 group stories"."""
    for field in dataclasses.fields(Sizes):
        here, full = getattr(SIZE, field.name), getattr(FULL, field.name)
        if here < full:
            yield f"{here:,} of {full:,} {field.name.replace('_', ' ')}"
