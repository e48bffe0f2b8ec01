# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A policy with imports is the same policy with all of that written into it: it decides alike, and is proven alike."""

from __future__ import annotations

import random
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from forewarn.analysis.verify.finding import ProofFinding
from forewarn.analysis.verify.verify import verify
from forewarn.compiler.policies import compile_policies
from forewarn.errors import InputError
from forewarn.events import LATEST_API_VERSION
from forewarn.policy.artifact import Artifact, load
from forewarn.policy.engine import PolicySet
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.generators import drawn_events
from tools.generators.drawn_libraries import split, with_chain
from tools.generators.drawn_policies import drawn, written
from tools.suite.sizes import examples

SEEDS = st.integers(min_value=0, max_value=2**32)


@contextmanager
def both(chance: random.Random) -> Iterator[tuple[Artifact, Artifact] | None]:
    """Give a policy with imports and the same one without, compiled; None where it has mistakes that others judge."""
    data = drawn(chance, LATEST_API_VERSION, small=True).data[0]
    data = with_chain({key: value for key, value in data.items() if key != "extra_values"}, chance)
    with tempfile.TemporaryDirectory() as name:
        whole = Path(name, "whole", "p.yml")
        whole.parent.mkdir()
        whole.write_text(written(data))
        imported = compile_policies([split(data, chance, Path(name, "split"))])
        if imported.artifact is not None:
            data = in_the_order_of(imported.artifact["policies"][0], data)
            whole.write_text(written(data))
        inline = compile_policies([whole])
        errors = [[one.code for one in each.findings if one.severity == "error"] for each in (inline, imported)]
        assert sorted(errors[0]) == sorted(errors[1])
        warnings = {one.code for one in imported.findings} - {one.code for one in inline.findings}
        assert warnings <= {"unused-import"}
        if inline.artifact is None or imported.artifact is None:
            yield None
        else:
            yield load(inline.artifact), load(imported.artifact)


def in_the_order_of(policy: Any, data: Any) -> Any:
    """Return a policy that declares the same, in the order in which an artifact has that: imports come first."""

    def sort_findings(entries: Any, like: Any) -> list[Any]:
        names = [one["name"] for one in like]
        return sorted(entries, key=lambda one: names.index(one["name"]))

    rule = {**data["rule"], "variables": sort_findings(data["rule"]["variables"], policy["rule"]["variables"])}
    more = {key: sort_findings(data[key], policy[key]) for key in ("params", "invariants")}
    return {**data, **more, "rule": rule}


def bare(part: Any) -> Any:
    """Return a part of an artifact without places."""
    if isinstance(part, dict):
        return {key: bare(value) for key, value in part.items() if key not in ("line", "column", "file", "source")}
    return [bare(one) for one in part] if isinstance(part, list) else part


def placeless(text: str) -> str:
    return re.sub(r"\([^ ()]+\.yml:\d+\)", "(FILE)", text).replace(f", which {'p0'} imports,", "")


@settings(max_examples=examples(60), deadline=None)
@given(SEEDS)
def test_imported_and_inline_policies_decide_alike(seed: int) -> None:
    chance = random.Random(seed)
    with both(chance) as found:
        if found is None:
            return
        one, other = (artifact.data["policies"][0] for artifact in found)
        assert bare(one) == bare(other)
        names = [entry["name"] for entry in one["params"]]
        for _ in range(10):
            given_params = drawn_events.params(chance, names, 1.0)
            try:
                sets = [PolicySet(artifact, given_params) for artifact in found]
            except InputError:  # a value that a limit forbids
                continue
            seen = drawn_events.seen(chance, LATEST_API_VERSION)
            inline, imported = (policies.decide(seen.document, seen.facts) for policies in sets)
            for decided, likewise in zip(inline, imported, strict=True):
                assert (decided.output, decided.rule, decided.limits) == (
                    likewise.output,
                    likewise.rule,
                    likewise.limits,
                )
                assert placeless(decided.reason) == placeless(likewise.reason)
                assert [verdict.prepare for verdict in decided.verdicts] == [
                    verdict.prepare for verdict in likewise.verdicts
                ]
                assert set(decided.values) == set(likewise.values)


def kind(one: ProofFinding) -> tuple[str, str]:
    """Return what a finding is about. How sure it is depends on the order in which the solver is asked."""
    claim = re.search("'claim [0-9]+'", one.message)
    return ("invariant", claim.group()) if claim else (one.code, str(one.rule))


@settings(max_examples=examples(10), deadline=None)
@given(SEEDS)
def test_the_same_is_proven_of_it(seed: int) -> None:
    with both(random.Random(seed)) as found:
        if found is None:
            return
        inline, imported = ({kind(one) for one in verify(artifact).findings} for artifact in found)
        assert inline == imported


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[set[int]], list[set[str]]]:
    """Return which files import which, and which variables each declares: the policy is the first of them."""
    count = draw(st.integers(min_value=2, max_value=6))
    others = st.sets(st.integers(min_value=1, max_value=count - 1), max_size=3)
    names = st.sets(st.sampled_from("abcdefgh"), max_size=2)
    return [draw(others) for _ in range(count)], [draw(names) for _ in range(count)]


def closure(imports: list[set[int]], first: int) -> set[int]:
    """Return what a file imports, directly or not."""
    found: set[int] = set()
    left = set(imports[first])
    while left:
        one = left.pop()
        if one not in found:
            found.add(one)
            left |= imports[one]
    return found


@settings(max_examples=examples(150), deadline=None)
@given(graphs())
def test_cycles_and_clashes_match_a_simple_model(graph: tuple[list[set[int]], list[set[str]]]) -> None:
    imports, names = graph
    reached = closure(imports, 0)
    cycles = {one for one in reached if one in closure(imports, one)}
    clashes = {
        one
        for one in (0, *reached)
        if len([name for each in {one, *closure(imports, one)} for name in names[each]])
        > len({name for each in {one, *closure(imports, one)} for name in names[each]})
    }
    with tempfile.TemporaryDirectory() as directory:
        for number, (others, declared) in enumerate(zip(imports, names, strict=True)):
            listed = [{"path": f"f{other}.yml"} for other in sorted(others)]
            variables = [{"name": name, "expression": "affects_me"} for name in sorted(declared)]
            content: dict[str, Any] = {"name": f"f{number}", "imports": listed}
            if number:
                content.update(library=True, variables=variables)
            else:
                content["rule"] = {"variables": variables, "match": [{"output": "hold"}]}
            Path(directory, f"f{number}.yml").write_text(written(content))
        found = compile_policies([Path(directory, "f0.yml")])
        where: dict[str, set[int]] = {}
        for finding in found.findings:
            where.setdefault(finding.code, set()).add(int(Path(finding.path).stem[1:]))
    assert where.keys() <= {"import-cycle", "import-clash", "unused-import"}
    assert bool(where.get("import-cycle")) == bool(cycles)
    assert where.get("import-cycle", set()) <= cycles
    if not cycles:  # otherwise some of what is imported is unknown
        assert bool(where.get("import-clash")) == bool(clashes)
        assert where.get("import-clash", set()) <= clashes
        assert (found.artifact is None) == bool(clashes)
        if found.artifact is not None:
            policy = found.artifact["policies"][0]
            assert {one["name"] for one in policy["rule"]["variables"]} == set().union(
                names[0], *(names[one] for one in reached)
            )
