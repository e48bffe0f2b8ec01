# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tests of policies leave out, each with a test that covers it.

The solver says what there is to cover: what it proves impossible does not count, and for everything else that counts
there is an event that the engine decided so. What the tests cover is what the engine did in them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import NamedTuple

from ...compiler.testing.policytest import TestFileRun
from ...compiler.yaml.tree import Mapping as YamlMapping
from ...errors import InputError
from ...events import format_time, has_field
from ...policy.decision import ABSTAIN, Decision
from ...policy.engine import PolicySet
from ..artifacts import Json, without_invariants
from ..engine import Engine
from ..proof import Example, NoProof, Progress, Proof, silent
from ..smt.effort import within_limits
from ..smt.terms import require
from ..witness import Witness
from .outcomes import (
    CoverageItem,
    CoverageTarget,
    items_covered_by,
    items_of_decision,
    items_of_traces,
    possible_items,
    stateable,
)
from .suggestions import DEFAULT_VM, Suggestion, suggestion_of

_USUAL_NOTICE = timedelta(minutes=15)
_USUAL_FIELDS = (("EventStatus", "Scheduled"), ("ResourceType", "VirtualMachine"), ("EventSource", "Platform"))


class Gap(NamedTuple):
    """Something that no test covers; ``test`` is the name of the suggested test that does.

    The ``result`` of a rule has ``rule``; that of a policy or a rule ``where``; a decision about events of a type has
    ``event_type`` and, in words, the ``way`` it comes about.
    """

    policy: str
    text: str
    test: str
    result: str
    rule: str | None = None
    where: str | None = None
    event_type: str | None = None
    way: str = ""


@dataclass
class Gaps:
    """What one test file leaves out. ``trouble`` says why its policies could not be analysed, if so.

    ``possible`` is the number of outcomes that some event has, ``covered`` of those that some test covers. No event has
    those that are ``impossible``. ``unproven`` says of the others what they are, and why no event was found.
    """

    path: str
    possible: int = 0
    covered: int = 0
    impossible: list[CoverageItem] = field(default_factory=list)
    unproven: list[tuple[str, str]] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    suggestions: list[Suggestion] = field(default_factory=list)
    trouble: str | None = None
    assumptions: tuple[str, ...] = ()


@within_limits
def find_gaps(files: Sequence[TestFileRun], *, alone: bool = False, progress: Progress = silent) -> list[Gaps]:
    """Return what the tests leave out, by test file. A policy with several test files is covered by any of them.

    Suggested tests build on the input that a file's tests have in common, unless they are to stand ``alone``.

    Raises InputError where z3 is missing, AnalysisError on a defect of our own.
    """
    require()
    covered = set().union(*map(items_covered_by, files))
    found = []
    for tested in files:
        gaps = Gaps(tested.tests.file.source.path)
        found.append(gaps)
        try:
            _GapSearch(tested, gaps, covered, {} if alone else _common_input(tested)).run(progress)
        except InputError as error:
            gaps.trouble = f"{error.message} {error.hint}".strip()
    return found


class _Case(NamedTuple):
    """An event, and what the engine does with it."""

    witness: Witness
    decision: Decision
    items: frozenset[CoverageItem]


class _GapSearch:
    """Goes through all that a file's tests could cover; what it suggests counts as covered for the files after it."""

    def __init__(self, tested: TestFileRun, gaps: Gaps, covered: set[CoverageItem], common: Json) -> None:
        self._tested, self._gaps, self._covered, self._common = tested, gaps, covered, common
        self._paths = {one.policy: one.path for one in tested.coverage}
        declared = {entry["name"]: entry["type"] for entry in tested.artifact.params}
        self._params = {name: value for name, value in common.get("params", {}).items() if name in declared}
        # The solver knows little of lists, and nothing of maps.
        listed = {name: value for name, value in self._params.items() if declared[name].startswith(("list(", "map("))}
        artifact = without_invariants(tested.artifact, tested.artifact.data["policies"])
        self._proof = Proof([artifact], listed)
        self._preferred = self._proof.params.usual(self._params)
        self._engine = Engine(tested.artifact, self._params)
        self._suggested: dict[CoverageItem, str] = {}  # what a suggested test covers -> its name
        self._unproven: dict[CoverageItem, str] = {}  # and why
        self._names: set[str] = set()

    def run(self, progress: Progress) -> None:
        every = list(possible_items(self._proof, self._tested))
        with self._proof.solver.scope():
            self._proof.solver.add(stateable(self._proof, self._params))
            for number, one in enumerate(every, 1):
                progress("outcomes", number, len(every))
                self._examine(one)
        for item, why in self._unproven.items():
            if item in self._suggested:  # the event of another item shows it
                self._leave_out(item)
            else:
                self._gaps.unproven.append((item.sentence, why))
        self._covered.update(self._suggested)
        self._gaps.assumptions = self._proof.assumptions

    def _examine(self, one: CoverageTarget) -> None:
        """Count an item, and suggest a test of it if it is possible and nothing covers it."""
        item = one.item
        # A test may have covered it with an event that the service does not send.
        if item.event_type is not None and self._proof.never(one.formula):
            self._gaps.impossible.append(item)
            return
        if item in self._covered:
            self._gaps.possible += 1
            self._gaps.covered += 1
            return
        if item not in self._suggested:
            found = self._proof.shows(one.formula, confirm=partial(self._covers, item), preferred=self._preferred)
            if found is None:
                self._gaps.impossible.append(item)
                return
            case = self._case(found.witness) if isinstance(found, Example) else None
            if isinstance(found, NoProof) or case is None:
                self._unproven[item] = found.why if isinstance(found, NoProof) else "no test can state its event"
                return
            is_sent = self._proof.solver.holds(found.model, self._proof.normal)
            self._suggest(item, self._plain(case, item), case.items if is_sent else frozenset())
        self._leave_out(item)

    def _leave_out(self, item: CoverageItem) -> None:
        """Report an item that a suggested test covers and no other."""
        self._gaps.possible += 1
        self._gaps.gaps.append(self._gap(item))

    def _gap(self, item: CoverageItem) -> Gap:
        text = f"no test in which {item.sentence}" if item.event_type is None else f"no test of a {item.sentence}"
        policy = item.policy or ", ".join(self._paths)
        about_rule = item.event_type is None and item.rule is not None
        return Gap(
            policy,
            text,
            self._suggested[item],
            item.result,
            rule=item.rule if about_rule else None,
            where=self._where(item) if about_rule else self._paths.get(item.policy or ""),
            event_type=item.event_type,
            way=item.way,
        )

    def _where(self, item: CoverageItem) -> str:
        rules = next(one.rules for one in self._tested.coverage if one.policy == item.policy)
        return next(one.where for one in rules if one.rule == item.rule)

    def _case(self, witness: Witness) -> _Case | None:
        """Return what the engine does with an event beside the input of the file; None if it refuses the parameters."""
        policies, document, facts = self._engine.policies(witness), witness.document, witness.facts
        if not isinstance(policies, PolicySet):
            return None
        (decision,) = policies.decide(document, facts)
        traces = policies.explain(decision.event, document, facts)
        items = items_of_decision(decision, self._tested, self._paths) | items_of_traces(traces, self._paths)
        return _Case(witness, decision, frozenset(items))

    def _covers(self, item: CoverageItem, shown: Example) -> bool:
        case = self._case(shown.witness)
        return case is not None and item in case.items

    def _plain(self, case: _Case, item: CoverageItem) -> _Case:
        """Take what a test has anyway, as long as the event still covers the item."""
        plainer: list[Callable[[Witness], Witness | None]] = [
            partial(_with_name, self._common.get("vm", {}).get("name", DEFAULT_VM)),
            _without_tags,
            _with_notice,
            *(partial(_with_field, name, value) for name, value in _USUAL_FIELDS),
            *(partial(_without_param, name) for name in case.witness.params),
        ]
        for change in plainer:
            witness = change(case.witness)
            other = None if witness is None else self._case(witness)
            if other is not None and item in other.items:
                case = other
        return case

    def _suggest(self, item: CoverageItem, case: _Case, sent: frozenset[CoverageItem]) -> None:
        """Suggest a test of a case.

        How a type of events can be decided, only an event that the service sends shows: one that covers ``sent``.
        """
        output = ABSTAIN if case.decision.policy is None else case.decision.output
        name, number = item.sentence, 1
        while name in self._names:
            number += 1
            name = f"{item.sentence} ({number})"
        self._names.add(name)
        policy = case.decision.policy if len(self._paths) > 1 else None
        self._gaps.suggestions.append(
            suggestion_of(name, case.witness, output, case.decision.rule, policy, self._common)
        )
        for one in case.items:
            if one.event_type is None or one in sent:
                self._suggested.setdefault(one, name)


def _with_name(name: str | None, witness: Witness) -> Witness | None:
    """Return the case with the VM that the file's tests are about."""
    old, names = witness.facts.vm.name, witness.event.get("Resources", [])
    if old is None or name is None or name in names:
        return None
    facts = witness.facts._replace(vm=witness.facts.vm._replace(name=name))
    event = {**witness.event, "Resources": [name if one == old else one for one in names]}
    return witness._replace(facts=facts).with_event(event)


def _without_tags(witness: Witness) -> Witness | None:
    """Return the case of a VM whose tags are unknown instead of none."""
    if witness.facts.vm.tags != {}:
        return None
    return witness._replace(facts=witness.facts._replace(vm=witness.facts.vm._replace(tags=None)))


def _with_notice(witness: Witness) -> Witness | None:
    """Return the case with the usual notice."""
    if witness.event.get("EventStatus") != "Scheduled":
        return None
    return _with_field("NotBefore", format_time(witness.facts.now + _USUAL_NOTICE), witness)


def _with_field(name: str, value: str, witness: Witness) -> Witness | None:
    """Return the case with another value of a field."""
    if not has_field(witness.document.api_version, name):
        return None
    return witness.with_event({**witness.event, name: value})


def _without_param(name: str, witness: Witness) -> Witness:
    """Return the case without a value of a parameter."""
    return witness._replace(params={key: value for key, value in witness.params.items() if key != name})


def _common_input(tested: TestFileRun) -> Json:
    root = tested.tests.file.root
    node = root.get("input") if isinstance(root, YamlMapping) else None
    data = {} if node is None else node.data()
    return data if isinstance(data, dict) else {}
