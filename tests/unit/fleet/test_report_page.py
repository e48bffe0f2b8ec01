# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of a fleet: each event once, trouble first, the rest folded, and no text of a VM or an event is markup."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from typing import Any

import pytest
from forewarn.fleet.page import page
from tools.worlds.fleets import AT, event, fleet, iso, report

NOW = iso(AT)


def with_history(result: dict[str, Any], *events: dict[str, Any]) -> dict[str, Any]:
    return {**result, "history": json.dumps({"events": list(events)})}


@pytest.mark.parametrize("hosts", [0, 1, 60, 300])
def test_each_event_is_one_card_naming_every_host(hosts: int) -> None:
    answers = fleet(hosts, past=10)
    made = page(answers, NOW, "7d")
    text = html.unescape(made)
    for host in answers:
        assert re.search(rf"<b>[^<]*\b{host}\b", text), host
    shown = [one for one in range(6) if str(event(one, [])["event_id"]) in text]
    assert made.count("<article") == len(shown) == (6 if hosts else 0)
    # Once each, although every host remembers all of them.
    assert len(re.findall(r"<b>\w+ finished</b>", made)) == (10 if hosts else 0)
    assert made.count("not affected") <= 6
    for host, answer in answers.items():
        if answer.get("failed"):
            assert re.search(rf'<div class="problem"><b>[^<]*\b{host}\b[^<]*</b><p>{re.escape(answer["msg"])}', text)


@pytest.mark.parametrize(
    "stdout", ["", "[]", "null", '{"runner": 1}', '{"runner": {}, "service": {}}', "\x00", "[" * 9999]
)
def test_whatever_a_host_says_is_on_the_page(stdout: str) -> None:
    made = page({"a": {"stdout": stdout, "history": stdout}}, "now", "7d")
    assert "no status: its report cannot be read" in made


def test_page_requests_nothing_and_admits_its_own_style() -> None:
    for made_at in ("some time", NOW):
        made = page(fleet(6, past=3), made_at, "7d")
        (style,) = re.findall(r"<style>(.*?)</style>", made, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        assert f"default-src 'none'; style-src 'sha256-{digest}'" in made
        assert not re.search(r"<(?:script|link|iframe|a)\b|url\(|@import|\bstyle=", made)
        assert 'name="viewport"' in made


@pytest.mark.parametrize("value", [10**400, -(10**400), 1e308, [], {}, True, "x", None, "9999-12-31T23:59:59-23:59"])
def test_any_field_value_is_rendered(value: object) -> None:
    for name in [*event(0, []), "last_seen", "impact"]:
        its = {**event(0, ["a"]), name: value}
        past = {**its, "event_id": "P1", "impact": {"paused_seconds": value}}
        made = page({"a": with_history(report([its]), past), "b": with_history(report(), past)}, NOW, "7d")
        assert made.endswith("</html>\n")
    for name in event(0, [])["event"]:
        its = event(0, ["a"])
        its["event"][name] = value
        assert page({"a": report([its])}, NOW, "7d").endswith("</html>\n")
    for name in ("condition", "text", "policy", "version", "policies", "source", "missing", "vm", "dry_run"):
        runner: dict[str, Any] = {name: value}
        assert page({"a": report([event(0, ["a"])], **runner)}, NOW, "7d").endswith("</html>\n")


def test_the_steps_of_an_event_are_in_order() -> None:
    its = event(0, ["a"], first_seen="2026-05-04T12:00:00.000Z", approved_at="2026-05-04T12:00:09.000Z")
    made = page({"a": report([its])}, "now", "7d")
    assert re.search(r"05-04 12:00:00</time> seen</li><li><time>2026-05-04 12:00:09</time> approved", made)


def test_time_left_is_written_and_drawn() -> None:
    near = event(1, ["a"], seconds_to_not_before=100.0)
    far = event(2, ["a", "b"], seconds_to_not_before=900.0)
    made = page({"a": report([far, near]), "b": report([far]), "c": report([far])}, NOW, "7d")
    assert "<b>1 min 40 s</b> until the next one starts" in made
    assert made.index("<h3>Redeploy</h3>") < made.index("<h3>Freeze</h3>")
    assert made.count("<h3>Freeze</h3>") == 1  # of both hosts
    assert '<rect class="gone" width="75.0%"' in made  # 300 s of 400
    assert made.count('class="ahead"') == 3  # not of the neighbour


def test_cancelled_event_is_drawn_as_cancelled() -> None:
    times = {"first_seen": "2026-11-21T16:05:00.000Z", "gone_at": "2026-11-21T16:09:00.000Z"}
    gone = event(7, ["a"], outcome="cancelled", open=False, **times)
    made = page({"a": with_history(report(), gone)}, NOW, "7d")
    assert "Redeploy cancelled: seen 2026-11-21 16:05:00, gone 2026-11-21 16:09:00" in made
    assert '<line class="m-calm" x1="0.00%" x2="80.00%"' in made


def test_event_remembered_only_by_neighbours_is_shown() -> None:
    gone = event(7, ["deleted"], outcome="finished", open=False, gone_at=NOW)
    made = page({name: with_history(report(), gone) for name in ("a", "b")}, NOW, "7d")
    assert made.count("Redeploy finished") == 1
    assert "deleted" in made
