# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table and the page of a fleet: trouble first, silence is trouble, and no text of a VM or event is markup."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

_MODULE = "ansible_collections.forewarn.azure.plugins.plugin_utils._fleet"


@pytest.fixture(scope="module")
def fleet(collections_path: Path) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(collections_path))
        yield importlib.import_module(_MODULE)


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


def test_trouble_comes_first_and_silence_is_trouble(fleet: Any) -> None:
    lines = fleet.table(
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
def test_whatever_a_host_says_is_a_row(fleet: Any, stdout: str) -> None:
    assert fleet.table({"a": {"stdout": stdout}})[-1] == "1 host, 1 with trouble; 0 events pending"
    assert "unknown" in fleet.page({"a": {"stdout": stdout}}, {"a": {"stdout": stdout}}, "now", "7d")


def test_a_terminal_is_not_told_what_to_do(fleet: Any) -> None:
    lines = fleet.table({"a": answer(event(event={"EventType": "\x1b[2J\nReboot"}), vm="\x9b31m")})
    assert all(char.isprintable() for line in lines for char in line)
    assert r"\x1b[2J\nReboot held" in "\n".join(lines)


def test_the_page_has_no_markup_but_its_own_and_asks_nobody(fleet: Any) -> None:
    bad = '<img src="http://example.com/x">'
    decision = {"output": "hold", "policy": bad, "rule": bad, "reason": bad}
    its = event(event_id=bad, event={"EventType": bad, "Resources": [bad]}, decision=decision, waits_for=bad)
    past = {"stdout": json.dumps({"events": [{**its, "life_id": 9, "outcome": bad, "gone_at": bad}]})}
    page = fleet.page({bad: answer(its, problems=(bad,), vm=bad)}, {bad: past}, bad, bad)
    assert "<img" not in page
    assert "&lt;img src=&quot;http://example.com/x&quot;&gt;" in page
    assert not re.search(r"<(?:script|link|iframe|a)\b|url\(|@import", page)
    assert "default-src 'none'" in page
    assert 'name="viewport"' in page
    assert "1 earlier event<" in page


def test_the_timeline_is_in_order(fleet: Any) -> None:
    page = fleet.page({"a": answer(event(approved_at="2026-05-04T12:00:09.000Z"))}, {}, "now", "7d")
    assert re.search(r"12:00:00.000Z</time> seen</li><li><time>2026-05-04T12:00:09.000Z</time> approved", page)
