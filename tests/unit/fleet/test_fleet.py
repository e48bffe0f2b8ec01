# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table and the page of a fleet: trouble first, silence is trouble, and no text of a VM or event is markup."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from typing import Any

import pytest
from forewarn.fleet.page import page
from forewarn.fleet.status import table

FIELDS = ("EventType", "NotBefore", "EventSource", "Description")
AT = "2026-05-04T12:05:00Z"


def answer(*events: dict[str, Any], problems: tuple[str, ...] = (), **runner: Any) -> dict[str, Any]:
    report = {
        "runner": {"condition": "running", "policy": "sha256:4558453758da1f546c97", "vm": "web_0", **runner},
        "service": {"state": "ok"},
        "events": list(events),
        "problems": list(problems),
    }
    return {"stdout": json.dumps(report)}


def event(**fields: Any) -> dict[str, Any]:
    its = {"EventType": "Reboot", "Resources": ["web_0"]}
    times = {"first_seen": "2026-05-04T12:00:00.000Z", "approved_at": None}
    return {"event_id": "A1", "event": its, "state": "held", "starts": "in 5 min", "waits_for": "x", **times, **fields}


def test_trouble_comes_first_and_silence_is_trouble() -> None:
    lines = table(
        {
            "quiet": answer(),
            "busy": answer(event(), event(event_id="A2", state="preparing", drill=True)),
            "late": answer(problems=("the service does not answer",)),
            "gone": {"unreachable": True, "msg": "no route to host"},
            "bare": {"rc": 127, "stdout": "", "stderr": "forewarn: not found"},
            "never": {},
        }
    )
    assert [line.split()[0] for line in lines[1:6]] == ["bare", "gone", "late", "never", "busy"]
    assert lines[0].split() == ["HOST", "RUNNER", "SERVICE", "POLICY", "PENDING"]
    text = "\n".join(lines)
    assert re.search(r"gone +unknown +- +- +! not reached: no route to host", text)
    assert re.search(
        r"busy +running +ok +4558453758da +Reboot held, in 5 min\n +Reboot preparing, in 5 min \(drill\)", text
    )
    assert lines[-1] == "6 hosts, 4 with trouble; 2 events pending"


@pytest.mark.parametrize("stdout", ["", "[]", "null", '{"runner": 1}', '{"runner": {}, "service": {}}', "\x00", "5"])
def test_whatever_a_host_says_is_a_row(stdout: str) -> None:
    assert table({"a": {"stdout": stdout}})[-1] == "1 host, 1 with trouble; 0 events pending"
    assert "unknown" in page({"a": {"stdout": stdout}}, {"a": {"stdout": stdout}}, "now", "7d")


def test_a_terminal_is_not_told_what_to_do() -> None:
    lines = table({"a": answer(event(event={"EventType": "\x1b[2J\nReboot"}), vm="\x9b31m")})
    assert all(char.isprintable() for line in lines for char in line)
    assert r"\x1b[2J\nReboot held" in "\n".join(lines)


def test_the_page_has_no_markup_but_its_own_and_asks_nobody() -> None:
    bad = '<img src="http://example.com/x">'
    decision = {"output": bad, "policy": bad, "rule": bad, "reason": bad}
    its = event(
        event_id=bad, event=dict.fromkeys(FIELDS, bad), decision=decision, waits_for=bad, failure=bad, starts=bad
    )
    its |= {"hooks": [dict.fromkeys(("phase", "hook", "status"), bad)], "state": bad}
    past = {"stdout": json.dumps({"events": [{**its, "life_id": 9, "outcome": bad, "gone_at": bad}]})}
    runner = {"vm": bad, "text": bad, "version": bad}
    for made_at in (bad, AT):
        made = page({bad: answer(its, problems=(bad,), **runner)}, {bad: past}, made_at, bad)
        assert "<img" not in made
        assert "&lt;img src=" in made
        assert bad in html.unescape(made)
        assert not re.search(r"<(?:script|link|iframe|a)\b|url\(|@import|\bstyle=", made)
        assert "default-src 'none'; style-src 'sha256-" in made
        assert 'name="viewport"' in made
        assert "1 earlier event<" in made


def test_the_page_admits_its_own_style_alone() -> None:
    made = page({"a": answer(event())}, {}, AT, "7d")
    (style,) = re.findall(r"<style>(.*?)</style>", made, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in made


@pytest.mark.parametrize("value", [10**400, -(10**400), 1e308, [], {}, True, "x", None, "9999-12-31T23:59:59-23:59"])
def test_whatever_stands_in_an_event_is_on_the_page(value: object) -> None:
    names = ("life_id", "event_id", "event", "state", "starts", "waits_for", "first_seen", "approved_at", "started_at")
    others = (
        "gone_at",
        "last_seen",
        "outcome",
        "decision",
        "hooks",
        "impact",
        "seconds_to_not_before",
        "drill",
        "open",
    )
    for name in (*names, *others):
        its = {**event(), name: value}
        past = {"stdout": json.dumps({"events": [{**its, "impact": {"paused_seconds": value}}]})}
        assert page({"a": answer(its), "b": answer()}, {"a": past, "b": past}, AT, "7d").endswith("</html>\n")


def test_the_timeline_is_in_order() -> None:
    made = page({"a": answer(event(approved_at="2026-05-04T12:00:09.000Z"))}, {}, "now", "7d")
    assert re.search(r"05-04 12:00:00</time> seen</li><li><time>2026-05-04 12:00:09</time> approved", made)


def test_time_left_is_written_and_drawn() -> None:
    near = event(event_id="A2", seconds_to_not_before=100.0)
    far = event(seconds_to_not_before=900.0, event={"EventType": "Redeploy", "Resources": ["web_0", "web_1"]})
    made = page({"a": answer(far, near), "b": answer(far)}, {}, AT, "7d")
    assert "<b>1 min 40 s</b> until the next one starts" in made
    assert made.index("<h3>Reboot</h3>") < made.index("<h3>Redeploy</h3>")
    assert made.count("<h3>Redeploy</h3>") == 1  # of both hosts
    assert '<rect class="gone" width="75.0%"' in made  # 300 s of 400
    assert made.count('class="ahead"') == 3


def test_an_event_that_was_called_off_is_drawn_as_such() -> None:
    gone = event(outcome="cancelled", open=False, gone_at="2026-05-04T12:04:00.000Z", life_id=3)
    made = page({"a": answer()}, {"a": {"stdout": json.dumps({"events": [gone]})}}, AT, "7d")
    assert "Reboot cancelled: seen 2026-05-04 12:00:00, gone 2026-05-04 12:04:00" in made
    assert '<line class="m-calm" x1="0.00%" x2="80.00%"' in made
