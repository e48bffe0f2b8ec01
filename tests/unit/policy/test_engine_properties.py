# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random policies on random documents: decide() and explain() agree with a second, plain reading of the rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from random import Random
from typing import Any

from forewarn.compiler.cel.environment import policy_declarations
from forewarn.compiler.cel.expression import check
from forewarn.compiler.cel.types import BOOL
from forewarn.events import Document, Event, Vm
from forewarn.policy.decision import Facts, Value
from forewarn.policy.engine import PolicySet, PolicyTrace
from forewarn.policy.evaluate import Builder, Scope
from forewarn.policy.evaluation_error import EvaluationError
from forewarn.policy.forms import read_form
from forewarn.policy.params import bind
from forewarn.policy.program import ROOTS
from forewarn.policy.trace import TracingBuilder
from forewarn.policy.view import DocumentView
from tools.fixtures.policy_data import policy, policy_set
from tools.generators.cel_expressions import Generator
from tools.generators.cel_variables import DECLARATIONS, PARAMS, values
from tools.judges.cel_oracles import MISSING
from tools.suite.sizes import SEED, examples

NOW = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)
DEFAULTS: Mapping[str, Any] = {
    "flag": True,
    "n": 2,
    "ratio": 0.5,
    "label": "web",
    "wait": "5m",
    "since": "2026-01-31T11:00:00Z",
    "names": ["web_0"],
    "sizes": [0, 9],
    "roles": {"role": "web"},
    "zone": "Nowhere/Land",
}
PARAM_ENTRIES: list[Mapping[str, Any]] = [
    {"name": name, "type": str(type_), "default": DEFAULTS[name]} for name, type_ in PARAMS.items()
]


def _condition(random: Random) -> str:
    while True:
        source = Generator(random).make("bool", random.randint(1, 3))
        if not check(source, DECLARATIONS, BOOL).findings:
            return source


def _matches(random: Random, depth: int) -> list[dict[str, Any]]:
    matches = []
    for number in range(random.randint(1, 3)):
        match: dict[str, Any] = {"id": f"m{number}"}
        if random.random() < 0.85:
            match["condition"] = random.choice((_condition(random), _condition(random), "true", "false"))
        if depth and random.random() < 0.35:
            match["rule"] = _matches(random, depth - 1)
        else:
            match["output"] = random.choice(("approve", "hold"))
        matches.append(match)
    return matches


def _event(random: Random, number: int) -> Event:
    return Event(
        event_id=f"Event-{number}",
        event_type=random.choice(("Freeze", "Reboot", "Preempt", "Unheard")),
        event_status=random.choice(("Scheduled", "Scheduled", "Started")),
        resources=random.choice((("web_0", "web_1"), ("web_1",), ())),
        resource_type=random.choice((None, "VirtualMachine")),
        not_before=random.choice((None, NOW + timedelta(minutes=15))),
        description=random.choice((None, "", "text")),
        event_source=random.choice((None, "User", "Platform")),
        duration_in_seconds=random.choice((None, -1, 0, 5, 30)),
        problems=("doubt",) if random.random() < 0.05 else (),
    )


def _outcome(match: Mapping[str, Any], roots: tuple[Any, ...]) -> Any:
    """Return True, False or the error of a condition, evaluated by itself."""
    if match["condition"] is None:
        return True
    scope = Scope(ROOTS)
    closure = Builder(scope, match["condition"]).build(read_form(match["condition"]["form"]))
    values = [*roots, *[None] * (scope.size - len(ROOTS) - 2)]
    try:
        return closure([20_000, None, *values])
    except EvaluationError as error:
        return error


def _plain(block: Mapping[str, Any], roots: tuple[Any, ...]) -> tuple[str, str | None]:
    """Read the rules as the documentation describes them; return the policy's decision and its rule."""
    return _reading(block, roots, "") or ("abstain", None)


def _reading(block: Mapping[str, Any], roots: tuple[Any, ...], prefix: str) -> tuple[str, str | None] | None:
    """Return the decision of a block, or None if the match after it is read next."""
    for match in block["match"]:
        rule, outcome = prefix + match["id"], _outcome(match, roots)
        if isinstance(outcome, EvaluationError):
            return "error", rule
        if not outcome:
            continue
        if "output" in match:
            return match["output"], rule
        said = _reading(match["rule"], roots, rule + ".")
        unconditional = match["condition"] is None or match["condition"]["source"] == "true"
        if said is not None or not unconditional:
            return said or ("abstain", None)
    return None


def _told(trace: PolicyTrace, data: Mapping[str, Any]) -> str | None:
    """Return the rule that the rules of an explanation lead to: the last reached one that failed or has an output."""
    outputs: set[str] = set()

    def collect(block: Mapping[str, Any], prefix: str) -> None:
        for match in block["match"]:
            if "rule" in match:
                collect(match["rule"], prefix + match["id"] + ".")
            else:
                outputs.add(prefix + match["id"])

    collect(data["rule"], "")
    deciding = [rule.rule for rule in trace.rules
                if rule.result == "error" or (rule.result == "true" and rule.rule in outputs)]  # fmt: skip
    assert len(deciding) <= 1
    return deciding[0] if deciding else None


def test_decide_and_explain_agree_with_a_plain_reading() -> None:
    random = Random(SEED)
    count: Counter[str] = Counter()
    for _ in range(examples(120)):
        data = [policy(*_matches(random, 2), name=f"p{n}", params=PARAM_ENTRIES) for n in range(random.randint(1, 3))]
        policies: PolicySet = policy_set(*data)
        document = Document(1, tuple(_event(random, number) for number in range(4)))
        name = random.choice(("web_0", "web_1", "other", None))
        facts = Facts(NOW, Vm(name=name, tags={"role": "web"}), {"event-0": NOW - timedelta(seconds=30)})
        view = DocumentView(document, facts)
        for event, decision in zip(document.events, policies.decide(document, facts), strict=True):
            if event.problems:
                assert decision.output == "hold"
                continue
            said = [
                ("error", None)
                if event.event_type == "Unheard"
                else _plain(one["rule"], view.roots(event, bind(PARAM_ENTRIES, {}, "p")))
                for one in data
            ]
            outputs = ["hold" if output == "error" else output for output, _rule in said]
            expected = "approve" if "approve" in outputs and "hold" not in outputs else "hold"
            assert decision.output == expected
            assert [(v.output, v.rule) for v in decision.verdicts] == [
                (output, rule) for output, (_said, rule) in zip(outputs, said, strict=True)
            ]
            traces = policies.explain(event, document, facts)
            assert tuple(trace.verdict for trace in traces) == decision.verdicts
            if event.event_type != "Unheard":
                for trace, one, (_output, rule) in zip(traces, data, said, strict=True):
                    assert _told(trace, one) == rule
            count[decision.output] += 1
            count.update(output for output, _rule in said)
    assert min(count["approve"], count["hold"], count["abstain"], count["error"]) > examples(10), count


def test_recording_what_is_read_changes_no_answer() -> None:
    """Explanations, and the conditions of what matched, are evaluated by the builder that records."""
    random = Random(SEED)
    recorded = 0
    for _ in range(examples(1500)):
        source = Generator(random).expression()
        form = check(source, DECLARATIONS).form
        if form is None:
            continue
        given = {name: value for name, value in values(random).items() if value is not MISSING}
        outcomes = []
        trace: list[Value] = []
        for builder in (Builder, TracingBuilder):
            scope = Scope(tuple(DECLARATIONS.variables))
            closure = builder(scope, {"source": source, "line": 1, "column": 1}).build(read_form(form))
            try:
                outcomes.append(repr(closure(scope.environment(given, trace))))
            except EvaluationError as error:
                outcomes.append(f"error at {error.start} to {error.end}: {error}")
        assert outcomes[0] == outcomes[1], source
        assert all(isinstance(value.value, str) and len(value.value) <= 200 for value in trace)
        recorded += len(trace)
    assert recorded > examples(1000)


def test_declarations_of_these_tests_are_those_of_policies() -> None:
    assert policy_declarations("2020-07-01", PARAMS, {}, {}) == DECLARATIONS
    assert not set(DECLARATIONS.variables) ^ set(ROOTS)
