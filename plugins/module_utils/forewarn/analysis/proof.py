# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Proofs about policies: a question to the solver, and an event that the engine confirms, or that there is none."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Callable, NamedTuple

from ..errors import InputError
from ..events import event_types
from ..policy.artifact import Artifact
from ..policy.decision import HOLD, Decision
from .artifacts import Json, extra_values
from .claims import Claim, claims
from .engine import Engine
from .event_space.case import SAMPLE_TIMES
from .policy_outcome import FAILED
from .smt.effort import set_aside
from .smt.encode.decisions import Decisions
from .smt.encode.inputs import Inputs
from .smt.encode.params import Params
from .smt.encode.problem import Problem
from .smt.solver import Solver, SolverAnswer, SolverResult
from .smt.terms import Formula, between, conj, implies
from .witness import Witness

_USUAL_NOTICE = 15 * 60 * 1_000_000  # µs (SE-20)
_MICROSECOND = 1_000  # ns
TODAY = 1_577_836_800_000_000, 2_840_140_800_000_000  # µs: now is from 2020 on, and before 2060
_ASSUMED_TODAY = "now lies between 2020-01-01 and 2060-01-01 (UTC)"
_MODEST_TIMES = (SAMPLE_TIMES[0] // _MICROSECOND, SAMPLE_TIMES[0] // _MICROSECOND + 10 * 365 * 86_400_000_000)  # µs

# Called with what is being proven, how much of it is done, and of how much (0: not known).
Progress = Callable[[str, int, int], None]


def silent(what: str, done: int, total: int) -> None:
    """Tell nobody."""


class AnalysisError(Exception):
    """The analysis and the engine disagree: a defect of forewarn, never to be reported as a fact about a policy.

    ``details`` are for those who look for it, as data for JSON.
    """

    def __init__(self, message: str, details: Json | None = None) -> None:
        super().__init__(message)
        self.details = dict(details or {})


class Example(NamedTuple):
    """An event that shows something, with the engine's decision by each version, and the solver's model of it."""

    witness: Witness
    decisions: tuple[Decision, ...]
    model: Any


def decision_dict(decision: Decision) -> dict[str, Any]:
    """Return a decision for JSON, without the hooks."""
    return {name: getattr(decision, name) for name in ("output", "policy", "rule", "reason")}


class NoProof(NamedTuple):
    """Neither is there an event that shows it, nor is proven that there is none."""

    why: str


ExampleCheck = Callable[[Example], bool]


class Proof:
    """Versions of policies, translated together: what they decide about the same event.

    ``params`` are JSON values given for parameters, ``invariants`` further claims about the last version.
    Raises InputError where z3 is missing, or a parameter that does not vary has no value.
    """

    def __init__(
        self, versions: Sequence[Artifact], params: Json | None = None, invariants: Sequence[Json] = ()
    ) -> None:
        self.versions = versions
        self.given = dict(params or {})
        self.problem = Problem()
        self.inputs = Inputs(self.problem, versions[-1].api_version)
        self.params = Params(self.problem, [one.data["policies"] for one in versions], self.given)
        self.decisions = tuple(self.decided(self.inputs, number) for number in range(len(versions)))
        last = self.decisions[-1]
        self.claims: tuple[Claim, ...] = tuple(claims(last, self.params, versions[-1], invariants))
        self.params.assumptions += set_aside(self.problem.effort.aside, self.problem.opaque)
        self.extra = extra_values(data for one in versions for data in one.data["policies"])
        self.normal = self.inputs.normal(self.extra)
        soon = between(_MODEST_TIMES[0], self.inputs.now_us, _MODEST_TIMES[1])
        self.soon = conj((soon, *self.params.modest()))
        self.modest = conj((self.normal, self.soon))  # what people would think of
        self._usual = self._preferred()
        self._solver: Solver | None = None
        self._engines = [Engine(one, self.given) for one in versions]

    def decided(self, inputs: Inputs, version: int = 0) -> Decisions:
        """Return what a version decides about some inputs. Must not be called after the first question."""
        inputs.assume_now(*TODAY)
        return Decisions(inputs, self.params, self.versions[version].data["policies"], version)

    def on_another_vm(self) -> Decisions:
        """Return what the last version decides about the same event at the same time on another VM.

        Must not be called after the first question.
        """
        last = len(self.versions) - 1
        policies = [one.data["policies"] for one in self.versions]
        params = Params(self.problem, policies, self.given, " of another VM")
        return Decisions(self.inputs.on_another_vm(params), params, policies[last], last)

    @property
    def solver(self) -> Solver:
        """The solver, made with all that was translated so far."""
        if self._solver is None:
            self._solver = self._new_solver(definitions=True)
        return self._solver

    def conditions_solver(self) -> Solver:
        """Return a new solver that knows nothing of rules, for questions about the conditions of some of them."""
        return self._new_solver(definitions=False)

    @property
    def not_understood(self) -> tuple[str, ...]:
        """The expressions that may have any value, without their parts."""
        every = list(self.problem.opaque)
        return tuple(one for one in every if not any(one in other for other in every if other != one))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What is assumed of parameters, of expressions that cost too much, and of the time, for people."""
        timed = "now" in self.problem.inputs_read or {"notice", "NotBefore"} <= self.problem.inputs_read
        return (*self.params.assumptions, *([_ASSUMED_TODAY] if timed else []))

    def ask(self, *formulas: Formula) -> SolverAnswer:
        """Return whether an event is possible. The event is not confirmed."""
        return self.solver.ask(*formulas).answer

    def never(self, *formulas: Formula) -> bool:
        """Return whether it is proven that formulas hold for no event."""
        return self.solver.ask(*formulas).never

    def shows(
        self,
        *formulas: Formula,
        confirm: ExampleCheck | None = None,
        usual: bool = True,
        preferred: Sequence[Formula] = (),
    ) -> Example | NoProof | None:
        """Return an event for which formulas hold, None if it is proven that there is none.

        The engine decides it as the solver says, and ``confirm`` accepts it. With ``usual``, the event is as plain as
        possible; before that, as it is ``preferred``. Raises AnalysisError where solver and engine disagree though all
        is translated exactly.
        """
        preferred = (*preferred, *self._usual) if usual else preferred
        found = self.solver.ask_preferring(formulas, preferred)
        if found.never:
            return None
        if found.answer is SolverAnswer.UNKNOWN:
            return NoProof("the solver found no answer within its limits")
        shown = self._confirmed(found, confirm)
        if shown is not None:
            return shown
        if found.witness is None:
            return NoProof("no names were found for the VMs of an event")
        if not self.problem.opaque and self.problem.exact and self.problem.texts.exact:
            raise self._disagreement(found)
        for moment in SAMPLE_TIMES:
            other = self.solver.ask(*formulas, self.inputs.now_us == moment // _MICROSECOND)
            shown = self._confirmed(other, confirm) if other.possible else None
            if shown is not None:
                return shown
        what = ", ".join(self.not_understood) or "what a function makes of an unknown text, or a double,"
        return NoProof(f"{what} may have any value, and no event was found that shows it")

    def with_given(self, witness: Witness) -> Witness:
        """Return a witness with the parameters that are given for all events: they are part of each decision."""
        return witness._replace(params={**self.given, **witness.params})

    def decide(self, witness: Witness, version: int = 0) -> Decision:
        """Return the engine's decision; a version that refuses the parameters approves nothing."""
        return self._engines[version].decide(witness)

    def _new_solver(self, *, definitions: bool) -> Solver:
        solver = Solver(self.problem, self.params, self.inputs, definitions=definitions)
        if solver.ask().never:  # everything would follow from a contradiction
            raise InputError("no parameters are allowed by all policies", "Compare the limits that they declare.")
        return solver

    def _confirmed(self, found: SolverResult, confirm: ExampleCheck | None) -> Example | None:
        witness = found.witness
        if witness is None:
            return None
        decisions = tuple(self.decide(witness, number) for number in range(len(self.versions)))
        shown = Example(witness, decisions, found.model)
        agreed = all(self._agrees(found.model, one, decision) for one, decision in zip(self.decisions, decisions))
        return shown if agreed and (confirm is None or confirm(shown)) else None

    def _agrees(self, model: Any, decided: Decisions, decision: Decision) -> bool:
        """Return whether each policy has the outcome in a model that it has for the engine."""
        for policy, verdict in zip(decided.policies, decision.verdicts):
            if not any(
                self.solver.holds(model, one.when)
                for one in policy.outcomes
                if (one.output, one.rule, FAILED.get(one.how)) == (verdict.output, verdict.rule, verdict.failed)
            ):
                return False
        return bool(self.solver.holds(model, decided.approved)) == (decision.output != HOLD)

    def _disagreement(self, found: SolverResult) -> AnalysisError:
        witness = found.witness
        event = "an event" if witness is None else json.dumps(witness.as_dict(), ensure_ascii=False)
        outcomes = [
            f"{one.policy}: {one.output} by {one.rule or one.how}"
            for decided in self.decisions
            for policy in decided.policies
            for one in policy.outcomes
            if self.solver.holds(found.model, one.when)
        ]
        decisions = () if witness is None else [self.decide(witness, number) for number in range(len(self.versions))]
        verdicts = [verdict for decision in decisions for verdict in decision.verdicts]
        engine = [f"{one.policy}: {one.output} by {one.rule or one.reason}" for one in verdicts]
        sides = f"for the solver {', '.join(outcomes)}; for the engine {', '.join(engine)}"
        details = {
            "policies": [one.data for one in self.versions],
            "params": self.given,
            "case": None if witness is None else witness.as_dict(),
            "solver": outcomes,
            "engine": engine,
        }
        return AnalysisError(f"forewarn disagrees with itself about {event}: {sides}", details)

    def _preferred(self) -> tuple[Formula, ...]:
        """Return what makes an event plain, the most important first."""
        inputs = self.inputs
        left = inputs.not_before_us - inputs.now_us
        preferred: list[Formula] = [self.modest, self.normal, self.problem.texts.is_unknown(inputs.own_name)]
        types = event_types(inputs.api_version)
        preferred += [inputs.is_one_of("EventType", *types[:most]) for most in range(1, len(types))]
        if inputs.api_version >= "2020-07-01":
            duration, there = inputs.event_field("DurationInSeconds")
            preferred += [there, conj((there, between(0, duration, 3600)))]
        preferred += [
            inputs.is_one_of("EventStatus", "Scheduled"),
            implies(inputs.has_not_before, between(0, left, 7 * 86_400_000_000)),
            inputs.now_us == SAMPLE_TIMES[0] // _MICROSECOND,
            between(0, inputs.age_us, 3_600_000_000),
            inputs.age_us == 0,
            inputs.now_us % 1_000_000 == 0,
            implies(inputs.has_not_before, left == _USUAL_NOTICE),
            inputs.resources.count <= 3,
            inputs.resources.count == 1,
            inputs.is_one_of("EventSource", "Platform") if inputs.reads("EventSource") else True,
        ]
        return tuple(one for one in preferred if one is not True)
