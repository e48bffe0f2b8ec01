# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tests of policies leave out: branches of rules and classes of events, each with a test that states it.

A class here is all events of one EventType for which the same rule of each policy decides. The event space shows which
classes and branches there are; for each reported gap there is an event that the engine decided so.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple, Optional, Tuple

from ...compiler.policytest import Tested
from ...compiler.yamltree import Mapping as YamlMapping
from ...errors import InputError
from ...events import EVENT_TYPE_SINCE, format_time, parse_document
from ...policy.artifact import Artifact
from ...policy.decision import ABSTAIN, Decision, Verdict
from ...policy.engine import PolicySet
from ..symbolic.concrete import Witness
from ..symbolic.decide import DOUBT, ERROR, EXPLANATION, Decided, Region, combine
from ..symbolic.reading import read
from ..symbolic.space import Space
from ..symbolic.symbols import EVENT_TYPE
from .suggestions import Suggestion, suggest

BRANCHES = ("true", "false", "error")
_TRIED = 12  # events of a set of classes, until one is decided as the analysis predicts
_UNKNOWN_TYPE = "unknown type"
_WORDS = {"true": "applies", "false": "does not apply", "error": "cannot be evaluated"}
_USUAL_NOTICE = timedelta(minutes=15)

# How an event is decided: for each policy its output, its rule, and whether that could not be evaluated.
Way = Tuple[Tuple[str, str, Optional[str], bool], ...]


class Gap(NamedTuple):
    """Something that no test has stated; ``test`` is the name of the suggested test that does.

    A branch has ``rule``, ``where`` and ``branch``; a class of events has ``event_type``, ``output`` and, in words, the
    ``way`` it is decided.
    """

    policy: str
    text: str
    test: str
    rule: str | None = None
    where: str | None = None
    branch: str | None = None
    event_type: str | None = None
    output: str | None = None
    way: str = ""


@dataclass
class Gaps:
    """What one test file leaves out. ``trouble`` says why its policies could not be analysed, if so.

    ``classes`` is the number of classes, ``stated`` of those that some test states. ``unproven`` is the number of
    branches and classes that may exist, though no event was found that shows them.
    """

    path: str
    classes: int = 0
    stated: int = 0
    unproven: int = 0
    gaps: list[Gap] = field(default_factory=list)
    suggestions: list[Suggestion] = field(default_factory=list)
    trouble: str | None = None


def find_gaps(files: Sequence[Tested], *, alone: bool = False) -> list[Gaps]:
    """Return what the tests leave out, by test file. A policy with several test files is covered by any of them.

    Suggested tests build on the input that a file's tests have in common, unless they are to stand ``alone``.
    """
    seen: dict[tuple[str, ...], set[tuple[str, Way]]] = {}
    for tested in files:
        seen.setdefault(_key(tested), set()).update(
            (_type(decision.event.event_type, tested.artifact), _way(decision))
            for decision in tested.decisions
            if decision.verdicts and not decision.event.problems
        )
    branches = {
        (covered.path, rule.rule, branch)
        for tested in files
        for covered in tested.coverage
        for rule in covered.rules
        for branch, count in rule.results.items()
        if count
    }
    found = []
    for tested in files:
        gaps = Gaps(tested.tests.file.source.path)
        found.append(gaps)
        try:
            _Search(tested, gaps, seen[_key(tested)], branches, {} if alone else _common_input(tested)).run()
        except InputError as error:
            gaps.trouble = f"{error.message} {error.hint}".strip()
    return found


def _key(tested: Tested) -> tuple[str, ...]:
    return (tested.artifact.api_version, *(str(path.resolve()) for path in tested.tests.policies))


class _Search:
    """Searches the event space of one file's policies; what it finds counts as stated for the files after it."""

    def __init__(
        self,
        tested: Tested,
        gaps: Gaps,
        seen: set[tuple[str, Way]],
        branches: set[tuple[str, str, str]],
        common: Mapping[str, Any],
    ) -> None:
        self._artifact = tested.artifact
        self._coverage = {covered.policy: covered for covered in tested.coverage}
        self._gaps = gaps
        self._seen = seen
        self._closed: dict[object, str] = {}  # what a suggested test states -> its name
        self._branches = branches
        self._common = common
        declared = {entry["name"] for entry in tested.artifact.params}
        given = self._common.get("params", {})
        self._params = {name: value for name, value in given.items() if name in declared}
        self._names: set[str] = set()
        self._unproven: set[object] = set()

    def run(self) -> None:
        reading = read(self._artifact, self._params)
        classes: set[tuple[str, Way]] = set()
        for space in reading.spaces():
            decided = Decided(reading, space)
            self._look_at_branches(decided)
            self._look_at_classes(decided, classes)
        self._gaps.classes = len(classes)
        self._gaps.stated = len(classes & self._seen)
        self._seen |= classes
        self._gaps.unproven = len(self._unproven)

    def _look_at_branches(self, decided: Decided) -> None:
        for policy in decided.policies:
            covered = self._coverage[policy.policy.name]
            for sets in policy.matches.values():
                path = sets.match.path
                missed = sets.reached ^ (sets.met | sets.failed)
                for branch, classes in zip(BRANCHES, (sets.met, missed, sets.failed), strict=True):
                    key = (covered.path, path, branch)
                    if not classes or key in self._branches:
                        continue
                    name = self._closed.get(key)
                    if name is None:
                        case = self._find(decided.space, classes, partial(self._takes, key))
                        if case is None:
                            self._unproven.add(key)
                            continue
                        name = self._add(case, f"{path} {_WORDS[branch]}")
                    self._branches.add(key)
                    self._unproven.discard(key)
                    text = f"no test in which {path} {_WORDS[branch]}"
                    where = next(rule.where for rule in covered.rules if rule.rule == path)
                    self._gaps.gaps.append(Gap(covered.policy, text, name, path, where, branch))

    def _look_at_classes(self, decided: Decided, classes: set[tuple[str, Way]]) -> None:
        space = decided.space
        for place, value in enumerate(space.by_name[EVENT_TYPE.name].values):
            kind = _type(value.concrete, self._artifact)
            among = space.mask(EVENT_TYPE.name, place) & space.reachable & space.normal
            for regions, members in decided.regions(among):
                if any(region.how == DOUBT for region in regions):  # no rule can change it
                    continue
                key = (kind, tuple(_region_way(region) for region in regions))
                if key in classes:  # in another slice of the space
                    continue
                if key in self._seen:
                    classes.add(key)
                    continue
                decision = combine(regions)
                output = ABSTAIN if decision.policy is None else decision.output
                way, words = output, f"{kind}, {output}"
                if decision.rule is not None:
                    way, words = f"{way} by {decision.policy}/{decision.rule}", f"{words} by {decision.rule}"
                if decision.how in (ERROR, EXPLANATION):
                    way, words = f"{way}, as it {_WORDS['error']}", f"{kind}, {decision.rule} {_WORDS['error']}"
                name = self._closed.get(key)
                if name is None:
                    case = self._find(space, members, partial(_goes, key[1]))
                    if case is None:
                        self._unproven.add(key)
                        continue
                    name = self._add(case, words)
                classes.add(key)
                self._unproven.discard(key)
                policy = decision.policy or ", ".join(self._coverage)
                self._gaps.gaps.append(
                    Gap(policy, f"no test of a {kind} with {way}", name, event_type=kind, output=output, way=way)
                )

    def _find(self, space: Space, classes: int, accept: Callable[[_Case], bool]) -> _Case | None:
        """Return an event of a set that the engine decides as wanted, a usual one if possible, made plain."""
        usual = classes & space.normal
        numbers = itertools.chain(space.members(usual), space.members(classes ^ usual))
        for number in itertools.islice(numbers, _TRIED):
            case = self._case(space.witness(number))
            if case is not None and accept(case):
                return self._plain(case, accept)
        return None

    def _case(self, witness: Witness) -> _Case | None:
        """Return the engine's decision, or None if it asks no policy."""
        try:
            policies = PolicySet(self._artifact, {**self._params, **witness.params})
        except InputError:  # a parameter without a default
            return None
        if not witness.document.events:
            return None
        (decision,) = policies.decide(witness.document, witness.facts)
        return _Case(witness, policies, decision) if decision.verdicts else None

    def _plain(self, case: _Case, accept: Callable[[_Case], bool]) -> _Case:
        """Replace unusual values of an event, as long as it is decided as wanted."""
        for plainer in (self._with_name, _with_notice, *(_without(name) for name in case.witness.params)):
            witness = plainer(case.witness)
            other = None if witness is None else self._case(witness)
            if other is not None and accept(other):
                case = other
        return case

    def _with_name(self, witness: Witness) -> Witness | None:
        """Return the case with the VM that the file's tests are about."""
        old, new = witness.facts.vm.name, self._common.get("vm", {}).get("name", "vm_0")
        names = witness.event.get("Resources", [])
        if old is None or new is None or new in names:
            return None
        event = {**witness.event, "Resources": [new if name == old else name for name in names]}
        facts = replace(witness.facts, vm=replace(witness.facts.vm, name=new))
        return _changed(witness._replace(facts=facts), event)

    def _takes(self, branch: tuple[str, str, str], case: _Case) -> bool:
        return branch in self._branches_of(case)

    def _branches_of(self, case: _Case) -> set[tuple[str, str, str]]:
        traces = case.policies.explain(case.decision.event, case.witness.document, case.witness.facts)
        return {
            (self._coverage[trace.policy].path, rule.rule, rule.result)
            for trace in traces
            for rule in trace.rules
            if rule.result in BRANCHES
        }

    def _add(self, case: _Case, words: str) -> str:
        """Suggest a test of a case; return its name."""
        name, number = words, 1
        while name in self._names:
            number += 1
            name = f"{words} ({number})"
        self._names.add(name)
        policy = case.decision.policy if len(self._coverage) > 1 else None
        suggestion = suggest(name, case.witness, case.output, case.decision.rule, policy, self._common)
        self._gaps.suggestions.append(suggestion)
        event_class = _type(case.decision.event.event_type, self._artifact), _way(case.decision)
        for key in (*self._branches_of(case), event_class):
            self._closed.setdefault(key, name)
        return name


class _Case(NamedTuple):
    witness: Witness
    policies: PolicySet
    decision: Decision

    @property
    def output(self) -> str:
        """The decision, as a test states it."""
        return ABSTAIN if self.decision.policy is None else self.decision.output


def _goes(way: Way, case: _Case) -> bool:
    return _way(case.decision) == way


def _with_notice(witness: Witness) -> Witness | None:
    """Return the case with the usual notice."""
    if not witness.event.get("NotBefore"):
        return None
    return _changed(witness, {**witness.event, "NotBefore": format_time(witness.facts.now + _USUAL_NOTICE)})


def _without(name: str) -> Callable[[Witness], Witness]:
    """Return a function that leaves a parameter at its default."""

    def plainer(witness: Witness) -> Witness:
        return witness._replace(params={key: value for key, value in witness.params.items() if key != name})

    return plainer


def _changed(witness: Witness, event: Mapping[str, Any]) -> Witness:
    body = json.dumps({"DocumentIncarnation": 1, "Events": [event]})
    return witness._replace(event=event, document=parse_document(body, witness.document.api_version))


def _way(decision: Decision) -> Way:
    return tuple(_verdict_way(verdict) for verdict in decision.verdicts)


def _verdict_way(verdict: Verdict) -> tuple[str, str, str | None, bool]:
    return verdict.policy, verdict.output, verdict.rule, verdict.error is not None


def _region_way(region: Region) -> tuple[str, str, str | None, bool]:
    return region.policy, region.output, region.rule, region.how in (ERROR, EXPLANATION)


def _type(name: object, artifact: Artifact) -> str:
    extra = (value for data in artifact.data["policies"] for value in data.get("extra_values", {}).get("EventType", ()))
    return str(name) if name in {*EVENT_TYPE_SINCE, *extra} else _UNKNOWN_TYPE


def _common_input(tested: Tested) -> Mapping[str, Any]:
    root = tested.tests.file.root
    node = root.get("input") if isinstance(root, YamlMapping) else None
    data = {} if node is None else node.data()
    return data if isinstance(data, dict) else {}
