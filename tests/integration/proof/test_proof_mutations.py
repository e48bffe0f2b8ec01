# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each single-token change of the shipped policies is refused, found, or of no effect on any class of events.

Only size full tries each of them. Counts: ``-rP``.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from forewarn.analysis.diff.diff import compare
from forewarn.analysis.diff.kinds import NO_CHANGE
from forewarn.analysis.engine import Engine
from forewarn.analysis.event_space.policies import read_together
from forewarn.analysis.report.decisions import SpaceDecisions
from forewarn.compiler.policies import compile_policies, load_policies
from forewarn.compiler.testing.policytest import run_tests
from forewarn.policy.artifact import Artifact, load
from forewarn.policy.decision import Decision
from tools.fixtures.policy_files import SHIPPED
from tools.generators.mutations import mutants
from tools.judges.class_agreement import approved
from tools.suite.sizes import SEED, SIZE

pytestmark = pytest.mark.in_turn(2)


def behaviour(decision: Decision) -> tuple[Any, ...]:
    hooks = decision.prepare, decision.recover, decision.notify
    return (
        *(decision.output, decision.policy, decision.rule, decision.reason),
        *(decision.approver, decision.group, hooks),
    )


def differing_classes(old: Artifact, new: Artifact) -> int:
    """Ask the engine about every class, whatever the analysis thinks of it."""
    before, after = read_together([old, new])
    engines, differing = (Engine(before.artifact, before.fixed), Engine(after.artifact, after.fixed)), 0
    for space in before.spaces():
        for number in space.members(space.reachable):
            witness = space.witness(number)
            first, second = (behaviour(engine.decide(witness)) for engine in engines)
            differing += first != second
    return differing


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_mutant_is_accounted_for(path: Path, tmp_path: Path) -> None:
    original = load_policies([path])
    place, tests = tmp_path / path.name, tmp_path / f"{path.stem}.test.yml"
    tests.write_text(path.with_name(tests.name).read_text())
    counts: Counter[str] = Counter()
    without_effect, untested = [], []
    every = list(mutants(path.read_text()))
    assert len(every) > 10
    for mutant in Random(f"{SEED} {path.stem}").sample(every, min(len(every), SIZE.policy_mutants)):
        counts["mutants"] += 1
        place.write_text(mutant.text)
        compilation = compile_policies([place])
        if compilation.artifact is None:
            counts["refused by check"] += 1
            continue
        artifact = load(compilation.artifact)
        changed = compare(original, artifact).verdict != NO_CHANGE
        failed = bool(run_tests([tests]).failed)
        assert changed or not failed, f"tests fail, but diff sees no change: {mutant}"
        counts["found by diff"] += changed
        counts["found by the policy's tests"] += failed
        if changed and not failed:
            untested.append(str(mutant))
        if not changed:
            assert differing_classes(original, artifact) == 0, f"neither found nor without effect: {mutant}"
            without_effect.append(str(mutant))
    print(f"{path.stem}: " + ", ".join(f"{count} {name}" for name, count in counts.items()), end="")
    print(f", {len(without_effect)} without effect on any class: " + "; ".join(without_effect))
    print("found by diff alone: " + "; ".join(untested))
    assert counts["mutants"] == counts["refused by check"] + counts["found by diff"] + len(without_effect)
    assert not untested, "the shipped tests miss it"


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("azure-sample", "event.DurationInSeconds < 9", "!(event.DurationInSeconds > 8)"),
        ("azure-sample", 'event.EventStatus == "Started"', 'event.EventStatus != "Scheduled"'),
        ("spot-worker", 'event.EventType == "Preempt"', "event.EventType.startsWith('Pre')"),
        ("web-tier", '["Freeze", "Reboot", "Redeploy", "Terminate"]', '["Terminate", "Reboot", "Freeze", "Redeploy"]'),
        ("web-tier", '"!affects_me"', '"affects_me ? leader && !leader : true"'),
    ],
)
def test_other_words_for_the_same_are_no_change(name: str, old: str, new: str, tmp_path: Path) -> None:
    (path,) = (path for path in SHIPPED if path.stem == name)
    text = path.read_text()
    assert text.count(old) >= 1
    (tmp_path / path.name).write_text(text.replace(old, new, 1))
    before, after = load_policies([path]), load_policies([tmp_path / path.name])
    assert compare(before, after).verdict == NO_CHANGE
    assert differing_classes(before, after) == 0


def test_decided_is_what_is_compared() -> None:
    """Guards the brute force: a changed rule must show there, too."""
    first, second = (load_policies([path]) for path in SHIPPED[2:4])
    assert differing_classes(first, second) > 100
    before, after = read_together([first, second])
    (space,) = before.spaces()
    assert approved(SpaceDecisions(before, space)) != approved(SpaceDecisions(after, space))
