# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts for people: nothing that comes from outside hides or rearranges what is shown, in any command, log or page."""

from __future__ import annotations

import io
import json
import math
import random
import re
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from forewarn.analysis.hook_wording import shows_as_it_is
from forewarn.cli.policy.output.formats import github_command
from forewarn.fleet.status import host_states
from forewarn.fleet.table import table
from forewarn.pages import printable
from forewarn.runner.telemetry.log import Log
from forewarn.texts import duration_text, escaped
from tools.fixtures.policy_files import written
from tools.fixtures.recorded_state import RecordedState, Run, decided, planned
from tools.generators.hostile_texts import INVISIBLE, MARKS, NEVER, characters, hostile_text, literal, raw_characters
from tools.sites.commands import in_process
from tools.suite.sizes import seeds

SEEDS = seeds(4)


@pytest.mark.parametrize("category", NEVER)
def test_no_character_of_a_category_is_shown_raw(category: str) -> None:
    for char in characters(category):
        shown = escaped(f"a{char}b")
        assert shown.isascii(), hex(ord(char))
        assert shown != f"a{char}b"
        assert shown.isprintable()


def test_invisible_characters_are_escaped() -> None:
    assert [char for char in INVISIBLE if escaped(f"a{char}") == f"a{char}"] == []
    for char in [char for category in MARKS for char in characters(category)]:
        assert escaped(f"web_0{char}").isascii(), "on ASCII no mark is needed"


@pytest.mark.parametrize(
    "text", ["Wartung für 日本", "हिन्दी", "คำที่", "שָׁלוֹם", "й, ё, é", "“quoted” – 5 €", "C:\\new", "🙂", ""]
)
def test_what_people_write_stays(text: str) -> None:
    assert escaped(unicodedata.normalize("NFC", text)) == unicodedata.normalize("NFC", text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("web\u200b_0", r"web\u200b_0"),
        ("e\u0301", r"e\u0301"),
        ("\u0301", r"\u0301"),
        ("ก" + "\u0e49" * 9, "ก" + "\u0e49" * 4 + r"\u0e49" * 5),
        ("1\u20e3", r"1\u20e3"),
        ("a\tb\nc", r"a\tb\nc"),
        ("\U000e0041", r"\U000e0041"),
    ],
)
def test_examples(text: str, shown: str) -> None:
    assert escaped(text) == shown
    assert escaped(shown) == shown


def record(state: RecordedState, text: str) -> None:
    """Write a state directory in which everything is this text that can be one."""
    event = {"EventSource": text, "Description": text, "ResourceType": text, "Resources": ["web_1", text]}
    hook = {"run": ["/bin/x", text], "timeout_seconds": 10}
    named = {"policy": text, "rule": text}
    fields: dict[str, Any] = {
        "state": "preparing",
        "decision": decided("refused-by-policy", text, **named),
        "plan": [planned("prepare", hook, "failed", reason=text, **named)],
    }
    row = state.record(text, event=event, **fields)
    for kind in ("decision", "hook-failed", "approved", "outcome", "journal-trouble", "runner-started", "odd kind"):
        state.note(kind, row, output="hold", reason=text, error=text, hook=text, outcome=text, **named)
    state.beat(policies=[text], missing=[text], vm=text, reload_problem=text, journal_trouble=text, fault=text)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_command_shows_it_raw(seed: int, recorded: RecordedState, run_command: Run) -> None:
    text = hostile_text(seed)
    record(recorded, text)
    for command in (("status",), ("history",), ("history", "--event", text), ("recover",)):
        shown = run_command(*command)
        assert raw_characters(shown.out + shown.err) == set(), command
        assert r"\u" in shown.out + shown.err or command == ("recover",)


POLICY = """
name: hostile
description: {text}
params: [{{name: word, type: string, default: {text}}}]
rule:
  variables: [{{name: odd, expression: {literal}}}]
  match:
    - {{id: a, condition: 'variables.odd', output: approve, explanation: {explained}}}
    - {{id: b, condition: "vm.name == params.word", output: approve, prepare: [{{run: [/bin/x, {argument}]}}]}}
    - {{id: c, output: hold}}
"""


@pytest.mark.parametrize("seed", SEEDS)
def test_no_policy_command_shows_it_raw(seed: int, tmp_path: Any) -> None:
    text = hostile_text(seed, half=False)  # YAML has no half characters
    quoted = literal(text)
    policy = POLICY.format(
        text=quoted,
        argument=literal(text.replace("\0", "\a")),  # no argument of a program holds NUL
        literal=literal(f"event.Description == {quoted}"),
        explained=literal(f'"because of {text}"'),
    )
    changed = policy.replace("'variables.odd', output: approve", "'variables.odd', output: hold")
    broken = policy.replace("vm.name ==", "x\u200b\u202e\u0301 ==")
    old, new, wrong = written(tmp_path, policy, changed, broken)
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"EventId": "A", "EventType": "Reboot", "Description": text, "Resources": [text]}))
    for code, *command in (
        (1, "check", wrong),
        (1, "check", wrong, "--format", "github"),
        (0, "verify", old),
        (0, "diff", old, new),
        (0, "diff", old, new, "--format", "markdown"),
        (0, "explain", "--policy", old, "--event", event),
        (0, "eval", "event.Description", "--document", event),
        (0, "query", old, f"event.Description == {quoted}"),
    ):
        shown = in_process("policy", *command)
        assert shown.returncode == code, shown.stderr
        assert raw_characters(shown.stdout + shown.stderr) == set(), command
        assert re.search(r"\\[xuU][0-9a-f]", shown.stdout), command


@pytest.mark.parametrize("seed", SEEDS)
def test_no_log_or_page_shows_it_raw(seed: int) -> None:
    text = hostile_text(seed)
    for form in ("text", "json"):
        stream = io.StringIO()
        Log(stream, form).info("decision", reason=text, names=[text])
        assert raw_characters(stream.getvalue()) == set()
    assert raw_characters(printable(text)) == raw_characters(github_command("error", text, 1, 1, text, text)) == set()
    assert not shows_as_it_is(text)
    report = {"runner": {"condition": text, "text": text, "policy": text, "vm": text}, "problems": [text]}
    lines = table(host_states({text: {"stdout": json.dumps(report)}, "h": {"failed": True, "msg": text}}))
    assert raw_characters("\n".join(line.text for line in lines)) == set()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (59.9, "59 s"),
        (60, "1 min"),
        (843, "14 min 3 s"),
        (3600, "1 h"),
        (603899, "6 d 23 h"),
        (math.inf, "over 9999 d"),
        (1e18, "over 9999 d"),
    ],
)
def test_a_span_of_time_has_two_units(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


# Sources that write seconds themselves: bounds and times of requests, which are short, and exact values.
_SHORT = {
    *(
        "texts.py",
        "cli/history/command.py",
        "cli/status/report.py",
        "cli/run/setup.py",
        "compiler/imports/git_files.py",
        "imds/transport.py",
    ),
    *("runner/groups/https.py", "runner/hooks/webhook.py"),
    *("analysis/verify/paired_events.py", "analysis/hook_wording.py", "analysis/report/dimension_words.py"),
    *("emulator/clock.py", "emulator/model.py"),
    "fleet/first_boot.py",  # is alone on a VM
}


def test_no_other_source_writes_seconds_by_itself(package: Path) -> None:
    """A span of time that may be long is ``duration_text`` or ``exact_text``: 6 d 23 h, and not 603899 s."""
    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if path.parent.name != "smt" and re.search(r"\} (s|seconds)\b(?![^\n]*`)", path.read_text())
    }
    assert found == _SHORT


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_far_away_is_said_in_words(seed: int, recorded: RecordedState, run_command: Run) -> None:
    drawn = random.Random(seed)

    def far() -> float:
        return drawn.choice((1, -1)) * drawn.uniform(2_000, 9_000_000)

    hook = {"run": ["/bin/x"], "timeout_seconds": abs(far())}
    row = recorded.record(
        "A1",
        state=drawn.choice(("seen", "preparing", "approved", "started")),
        event={"NotBefore": recorded.at(far()), "DurationInSeconds": int(abs(far()))},
        plan=[planned("prepare", hook, drawn.choice(("waiting", "running")))],
        decision=decided("preparing"),
    )
    recorded.clocks.now += abs(far())
    for kind in ("decision", "hook-started", "impact", "outcome"):
        recorded.note(
            kind,
            row,
            hook="x",
            seconds=abs(far()),
            timeout_seconds=abs(far()),
            seconds_to_not_before=far(),
            output="hold",
        )
    if drawn.random() < 0.5:
        recorded.beat()
        recorded.clocks.now += abs(far())
    for command in (("status",), ("history", "--since", "200d"), ("history", "--event", "A1"), ("recover",)):
        shown = run_command(*command)
        assert re.findall(r"\b\d{4,}(?:\.\d+)? ?s\b", shown.out + shown.err) == [], shown.out
