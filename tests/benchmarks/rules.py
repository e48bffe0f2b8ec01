# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long five rules take to decide one event, and how long other ways to evaluate the same five rules take."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.report import AT_LEAST, AT_MOST, Goal, Quantity, Report
from forewarn.compiler.policies import load_policies
from forewarn.events import Document, Event, Vm
from forewarn.policy.artifact import Artifact
from forewarn.policy.decision import Facts
from forewarn.policy.engine import PolicySet
from forewarn.policy.params import bind
from forewarn.policy.program import Program
from forewarn.policy.view import DocumentView

POLICY = Path(__file__).with_name("five-rules.yml")
NOW = datetime(2026, 5, 4, 12, tzinfo=timezone.utc)
ME = Vm(name="web_0")
PARAMS = {"tolerable_freeze": 9}
REPEATS = 5
SECONDS_PER_REPEAT = 0.25


@dataclass(frozen=True)
class Case:
    """One event and what the rules read beside it."""

    event: Event
    notice: timedelta
    affects_me: bool

    @property
    def document(self) -> Document:
        """A document of this event alone."""
        return Document(2, (self.event,))


# Given a case, prepares it in the engine's own types, and returns what is measured: the evaluation of the rules, in
# order, until one holds. It returns the rule's id, or None.
Contender = Callable[[Case], Callable[[], "str | None"]]


def run() -> Report:
    """Make sure that all agree on every event, then measure."""
    artifact = load_policies([POLICY])
    rules = [(match["id"], match["condition"]["source"]) for match in artifact.data["policies"][0]["rule"]["match"]]
    contenders: dict[str, Contender] = {
        "Python if": hard_coded,
        "forewarn": forewarn(artifact),
        "cel-expr-python": google_cel(rules),
        "cel-python": cel_python(rules),
    }
    mix = cases()
    for case in mix:
        answers = {name: prepare(case)() for name, prepare in contenders.items()}
        if len(set(answers.values())) != 1:
            raise AssertionError(f"the engines disagree on {case}: {answers}")
    # Too long a freeze, with time to spare: only the last rule holds, and every term of the third is looked at.
    longest = next(case for case in mix if case.event.duration_in_seconds == 30 and case.notice > timedelta(minutes=5))
    if contenders["Python if"](longest)() != rules[-1][0]:
        raise AssertionError(f"not the last rule: {longest}")
    one = {name: microseconds([prepare(longest)]) for name, prepare in contenders.items()}
    many = {name: microseconds([prepare(case) for case in mix]) for name, prepare in contenders.items()}
    whole = microseconds(whole_decisions(artifact, longest, documents=1))
    new = microseconds(whole_decisions(artifact, longest, documents=2))
    return Report(
        "Five rules, one event",
        [
            *(Quantity(f"{name}, all five rules tried", value, "us") for name, value in one.items()),
            Quantity("forewarn, complete decision with reason and values", whole, "us"),
            Quantity("forewarn, the same on another document each time", new, "us"),
            *(Quantity(f"{name}, mean of {len(mix)} events", value, "us") for name, value in many.items()),
        ],
        [
            Goal("forewarn", one["forewarn"] / one["Python if"], "a hard-coded Python if", AT_MOST, 10),
            Goal("complete decision", whole / one["Python if"], "a hard-coded Python if", AT_MOST, 30),
            Goal("cel-python interpreted", one["cel-python"] / one["forewarn"], "forewarn", AT_LEAST, 100),
            Goal("cel-expr-python", one["cel-expr-python"] / one["forewarn"], "forewarn", AT_LEAST, 1),
        ],
        [
            f"All four named the same rule for each of {len(mix)} events.",
            "Measured is the evaluation until the first match; every engine got its variables ready-made.",
            "A complete decision makes the variables, and reads the reason and all values as texts.",
            f"The best of {REPEATS} repeats of {SECONDS_PER_REPEAT:g} s.",
        ],
    )


def cases() -> list[Case]:
    """Return every combination of what the rules look at."""
    found = []
    for status, kind, source, duration, minutes, mine in product(
        ("Scheduled", "Started"),
        ("Freeze", "Reboot", "Redeploy", "Preempt", "Terminate"),
        ("Platform", "User"),
        (-1, 0, 5, 8, 9, 30),
        (2, 15),
        (True, False),
    ):
        event = Event(
            event_id="C7061BAC-AFDC-4513-B24B-AA5F13A16123",
            event_type=kind,
            resource_type="VirtualMachine",
            resources=("web_0", "web_1") if mine else ("web_1", "web_2"),
            event_status=status,
            not_before=NOW + timedelta(minutes=minutes),
            description="Virtual machine is being paused because of a memory-preserving Live Migration operation.",
            event_source=source,
            duration_in_seconds=duration,
        )
        notice = timedelta(minutes=minutes)
        if status == "Started":
            event, notice = event._replace(not_before=None), timedelta(0)
        found.append(Case(event, notice, mine))
    return found


def hard_coded(case: Case) -> Callable[[], str | None]:
    """Prepare what somebody without policies would write."""
    event, notice, affects_me = case.event.as_dict(), case.notice.total_seconds(), case.affects_me

    def decide(event: Mapping[str, Any], notice: float, affects_me: bool, params: Mapping[str, Any]) -> str | None:
        if event["EventStatus"] == "Started":
            return "under-way"
        if event["EventSource"] == "User":
            return "administrator"
        if (
            event["EventType"] == "Freeze"
            and event["DurationInSeconds"] >= 0
            and event["DurationInSeconds"] < params["tolerable_freeze"]
        ):
            return "brief-freeze"
        if event["EventType"] in ("Reboot", "Redeploy", "Preempt", "Terminate") and affects_me:
            return "restart"
        if notice > 300:
            return "plenty-of-time"
        return None

    return lambda: decide(event, notice, affects_me, PARAMS)


def forewarn(artifact: Artifact) -> Contender:
    """Prepare our evaluator, with the environment that each evaluation needs anew."""
    policy = artifact.data["policies"][0]
    program = Program(policy)
    params = bind(policy["params"], PARAMS, policy["name"])

    def prepare(case: Case) -> Callable[[], str | None]:
        roots = DocumentView(case.document, Facts(NOW, ME)).roots(case.event, params)

        def decide() -> str | None:
            answer = program.evaluate(roots)
            if answer.error is not None:
                raise AssertionError(answer.error)
            return None if answer.match is None else answer.match.rule

        return decide

    return prepare


def whole_decisions(artifact: Artifact, case: Case, documents: int) -> list[Callable[[], object]]:
    """Prepare what the runner calls for a document: views, rules, reason, the values that led to it.

    A runner decides about one document again and again. With two ``documents``, each follows the other.
    """
    policies, facts = PolicySet(artifact, PARAMS), Facts(NOW, ME)

    def prepare(document: Document) -> Callable[[], object]:
        return lambda: [(one.reason, tuple(one.values)) for one in policies.decide(document, facts)]

    return [prepare(case.document) for _ in range(documents)]


def google_cel(rules: Sequence[tuple[str, str]]) -> Contender:
    """Prepare Google's implementation, compiled C++."""
    from cel_expr_python import cel  # type: ignore[import-untyped]  # it has stubs, but no marker that says so

    fields = cel.Type.Map(cel.Type.STRING, cel.Type.DYN)
    variables = {"event": fields, "params": fields, "notice": cel.Type.DURATION, "affects_me": cel.Type.BOOL}
    env = cel.NewEnv(variables=variables)
    expressions = [(rule, env.compile(source)) for rule, source in rules]

    def prepare(case: Case) -> Callable[[], str | None]:
        activation = env.Activation(plain(case))

        def decide() -> str | None:
            for rule, expression in expressions:
                if expression.eval(activation).value() is True:
                    return rule
            return None

        return decide

    return prepare


def cel_python(rules: Sequence[tuple[str, str]]) -> Contender:
    """Prepare cel-python's interpreter. (Its compiling runner shares state between threads: not usable here.)"""
    import celpy
    from celpy.adapter import json_to_cel

    env = celpy.Environment(runner_class=celpy.InterpretedRunner)
    programs = [(rule, env.program(env.compile(source))) for rule, source in rules]

    def prepare(case: Case) -> Callable[[], str | None]:
        context: dict[str, Any] = {name: json_to_cel(value) for name, value in plain(case).items()}

        def decide() -> str | None:
            for rule, program in programs:
                if program.evaluate(context):
                    return rule
            return None

        return decide

    return prepare


def plain(case: Case) -> dict[str, Any]:
    """Return the variables as Python values."""
    return {
        "event": case.event.as_dict(),
        "params": PARAMS,
        "notice": case.notice,
        "affects_me": case.affects_me,
    }


def microseconds(calls: Sequence[Callable[[], object]]) -> float:
    """Return how long one call takes, the best of several repeats."""
    rounds = 1
    while (seconds := _seconds(calls, rounds)) < SECONDS_PER_REPEAT / 4:
        rounds *= 4
    rounds = max(1, round(rounds * SECONDS_PER_REPEAT / seconds))
    best = min(_seconds(calls, rounds) for _ in range(REPEATS))
    return best / rounds / len(calls) * 1e6


def _seconds(calls: Sequence[Callable[[], object]], rounds: int) -> float:
    start = time.perf_counter()
    for _ in range(rounds):
        for call in calls:
            call()
    return time.perf_counter() - start
