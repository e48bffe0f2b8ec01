# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lines of ``forewarn history``: what each kind of journal entry says to people."""

from __future__ import annotations

from typing import Any

import pytest
from forewarn.cli.history.entries import describe, generic
from forewarn.runner.clocks import Stamp
from forewarn.runner.journal.reader import JournalEntry
from hypothesis import example, given
from hypothesis import strategies as st
from tools.fixtures.recorded_state import decided


def entry(kind: str, /, **fields: Any) -> JournalEntry:
    return JournalEntry(1, kind, 1, Stamp(0.0, 0.0, "b"), fields)


def words(kind: str, /, **fields: Any) -> str | None:
    line = describe(entry(kind, **fields))
    return None if line is None else line.text


@pytest.mark.parametrize(
    ("kind", "fields", "text"),
    [
        ("decision", {"output": "hold", "reason": "nobody approves"}, "decided: hold: nobody approves"),
        (
            "decision",
            {"output": "hold", "policy": "p", "rule": "r", "reason": "rule r applies: x == 1"},
            "decided: hold, by p, rule r: x == 1",
        ),
        (
            "decision",
            {"output": "hold", "policy": "p", "rule": "r", "reason": "rule r applies"},
            "decided: hold, by p, rule r",
        ),
        (
            "decision",
            {"output": "hold", "policy": "p", "rule": "r", "error": "no such key", "seconds_to_not_before": 0},
            "decided: hold, by p, rule r [NotBefore has passed]. Error: no such key",
        ),
        (
            "decision",
            {
                "output": "hold",
                "reason": "a",
                "eligibility": "not-ours",
                "eligibility_reason": "b",
                "status": "Started",
            },
            "decided: hold: a [Started]. b",
        ),
        ("state", {"from": "seen", "to": "preparing", "why": "x"}, None),
        ("state", {"from": "started", "to": "done", "why": "no longer listed: finished"}, None),
        ("state", {"from": "preparing", "to": "failed", "why": "it broke"}, "failed: it broke"),
        ("state", {"from": "seen", "to": "haunted", "why": "x"}, "seen -> haunted: x"),
        (
            "hook-ended",
            {"phase": "prepare", "hook": "run x", "result": "timed-out", "seconds": 60.01, "reason": "too long"},
            "prepare hook run x: timed out after 1 min: too long",
        ),
        (
            "hook-ended",
            {"phase": "recover", "hook": "run x", "result": "not-started", "seconds": 0.0, "reason": "it is gone"},
            "recover hook run x: could not be started: it is gone",
        ),
        ("hook-ended", {"hook": "run x", "result": "failed", "exit_code": 3}, "hook run x: failed: exit code 3"),
        (
            "notified",
            {"hook": "run x", "occasion": "decided", "result": "failed", "seconds": 1.0, "reason": "r", "dropped": 3},
            "notify hook (decided) run x: failed after 1 s: r; 3 others were dropped: too many were waiting",
        ),
        (
            "approval-failed",
            {"kind": "status", "status": 400, "lasting": True, "reason": "malformed"},
            "approval failed (status 400): malformed",
        ),
        ("impact", {"kind": "pause", "seconds": 4.812}, "the machine stood still for 4.8 s"),
        (
            "shadow",
            {"event_id": "A", "live": "hold", "other": "approve", "what": "rule x"},
            "the shadow policy says approve, not hold: rule x",
        ),
        (
            "recovery-again",
            {"request": "recover-1", "by": "root (sudo: alice)", "hooks": ["run x", "run y"]},
            "recovery requested again by root (sudo: alice): run x, run y",
        ),
        (
            "recovery-dealt-with",
            {"request": "recover-1", "by": "alice", "note": "put back by hand", "hooks": ["run x"]},
            "recovery dealt with by alice: put back by hand. Not tried any more: run x",
        ),
        (
            "recovery-refused",
            {"request": "recover-1", "by": "alice", "action": "again", "event_id": "A1", "reason": "it is over"},
            "a request to recover was refused (again A1 by alice): it is over",
        ),
        (
            "recovery-refused",
            {"request": "recover-1", "reason": "its file is not a request. It was moved aside."},
            "a request to recover was refused (recover-1): its file is not a request. It was moved aside.",
        ),
        ("runner-started", {"version": "1", "dry_run": True}, "the runner started, forewarn 1, a dry run"),
        ("runner-stopped", {}, "the runner was stopped"),
        ("reload-failed", {"reason": "bad"}, "a new configuration was refused: bad"),
        ("reloaded", {"policy": "a", "before": "a"}, "the configuration was read again: the policy is the same"),
        (
            "reloaded",
            {"policy": "b", "before": "a", "serial": 1_800_000_000, "from": "policy-source"},
            "the policy source has brought serial 1800000000: policy b, before a",
        ),
        ("journal-trouble", {"reason": "the disk is full"}, "nothing could be kept: the disk is full"),
        (
            "journal-recovered",
            {"reason": "the disk is full", "seconds": 90.0, "lost": 4},
            "the journal is kept again, after 1 min 30 s; 4 entries were lost. There was: the disk is full",
        ),
        (
            "quorum-asked",
            {"peers": ["a"], "answer": "not yet", "n": 3},
            'quorum-asked: peers=["a"] answer="not yet" n=3',
        ),
        ("quorum-lost", {}, "quorum-lost"),
    ],
)
def test_what_entries_say(kind: str, fields: dict[str, Any], text: str | None) -> None:
    assert words(kind, **fields) == text


def test_a_failed_preparation_is_not_shown_three_times() -> None:
    before = decided("preparing")
    assert describe(entry("decision", **decided("preparation-failed")), before) is None
    assert describe(entry("decision", **decided("preparation-failed", rule="other")), before) is not None


def test_hook_output_is_not_repeated_after_the_reason() -> None:
    reason = "it ended with exit code 1: no route"
    line = describe(entry("hook-ended", result="failed", reason=reason, output="no route\n"))
    assert line is not None
    assert line.output == ""


KINDS = (
    *("decision", "state", "hook-started", "hook-ended", "hook-left", "hook-waits", "hook-left-over", "notified"),
    *("approval-sending", "approved", "would-approve", "would-run", "approval-failed", "event-gone"),
    *("impact", "shadow"),
    *("drill", "document", "runner-started", "runner-stopped", "reloaded", "reload-failed", "poll-failed"),
    *("poll-recovered", "journal-trouble", "journal-recovered", "record-damaged", "damage-cleared"),
    *("recovery-again", "recovery-dealt-with", "recovery-refused", "something-new"),
)
FIELDS = (
    *("Events", "action", "after_seconds", "announced_seconds", "attempt", "before", "by", "document", "dropped"),
    *("dry_run", "eligibility", "eligibility_reason", "error", "event_id", "event_keys", "exit_code", "hook", "hooks"),
    *("listed_seconds", "live", "lost", "occasion", "other", "outcome", "output", "phase", "policy", "problems"),
    *("incarnation", "kind", "lasting", "reason", "request", "result", "seconds", "seconds_to_not_before", "signal"),
    *("status", "timeout_seconds", "times", "to", "unsure", "values", "version", "what", "why"),
)
NUMBERS = st.integers() | st.floats() | st.sampled_from([10**400, -(10**400)])
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=3),
    lambda some: st.lists(some, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), some, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(KINDS), st.dictionaries(st.sampled_from(FIELDS), VALUES))
@example("hook-ended", {"seconds": float("inf")})
@example("poll-recovered", {"seconds": -(10**400)})
def test_fields_may_be_anything(kind: str, fields: dict[str, Any]) -> None:
    describe(entry(kind, **fields))
    assert generic(entry(kind, **fields)).text.startswith(kind)
