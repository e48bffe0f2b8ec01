# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What replay leaves out changes no byte that it writes: the plain way writes the same, for text and for --json."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from forewarn.analysis.replay import recordings
from forewarn.analysis.replay.recordings import RecordedDocument
from forewarn.events import API_VERSIONS, LATEST_API_VERSION
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tools.fixtures.events import NOW, in_minutes, listed
from tools.judges import plain_replay
from tools.sites.commands import in_process
from tools.suite.sizes import examples

# Nothing is made smaller: that would take minutes, and what differs is easily seen.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
CONDITIONS = (
    *('notice < duration("{a}s")', 'age >= duration("{a}s")', "now.getMinutes() == 7", "variables.soon", "leader"),
    *('notice > duration("{a}s") && event.DurationInSeconds < 9', "variables.brief", "affects_me && variables.brief"),
    *('event.NotBefore - now < params.enough || age < duration("{a}s")', "event.DurationInSeconds / 5 == 1"),
    *('events.exists(one, one.EventType == "Reboot")', "int(vm.zone) > 0 || variables.soon"),
)
EXPLANATIONS = (
    None,
    None,
    "'at ' + string(now)",
    "event.Description",
    "variables.why",
    "string(60 / event.DurationInSeconds)",
)
POLICY = """
name: p
params: [{{name: enough, type: duration, default: 7m}}]
rule:
  variables:
    - {{name: soon, expression: 'notice < duration("3m1s")'}}
    - {{name: brief, expression: "event.DurationInSeconds < 9"}}
    - {{name: why, expression: "variables.soon ? event.Description : 'later'"}}
  match:
"""
HOOKS = "      prepare: [{run: [/bin/true]}]\n"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("replayed")


@st.composite
def policies(draw: st.DrawFn) -> str:
    """Draw a policy: rules that read the time and rules that do not, some in a rule of their own."""
    text = POLICY.format()
    for number in range(draw(st.integers(1, 4))):
        condition = draw(st.sampled_from(CONDITIONS)).format(a=draw(st.sampled_from((0, 59, 301, 307, 661, 901))))
        explanation = draw(st.sampled_from(EXPLANATIONS))
        output = draw(st.sampled_from(("approve", "approve", "hold")))
        nested = draw(st.integers(0, 3)) == 0
        indent = "          " if nested else "    "
        if nested:
            group = draw(
                st.sampled_from(("", f"      condition: {draw(st.sampled_from(CONDITIONS[3:6]))}\n".format(a=9)))
            )
            text += f"    - id: g{number}\n{group}      rule:\n        match:\n"
        text += f"{indent}- id: r{number}\n{indent}  condition: {json.dumps(condition)}\n{indent}  output: {output}\n"
        text += "" if explanation is None else f"{indent}  explanation: {json.dumps(explanation)}\n"
        text += HOOKS.replace("      ", f"{indent}  ") if draw(st.integers(0, 4)) == 0 else ""
    return text


EVENTS = st.builds(
    lambda name, lead, lasts, more: listed(name, **{"NotBefore": in_minutes(lead), "DurationInSeconds": lasts, **more}),
    st.sampled_from(("E1", "E2", "e1")),
    st.sampled_from((-5, 4, 11, 17, 17, 23, 31, 40)),
    st.sampled_from((-1, 0, 5, 30, None)),
    st.fixed_dictionaries(
        {},
        optional={
            "EventStatus": st.sampled_from(("Started", "Odd")),
            "EventType": st.sampled_from(("Reboot", "Preempt", "Hibernate", None)),
            "Resources": st.sampled_from((["web_0"], ["web_1", "web_0"], ["WEB_1"], "web_0", [])),
            "Description": st.sampled_from(("é", "\ud800", None, "a\x1b[0m")),
            "NotBefore": st.sampled_from(("", None, "soon", "2026-05-04T12:10:00.5Z")),
        },
    ),
)
VMS = st.sampled_from((None, "web_0", "web_1", "WEB_0", {"name": "web_0", "zone": "1"}, {"zone": "x", "tags": {}}))


@st.composite
def recorded(draw: st.DrawFn) -> bytes:
    """Draw a recording: polls of some VMs, changes, lines that cannot be read."""
    second, lines = 0.0, []
    document: dict[str, Any] = {"DocumentIncarnation": 0, "Events": []}
    for number in range(draw(st.integers(1, 7))):
        second += draw(st.sampled_from((0, 1, 31.5, 181, 700, 700, 1500, 4000, -20)))
        if draw(st.integers(0, 3)):
            document = {"DocumentIncarnation": number, "Events": draw(st.lists(EVENTS, max_size=2))}
        line = {"time": (NOW + timedelta(seconds=second)).timestamp(), "vm": draw(VMS), "document": document}
        lines.append(json.dumps(line))
    if draw(st.integers(0, 5)) == 0:
        lines.insert(draw(st.integers(0, len(lines))), '{"document": {"Events": 1}}')
    return "\n".join(lines).encode()


def plainly(*args: Any) -> Any:
    """Run the command the plain way."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("forewarn.analysis.replay.replay._Stream", plain_replay.Stream)
        patch.setattr("forewarn.cli.policy.replay.read_lines", plain_replay.read_lines)
        return in_process(*args)


def same(directory: Path, policy: str, content: bytes, *options: str) -> str:
    """Make sure that the command writes the same both ways; return the text."""
    (directory / "p.yml").write_text(policy)
    (directory / "r.jsonl").write_bytes(content)
    asked = ["policy", "replay", directory / "p.yml", "--from", directory / "r.jsonl", *options]
    for form in ("--json", None):
        found, plain = (run(*asked, *([form] if form else [])) for run in (in_process, plainly))
        assert (found.returncode, found.stdout, found.stderr) == (plain.returncode, plain.stdout, plain.stderr)
    assert isinstance(found.stdout, str)
    return found.stdout


@settings(max_examples=examples(60), deadline=None, phases=PHASES)
@given(policy=policies(), content=recorded(), name=st.sampled_from((None, "web_0", "web_1")))
def test_the_command_writes_the_same(directory: Path, policy: str, content: bytes, name: str | None) -> None:
    same(directory, policy, content, *([] if name is None else ["--vm-name", name]))


@pytest.mark.parametrize("name", ["web_0", "web_1"])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_each_condition_turns_when_it_turns(directory: Path, condition: str, name: str) -> None:
    """A brief freeze is put off, and the last time that passes is long: alone, and before a rule over the time."""
    event = {"time": NOW.timestamp(), "document": {"DocumentIncarnation": 1, "Events": [listed("E1")]}}
    later = {"DocumentIncarnation": 2, "Events": [listed("E1", NotBefore=in_minutes(21))]}
    content = [event, {"time": NOW.timestamp() + 11.5, "document": later}]
    content.append({"time": NOW.timestamp() + 4000, "document": {"DocumentIncarnation": 3, "Events": []}})
    rule = "    - id: {}\n      condition: {}\n      output: approve\n"
    first = rule.format("first", json.dumps(condition.format(a=307)))
    second = rule.format("second", json.dumps('notice < duration("6m")'))
    for policy in (first, first + second):
        text = same(
            directory, POLICY.format() + policy, "\n".join(map(json.dumps, content)).encode(), "--vm-name", name
        )
        assert "1 event" in text


# Whatever a line holds


def _extra(value: bytes) -> bytes:
    return b'{"Events": [{"EventId": "a", "x": %s}]}' % value


VALUES = st.recursive(
    st.sampled_from((0, 1, True, 1.0, -0.0, 0.0, "1", None, float("nan"), float("inf"), 10**99, 10**100, 10**150)),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(("a", "EventId")), inner, max_size=2),
    max_leaves=3,
)
FIELDS = ("EventId", "DurationInSeconds", "NotBefore", "Resources", "x", "y")
DOCUMENTS = st.builds(
    lambda incarnation, changes, more: {
        "DocumentIncarnation": incarnation,
        "Events": [listed("E1", **dict(changes)), *more],
    },
    VALUES,
    st.lists(st.tuples(st.sampled_from(FIELDS), VALUES), max_size=2),
    st.lists(VALUES | EVENTS, max_size=2),
)
# Lines by what is odd about them: Hypothesis shows short names, and some lines are long.
ODD = {
    "Events twice": b'{"Events": [], "Events": [1]}',
    "EventId twice": b'{"Events": [{"EventId": "a", "EventId": "b"}]}',
    **{f"{value} like 1": _extra(value.encode()) for value in ("1", "1.0", "true", "1e0")},
    "NaN": b'{"Events": [NaN]}',
    "empty": b"",
    **{f"{depth} deep": _extra(b"[" * depth + b"]" * depth) for depth in (19, 20, 21, 600)},
    **{f"{count} digits": _extra(b"7" * count) for count in (100, 101)},
    "long fraction": _extra(b"1." + b"3" * 101),
    **{f"{count} events": b'{"Events": [%s]}' % b",".join([b'{"EventId": "a"}'] * count) for count in (499, 501, 1001)},
    "digits of a text": _extra(b'"%s"' % (b"0" * 5000)),
    "letters": _extra(b'"\xc3\xa9"'),
    "half a letter": _extra(b'"\\ud800"'),
    "long": _extra(b'"%s"' % (b"y" * 70_000)),
}
LIKE_1 = st.sampled_from(sorted(name for name in ODD if name.endswith("like 1")))
LINES = DOCUMENTS.map(lambda document: json.dumps(document).encode()) | (
    (LIKE_1 | st.sampled_from(sorted(ODD))).map(str.encode)
)


def read(reader: Callable[..., Iterator[RecordedDocument]], content: bytes, api_version: str) -> Any:
    """Return what a reader makes of lines, which of the documents are one, and what it reports."""
    bad: list[tuple[str, str]] = []
    found = list(reader(io.BytesIO(content), "r", api_version, lambda *told: bad.append(told)))
    one = [before.document is after.document for before, after in zip(found, found[1:])]
    return list(map(repr, found)), one, bad


@settings(max_examples=examples(200), deadline=None, phases=PHASES)
@given(
    lines=st.lists(st.tuples(LINES, st.integers(1, 3)), max_size=4),
    api_version=st.sampled_from((API_VERSIONS[0], LATEST_API_VERSION)),
)
def test_lines_are_read_as_their_text_is(lines: list[tuple[bytes, int]], api_version: str) -> None:
    content = b"\n".join(ODD.get(line.decode(), line) for line, count in lines for _ in range(count))
    expected = read(plain_replay.read_lines, content, api_version)
    assert read(recordings.read_lines, content, api_version) == expected
