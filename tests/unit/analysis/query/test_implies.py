# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``policy implies``: what two sets of policies approve, and the events that contradict a claim about it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from forewarn.analysis.query.answers import NONE, NOT_PROVEN, SOME
from forewarn.analysis.query.implies import DISJOINT, EQUIVALENT, IMPLIES, exceptions
from forewarn.cli.main import main
from tools.fixtures.policy_files import HEAD, SHIPPED, loaded, written


def policy(condition: str, output: str = "approve") -> str:
    return HEAD + f"    - {{id: one, condition: {json.dumps(condition)}, output: {output}}}\n"


FREEZE = policy("event.EventType == 'Freeze'")
SHORT = policy("event.EventType == 'Freeze' && event.DurationInSeconds in [1, 2, 3]")
REBOOT = policy("event.EventType == 'Reboot'")
ANOTHER_FREEZE = policy("!(event.EventType != 'Freeze')")
LIMITED = FREEZE.replace("rule:", "params: [{name: most, type: int, default: 9, min: 0, max: %s}]\nrule:").replace(
    "'Freeze'", "'Freeze' && event.DurationInSeconds in [1, 20] && event.DurationInSeconds <= params.most"
)
ODD = policy("event.EventType == 'Freeze' && event.Description.size() * event.Description.size() == 3")


@pytest.mark.parametrize(
    ("one", "other", "relation", "verdicts"),
    [
        (SHORT, FREEZE, IMPLIES, [NONE]),
        (FREEZE, SHORT, IMPLIES, [SOME]),
        (FREEZE, REBOOT, IMPLIES, [SOME]),
        (policy("true", "hold"), REBOOT, IMPLIES, [NONE]),
        (FREEZE, ANOTHER_FREEZE, EQUIVALENT, [NONE, NONE]),
        (SHORT, FREEZE, EQUIVALENT, [NONE, SOME]),
        (FREEZE, SHORT, EQUIVALENT, [SOME, NONE]),
        (FREEZE, REBOOT, EQUIVALENT, [SOME, SOME]),
        (FREEZE, REBOOT, DISJOINT, [NONE]),
        (FREEZE, SHORT, DISJOINT, [SOME]),
        (LIMITED % 60, LIMITED % 60, EQUIVALENT, [NONE, NONE]),
        (LIMITED % 10, LIMITED % 60, IMPLIES, [NONE]),
        (LIMITED % 60, LIMITED % 10, IMPLIES, [SOME]),
        (ODD, REBOOT, IMPLIES, [NOT_PROVEN]),
        (ODD, FREEZE, IMPLIES, [NONE]),  # whatever its second part is
    ],
)
def test_a_claim_is_proven_or_refuted(one: str, other: str, relation: str, verdicts: list[str], tmp_path: Path) -> None:
    found = exceptions(relation, loaded(tmp_path, one), loaded(tmp_path, other))
    assert [answer.verdict for answer in found] == verdicts
    wanted = {IMPLIES: [("approve", "hold")], DISJOINT: [("approve", "approve")]}
    pairs = wanted.get(relation, [("approve", "hold"), ("hold", "approve")])
    for answer, pair in zip(found, pairs):
        assert answer.verdict != SOME or answer.groups
        for group in answer.groups:
            if answer.verdict == SOME:
                assert tuple(decision["output"] for decision in group.decisions) == pair


def test_all_policies_of_a_side_count(tmp_path: Path) -> None:
    together = loaded(tmp_path, FREEZE, policy("event.DurationInSeconds > 3", "hold").replace("name: p", "name: q"))
    alone = loaded(tmp_path, FREEZE)
    assert [one.verdict for one in exceptions(IMPLIES, together, alone)] == [NONE]
    assert [one.verdict for one in exceptions(IMPLIES, alone, together)] == [SOME]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_policy_is_equivalent_to_itself(path: Path, tmp_path: Path) -> None:
    artifact = loaded(tmp_path, path.read_text())
    assert [one.verdict for one in exceptions(EQUIVALENT, artifact, artifact)] == [NONE, NONE]


@pytest.mark.parametrize("options", [[], ["--equivalent"], ["--disjoint"]])
def test_the_command(options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "b").mkdir()
    (one,), (other,) = written(tmp_path, SHORT), written(tmp_path / "b", FREEZE)
    code = 1 if options else 0
    assert main(["policy", "implies", str(one), str(other), *options]) == code
    said = capsys.readouterr().out
    assert ("refuted: " if options else "proven: ") in said
    assert said.count("  repeat: ") == (2 if options else 0)
    assert main(["policy", "implies", str(one), str(other), *options, "--json"]) == code
    content = json.loads(capsys.readouterr().out)
    assert content["forewarn"] == {"schema": "implication", "version": 1}
    assert content["proven"] == (not options)
    assert len(content["claims"]) == (2 if options == ["--equivalent"] else 1)


def test_policies_run_together_and_an_artifact_stands_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, held = written(tmp_path, FREEZE, policy("event.DurationInSeconds > 3", "hold").replace("name: p", "name: q"))
    short = tmp_path / "short.yml"
    short.write_text(policy("event.EventType == 'Freeze' && event.DurationInSeconds <= 3"))
    assert main(["policy", "implies", str(one), str(held), str(short)]) == 0
    assert main(["policy", "implies", str(one), str(short)]) == 1
    artifact = tmp_path / "policy.json"
    assert main(["policy", "compile", str(one), "--output", str(artifact)]) == 0
    assert main(["policy", "implies", str(artifact), str(short)]) == 1
    assert main(["policy", "implies", str(short), str(artifact)]) == 0
    capsys.readouterr()
    assert main(["policy", "implies", str(artifact), str(held), str(short)]) == 2
    assert "stands alone" in capsys.readouterr().err
    assert main(["policy", "implies", str(artifact), str(short), "--api-version", "2019-08-01"]) == 2
    assert "was compiled for api-version" in capsys.readouterr().err
