# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When hooks run, and how often: retry, prepare_within and recover_when, from YAML to the verdict."""

from __future__ import annotations

import copy
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml
from forewarn.compiler.findings import Finding
from forewarn.compiler.policies import Compilation, compile_policies
from forewarn.errors import InputError
from forewarn.events import Document, Event, Vm
from forewarn.policy.artifact import digest_of
from forewarn.policy.artifact import load as load_artifact
from forewarn.policy.decision import Facts, Verdict
from forewarn.policy.engine import PolicySet
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tools.fixtures import policy_files
from tools.fixtures.policy_files import HEAD
from tools.suite.sizes import examples

NOW = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)
EVENT = Event("e1", "Reboot", "VirtualMachine", ("web_0",), "Scheduled", NOW, "", "Platform", -1)


def compiled(directory: Path, match: str) -> Compilation:
    return policy_files.compiled(directory, f"{HEAD}    - {match}\n")


def match_of(compilation: Compilation) -> dict[str, Any]:
    assert compilation.artifact is not None, compilation.findings
    match: dict[str, Any] = compilation.artifact["policies"][0]["rule"]["match"][0]
    return match


def verdict_of(compilation: Compilation) -> Verdict:
    assert compilation.artifact is not None
    decided = PolicySet(load_artifact(compilation.artifact)).decide(Document(1, (EVENT,)), Facts(NOW, Vm(name="web_0")))
    return decided[0].verdicts[0]


def the_finding(compilation: Compilation, code: str) -> Finding:
    assert code in [finding.code for finding in compilation.findings]
    return next(finding for finding in compilation.findings if finding.code == code)


@pytest.mark.parametrize(
    ("retry", "expected"),
    [
        ("never", {"attempts": 1}),
        ("{attempts: 5}", {"attempts": 5}),
        ("{attempts: 1000}", {"attempts": 1000}),
        ("{delay: 2s}", {"delay_seconds": 2.0}),
        ("{delay: 500ms, max_delay: 1m30s}", {"delay_seconds": 0.5, "max_delay_seconds": 90.0}),
        (
            "{attempts: 5, delay: 2s, max_delay: 2s}",
            {"attempts": 5, "delay_seconds": 2.0, "max_delay_seconds": 2.0},
        ),
    ],
)
@pytest.mark.parametrize("phase", ["prepare", "recover"])
def test_retry_reaches_the_verdict(tmp_path: Path, phase: str, retry: str, expected: dict[str, Any]) -> None:
    hooks = {"prepare": "{run: [/x]}", "recover": "{run: [/y]}"}
    hooks[phase] = f"{{run: [/z], retry: {retry}}}"
    compilation = compiled(tmp_path, f"{{output: hold, prepare: [{hooks['prepare']}], recover: [{hooks['recover']}]}}")
    assert compilation.findings == []
    assert match_of(compilation)[phase] == [{"run": ["/z"], "timeout_seconds": 60.0, "retry": expected}]
    assert getattr(verdict_of(compilation), phase)[0]["retry"] == expected


def test_artifact_without_timing_keys_is_unchanged(tmp_path: Path) -> None:
    compilation = compiled(tmp_path, "{output: hold, prepare: [{run: [/x]}], recover: [{run: [/y]}]}")
    match = match_of(compilation)
    assert match.keys().isdisjoint({"prepare_within_seconds", "recover_when"})
    assert match["prepare"] == [{"run": ["/x"], "timeout_seconds": 60.0}]
    verdict = verdict_of(compilation)
    assert (verdict.prepare_within_seconds, verdict.recover_when) == (None, "prepared")


def test_prepare_within_and_recover_when_reach_the_verdict(tmp_path: Path) -> None:
    keys = "prepare: [{run: [/x]}], prepare_within: 15m, recover: [{run: [/y]}], recover_when: started"
    compilation = compiled(tmp_path, f"{{output: approve, {keys}}}")
    assert compilation.findings == []
    match = match_of(compilation)
    assert (match["prepare_within_seconds"], match["recover_when"]) == (900.0, "started")
    verdict = verdict_of(compilation)
    assert (verdict.prepare_within_seconds, verdict.recover_when) == (900.0, "started")


def test_match_may_recover_without_preparing(tmp_path: Path) -> None:
    compilation = compiled(tmp_path, "{output: hold, recover: [{run: [/x]}], recover_when: started}")
    assert compilation.findings == []
    verdict = verdict_of(compilation)
    assert (verdict.prepare, len(verdict.recover), verdict.recover_when) == ((), 1, "started")


@pytest.mark.parametrize("when", ["", ", recover_when: prepared"])
def test_otherwise_a_recover_needs_a_prepare(tmp_path: Path, when: str) -> None:
    finding = the_finding(compiled(tmp_path, f"{{output: hold, recover: [{{run: [/x]}}]{when}}}"), "nothing-to-recover")
    assert finding.severity == "error"
    assert finding.source_line[finding.column - 1 :].startswith("recover: ")
    assert "recover_when: started" in finding.suggestion


@pytest.mark.parametrize(
    ("match", "code", "at", "says"),
    [
        ("{output: hold, prepare: [{run: [/x], retry: no}]}", "malformed", "no}", "write never"),
        ("{output: hold, prepare: [{run: [/x], retry: newer}]}", "malformed", "newer", "write never"),
        ("{output: hold, prepare: [{run: [/x], retry: false}]}", "wrong-type", "false", "write never"),
        ("{output: hold, prepare: [{run: [/x], retry: 5}]}", "wrong-type", "5", "write {attempts: 5}"),
        ("{output: hold, prepare: [{run: [/x], retry: 10s}]}", "malformed", "10s", "write {delay: 10s}"),
        ("{output: hold, prepare: [{run: [/x], retry: []}]}", "wrong-type", "[]", "must be a mapping"),
        ("{output: hold, prepare: [{run: [/x], retry: {}}]}", "too-short", "retry", "at least one value"),
        ("{output: hold, prepare: [{run: [/x], retry: }]}", "missing-value", "retry", "has no value"),
        ("{output: hold, prepare: [{run: [/x], retry: {attempt: 2}}]}", "unknown-key", "attempt", "'attempts'"),
        ("{output: hold, prepare: [{run: [/x], retry: {attempts: 0}}]}", "out-of-range", "0", "between 1 and 1000"),
        ("{output: hold, prepare: [{run: [/x], retry: {attempts: 1001}}]}", "out-of-range", "1001", "1 and 1000"),
        ("{output: hold, prepare: [{run: [/x], retry: {attempts: 2.5}}]}", "wrong-type", "2.5", "a whole number"),
        ("{output: hold, prepare: [{run: [/x], retry: {delay: 5}}]}", "wrong-type", "5", "in which unit: 5s"),
        ("{output: hold, prepare: [{run: [/x], retry: {delay: 0s}}]}", "out-of-range", "0s", "above 0"),
        ("{output: hold, prepare: [{run: [/x], retry: {max_delay: 0m}}]}", "out-of-range", "0m", "above 0"),
        ("{output: hold, prepare: [{run: [/x], retry: {delay: 9999999h}}]}", "out-of-range", "9999999h", "longer"),
        (
            "{output: hold, prepare: [{run: [/x], retry: {delay: 2m, max_delay: 1m}}]}",
            "out-of-range",
            "1m}",
            "at least as long as 'delay'",
        ),
        ("{output: hold, retry: never}", "unknown-key", "retry", "unknown key"),
        ("{output: hold, prepare: [{run: [/x]}], prepare_within: 0s}", "out-of-range", "0s", "above 0"),
        ("{output: hold, prepare: [{run: [/x]}], prepare_within: 7d}", "malformed", "7d", "write 168h"),
        ("{output: hold, prepare: [{run: [/x]}], prepare_within: 900}", "wrong-type", "900", "900s"),
        ("{output: hold, prepare: [{run: [/x]}], prepare-within: 15m}", "unknown-key", "prepare-", "'prepare_within'"),
        ("{output: hold, recover: [{run: [/x]}], recover_when: start}", "wrong-value", "start}", "mean started"),
        ("{rule: {match: [{output: hold}]}, prepare_within: 5m}", "not-here", "prepare_within", "beside 'rule'"),
        ("{rule: {match: [{output: hold}]}, recover_when: started}", "not-here", "recover_when", "beside 'rule'"),
    ],
)
def test_what_is_refused(tmp_path: Path, match: str, code: str, at: str, says: str) -> None:
    compilation = compiled(tmp_path, match)
    assert compilation.artifact is None
    finding = the_finding(compilation, code)
    assert (finding.line, finding.severity) == (4, "error")
    assert finding.source_line[finding.column - 1 :].startswith(at)
    assert says in f"{finding.message} {finding.suggestion}"


@pytest.mark.parametrize(
    ("match", "at"),
    [
        ("{output: hold, prepare_within: 15m}", "prepare_within"),
        ("{output: approve, recover_when: started}", "recover_when"),
        ("{output: hold, prepare: [{run: [/x]}], recover_when: prepared}", "recover_when"),
    ],
)
def test_what_has_no_effect_is_a_warning(tmp_path: Path, match: str, at: str) -> None:
    compilation = compiled(tmp_path, match)
    assert compilation.artifact is not None
    (finding,) = compilation.findings
    assert (finding.code, finding.severity) == ("no-effect", "warning")
    assert finding.source_line[finding.column - 1 :].startswith(at)


# Every artifact that random matches compile to, and what damage to one must be refused.

_TEXTS = {"250ms": 0.25, "1s": 1.0, "30s": 30.0, "1m30s": 90.0, "15m": 900.0, "168h": 604800.0}
_DELAYS = st.sampled_from([(first, last) for first in _TEXTS for last in _TEXTS if _TEXTS[first] <= _TEXTS[last]])


@st.composite
def hooks(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a hook in YAML, and as the artifact must have it."""
    written: dict[str, Any] = {"run": ["/x"]}
    expected: dict[str, Any] = {"run": ["/x"], "timeout_seconds": 60.0}
    kind = draw(st.sampled_from(["absent", "never", "mapping"]))
    if kind == "never":
        written["retry"], expected["retry"] = "never", {"attempts": 1}
    elif kind == "mapping":
        delay, max_delay = draw(_DELAYS)
        every = {"attempts": draw(st.integers(1, 1000)), "delay": delay, "max_delay": max_delay}
        keys = draw(st.sets(st.sampled_from(sorted(every)), min_size=1))
        written["retry"] = {key: every[key] for key in every if key in keys}
        names = {"attempts": "attempts", "delay": "delay_seconds", "max_delay": "max_delay_seconds"}
        expected["retry"] = {
            names[key]: value if key == "attempts" else _TEXTS[str(value)] for key, value in written["retry"].items()
        }
    return written, expected


@st.composite
def matches(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a match as YAML has it, and of its entry in the artifact what these keys say; None for absent."""
    prepare, recover = draw(st.lists(hooks(), max_size=2)), draw(st.lists(hooks(), max_size=2))
    within = draw(st.sampled_from([None, *_TEXTS]))
    when = draw(st.sampled_from([None, "prepared", "started"]))
    if recover and not prepare:
        when = "started"
    written: dict[str, Any] = {"output": draw(st.sampled_from(["approve", "hold"]))}
    written.update(
        (key, value)
        for key, value in (
            ("prepare", [one for one, _expected in prepare]),
            ("prepare_within", within),
            ("recover", [one for one, _expected in recover]),
            ("recover_when", when),
        )
        if value
    )
    expected = {
        "prepare": [one for _written, one in prepare],
        "recover": [one for _written, one in recover],
        "prepare_within_seconds": None if within is None else _TEXTS[within],
        "recover_when": "started" if when == "started" else None,
    }
    return written, expected


@given(matches())
@settings(
    max_examples=examples(150),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
def test_random_matches_compile_and_load(tmp_path: Path, made: tuple[dict[str, Any], dict[str, Any]]) -> None:
    written, expected = made
    path = tmp_path / "p.yml"
    path.write_text(yaml.safe_dump({"name": "p", "rule": {"match": [written]}}))
    compilation = compile_policies([path])
    assert {finding.code for finding in compilation.findings} <= {"no-effect"}
    match = match_of(compilation)
    assert {key: match.get(key) for key in expected} == expected
    verdict = verdict_of(compilation)
    assert list(verdict.prepare) == expected["prepare"]
    assert list(verdict.recover) == expected["recover"]
    assert verdict.prepare_within_seconds == expected["prepare_within_seconds"]
    assert verdict.recover_when == (expected["recover_when"] or "prepared")


_NO_SECONDS: st.SearchStrategy[Any] = st.sampled_from(
    [0, -1, -0.5, True, "5s", None, [], {}, float("inf"), float("nan"), 0.0]
)
_NO_ATTEMPTS: st.SearchStrategy[Any] = st.sampled_from([0, -1, 1001, 1.0, True, "5", None, []])
_NO_RETRY = st.one_of(
    st.sampled_from([None, {}, [], "never", 5, True, {"attempts": 1, "times": 2}]),
    st.builds(lambda value: {"attempts": value}, _NO_ATTEMPTS),
    st.builds(lambda key, value: {key: value}, st.sampled_from(["delay_seconds", "max_delay_seconds"]), _NO_SECONDS),
    st.builds(
        lambda low, more: {"delay_seconds": low + more, "max_delay_seconds": low},
        st.floats(0.001, 1e6),
        st.floats(0.001, 1e6),
    ),
)


@given(
    damage=st.one_of(
        st.tuples(st.sampled_from(["prepare", "recover", "notify"]), _NO_RETRY),
        st.tuples(st.just("prepare_within_seconds"), _NO_SECONDS),
        st.tuples(st.just("recover_when"), st.sampled_from([None, "", "Started", "always", 1, ["started"]])),
        st.tuples(st.just("without"), st.just("prepare")),
    )
)
@settings(
    max_examples=examples(150),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
def test_a_damaged_artifact_is_refused(tmp_path: Path, damage: tuple[str, Any]) -> None:
    keys = "prepare: [{run: [/x]}], recover: [{run: [/y]}], notify: [{run: [/z]}]"
    artifact = copy.deepcopy(compiled(tmp_path, f"{{output: hold, {keys}}}").artifact)
    assert artifact is not None
    match = artifact["policies"][0]["rule"]["match"][0]
    key, value = damage
    if key == "without":
        match[value] = []
    elif key in ("prepare", "recover", "notify"):
        match[key][0]["retry"] = value
    else:
        match[key] = value
    artifact["digest"] = digest_of(artifact)
    with pytest.raises(InputError, match="damaged"):
        load_artifact(artifact)
