# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The coverage of random policies: suggestions do what they promise, and no event does what is called impossible."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from forewarn.analysis.coverage.coverage import Gap, Gaps, find_gaps
from forewarn.analysis.coverage.outcomes import CoverageItem, items_of_decision, items_of_traces
from forewarn.analysis.coverage.suggestions import new_test_file
from forewarn.compiler.testing.policytest import PolicyTestRun, run_tests, run_without_tests
from forewarn.errors import ForewarnError, InputError
from forewarn.events import LATEST_API_VERSION
from forewarn.policy.engine import PolicySet
from tools.generators.drawn_events import Observation, pool, several
from tools.generators.drawn_policies import DrawnPolicies, drawn
from tools.suite.sizes import SEED, SIZE

SEEDS = range(2026 + SEED, 2026 + SEED + SIZE.suggested_policies)
EVENTS, CHOICES = 800, 3  # events, and parameters for each policy


@cache
def events() -> list[Observation]:
    """Return the events that all policies are judged by."""
    return pool(random.Random(1), LATEST_API_VERSION, EVENTS)


def written(directory: Path, seed: int) -> tuple[DrawnPolicies, PolicyTestRun]:
    """Return the first policies from a seed on that the compiler takes, and a run of them without any tests."""
    chance = random.Random(seed)
    while True:
        policies = drawn(chance, LATEST_API_VERSION, small=True)
        paths = [directory / f"p{number}.yml" for number in range(len(policies.texts))]
        for path, text in zip(paths, policies.texts):
            path.write_text(text)
        try:
            run = run_without_tests(paths, directory / "tests.yml")
        except ForewarnError:
            continue
        if run.tested:
            return policies, run


def reached(run: PolicyTestRun, policies: DrawnPolicies, seed: int) -> Iterator[tuple[Observation, set[CoverageItem]]]:
    """Yield what each event covers, with some values of the parameters."""
    (tested,) = run.tested
    paths = {one.policy: one.path for one in tested.coverage}
    for params in several(random.Random(seed), sorted(policies.params()), CHOICES, policies.required()):
        try:
            engine = PolicySet(tested.artifact, params)
        except InputError:  # limits forbid these values
            continue
        for one in events():
            event = one.document.events[0]
            if event.problems:
                continue
            decision = engine.decide(one.document, one.facts)[0]
            traces = engine.explain(event, one.document, one.facts)
            yield one, items_of_decision(decision, tested, paths) | items_of_traces(traces, paths)


def run_with(directory: Path, found: Gaps, policies: DrawnPolicies) -> PolicyTestRun:
    """Return the run of a new test file with suggestions."""
    (directory / "tests.yml").write_text(
        new_test_file([f"p{n}.yml" for n in range(len(policies.texts))], found.suggestions)
    )
    run = run_tests([directory / "tests.yml"])
    assert run.findings == []
    assert run.failed == []
    return run


def outcome(gap: Gap) -> str:
    """Return what a gap is about, as unproven outcomes are called."""
    return gap.text.removeprefix("no test of a ").removeprefix("no test in which ")


@pytest.mark.parametrize("seed", SEEDS)
def test_suggestions_cover_and_impossible_outcomes_never_occur(tmp_path: Path, seed: int) -> None:
    policies, run = written(tmp_path, seed)
    (found,) = find_gaps(run.tested)
    if found.trouble is not None:  # a list without a default
        assert "has no default" in found.trouble or "no parameters are allowed" in found.trouble
        return
    assert len(found.gaps) == found.possible
    if not found.possible:  # all is beyond the solver
        assert found.unproven
        return
    (after,) = find_gaps(run_with(tmp_path, found, policies).tested)
    unproven = {what for what, _why in found.unproven}  # the solver may be luckier next time
    assert [gap.text for gap in after.gaps if outcome(gap) not in unproven] == []
    assert set(found.impossible) <= set(after.impossible)
    excluded = [one.sentence for one in set(after.impossible) - set(found.impossible)]
    assert [what for what in excluded if what not in unproven] == []
    # What else was unproven is covered by a test whose event the service does not send.
    left = Counter([what for what, _why in after.unproven] + list(map(outcome, after.gaps)) + excluded)
    assert after.covered == found.possible + (Counter(what for what, _why in found.unproven) - left).total()
    impossible = set(found.impossible)
    refuted = Counter[CoverageItem]()
    for one, items in reached(run, policies, seed):
        refuted.update(item for item in items & impossible if one.normal or item.event_type is None)
    assert not refuted, policies.texts


def test_each_suggestion_alone_covers_what_it_is_for(tmp_path: Path) -> None:
    for seed in SEEDS[: max(1, len(SEEDS) // 8)]:
        policies, run = written(tmp_path, seed)
        (found,) = find_gaps(run.tested)
        chosen = random.Random(seed).sample(found.suggestions, min(len(found.suggestions), SIZE.single_suggestions))
        for suggestion in chosen:
            single = Gaps(found.path, suggestions=[suggestion])
            (after,) = find_gaps(run_with(tmp_path, single, policies).tested)
            promised = {(gap.policy, gap.text) for gap in found.gaps if gap.test == suggestion.name}
            assert promised
            assert not promised & {(gap.policy, gap.text) for gap in after.gaps}
