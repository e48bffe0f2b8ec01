# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of a fleet in a real browser: on a desk and a phone, light and dark, with hostile texts, and silent."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest
from forewarn.fleet.page import page
from selenium.webdriver.common.by import By
from tools.sites.browser import DESKTOP, PHONE, Browser
from tools.worlds import fleets

AT = "2026-11-21T16:10:00.000Z"
EVIL = "</style><script>document.title = 'ran'</script><img src='http://example.com/' onerror='document.title = 1'>"
LONG = "a-name-without-any-place-to-break-" * 6
REDEPLOY = {"EventType": "Redeploy", "Resources": ["db_0"]}
FAILED = "prepare hook run /usr/local/bin/failover failed: it ended with exit code 1: db_1 is 214 s behind"


def with_history(result: Any, *events: dict[str, Any]) -> Any:
    return {**result, "history": json.dumps({"events": events})}


def event(event_id: str, state: str, left: float, **fields: Any) -> dict[str, Any]:
    numbers = {"event_id": event_id, "life_id": event_id, "seconds_to_not_before": left}
    return fleets.event(0, ["web_0", "web_1"], state, **{**numbers, **fields})


@pytest.fixture(scope="module")
def report(collections_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of a fleet with everything: trouble, pending events, a drill, past events, and hostile texts."""
    reboot = "68DAE20B-44AC-437A-AB2C-A28033A908A7"
    evil = event(EVIL, EVIL, 8000.0, waits_for=EVIL, event={"EventType": EVIL})
    answers = {
        "web_0": fleets.report([event(reboot, "preparing", 596.0)]),
        "web_1": fleets.report([event(reboot, "prepared", 596.0)]),
        "db_0": fleets.report(
            [event("D2", "failed", 250.0, failure=FAILED, drill=True, event=REDEPLOY)], [f"Redeploy D2: {FAILED}"]
        ),
        "quiet": fleets.report(),
        "unreachable": {"failed": True, "msg": "not reached: No route to host (ssh, port 22)"},
        LONG: fleets.report([event(LONG, LONG, 7000.0, starts=LONG, waits_for=LONG)], [LONG], text=LONG),
        EVIL: fleets.report([evil], [EVIL], text=EVIL),
    }
    steps = {"approved_at": "2026-11-21T15:02:01.000Z", "started_at": "2026-11-21T15:05:00.000Z"}
    times = {"first_seen": "2026-11-21T15:02:00.000Z", "gone_at": "2026-11-21T15:15:00.000Z", "open": False}
    past = event("P1", "done", 0.0, outcome="finished", impact={"paused_seconds": 4.8}, **{**steps, **times})
    off = event("P2", "done", 0.0, outcome="cancelled", **times)
    answers["web_0"] = with_history(answers["web_0"], past, off)
    answers["quiet"] = with_history(answers["quiet"], past)
    answers[EVIL] = with_history(answers[EVIL], {**off, "event_id": "P3", "event": {"EventType": EVIL}})
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(collections_path))
        module = importlib.import_module("ansible_collections.forewarn.azure.plugins.filter.fleet_page")
        filters = module.FilterModule().filters()
    written = tmp_path_factory.mktemp("fleet") / "fleet.html"
    written.write_text(filters["fleet_page"](answers, AT, "7d"))
    return written


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desk", "phone"])
def test_the_report_fits_and_is_silent(report: Path, size: tuple[int, int], dark: bool, chromium: Browser) -> None:
    chromium.show(report, size, dark=dark)
    chromium.run("for (const one of document.querySelectorAll('details')) one.open = true")
    assert chromium.overflow() <= 0
    assert chromium.too_wide() == []
    assert chromium.faint() == []
    colour = str(chromium.run("return getComputedStyle(document.body).backgroundColor"))
    assert (sum(int(part) for part in colour.strip("rgb()").split(",")) < 200) == dark
    assert chromium.complaints(report) == []
    assert chromium.driver.title.startswith("Forewarn: 7 hosts, 4 with trouble; 4 events pending")
    assert chromium.run("return document.querySelectorAll('script, img').length") == 0


def test_the_report_answers_what_an_operator_asks(report: Path, chromium: Browser) -> None:
    chromium.show(report, PHONE)
    text = chromium.driver.find_element(By.TAG_NAME, "body").text
    assert "4 min 10 s until the next one starts" in text.replace("\n", " ")
    assert text.index("Trouble") < text.index("Pending") < text.index("Timeline") < text.index("Hosts")
    assert f"db_0\nRedeploy D2: {FAILED}" in text
    assert "unreachable\nnot reached: No route to host (ssh, port 22)" in text
    assert "approve by web-tier, rule drain: a Reboot waits for the drain" in text
    assert "ok, last good poll at most 2.5 s ago" not in text
    chromium.run("for (const one of document.querySelectorAll('details')) one.open = true")
    assert "ok, last good poll at most 2.5 s ago" in chromium.driver.find_element(By.TAG_NAME, "body").text
    # One card for the event of two hosts, the event that starts first above it.
    cards = [card.text for card in chromium.driver.find_elements(By.CSS_SELECTOR, "article.pending h3")]
    assert cards[:2] == ["Redeploy", "Reboot"]
    first, second = chromium.driver.find_elements(By.CSS_SELECTOR, "article.pending")[:2]
    assert "db_0" in first.text
    assert "drill" in first.text
    assert "web_0" in second.text
    assert "web_1" in second.text


def test_the_timeline_is_to_scale(report: Path, chromium: Browser) -> None:
    for size in (DESKTOP, PHONE):
        chromium.show(report, size)
        chromium.run("for (const one of document.querySelectorAll('details')) one.open = true")
        lane, *_ = chromium.driver.find_elements(By.CSS_SELECTOR, ".lane:has(.m-bad) svg")
        frames = chromium.run(
            """
            const lane = arguments[0].getBoundingClientRect();
            return ["m-good", "m-bad", "now"].map((name) => {
              const box = arguments[0].querySelector("." + name).getBoundingClientRect();
              return [(box.left - lane.left) / lane.width, (box.right - lane.left) / lane.width];
            });
            """,
            lane,
        )
        whole = 68 * 60.0  # from 15:02 to 16:10
        approved, under_way, now = frames
        assert under_way[0] == pytest.approx(180 / whole, abs=0.01)
        assert under_way[1] == pytest.approx(780 / whole, abs=0.01)
        assert approved[0] < under_way[0] < under_way[1] < now[0]
        assert now[0] == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize(("size", "most"), [((1400, 900), 4000), (PHONE, 6000)], ids=["desk", "phone"])
def test_page_of_300_hosts_is_legible_and_short(
    size: tuple[int, int], most: int, chromium: Browser, tmp_path: Path
) -> None:
    written = tmp_path / "fleet.html"
    written.write_text(page(fleets.fleet(300, past=40), AT, "7d"))
    chromium.show(written, size)
    assert int(chromium.run("return document.documentElement.scrollHeight")) < most
    for unfolded in (False, True):
        if unfolded:
            chromium.run("for (const one of document.querySelectorAll('details')) one.open = true")
        assert chromium.overflow() <= 0
        assert chromium.too_wide() == []
        assert chromium.faint() == []
