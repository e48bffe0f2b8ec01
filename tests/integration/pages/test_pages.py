# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pages in a real browser: keys, taps, colours, width, and silence: no request, no complaint."""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import pytest
from forewarn.compiler.policies import load_policies
from forewarn.events import Vm, parse_document
from forewarn.policy.decision import Facts
from forewarn.policy.engine import PolicySet
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from tools.fixtures.map_page import cells, choose, compared, detail, focused, verified
from tools.sites.browser import DESKTOP, PHONE, Browser, browser
from tools.sites.waiting import wait_until
from tools.suite.sizes import in_turn

pytestmark = pytest.mark.in_turn(3)

POLICIES = Path(__file__).parents[3] / "policies"
SIZES = pytest.mark.parametrize(
    ("size", "dark"),
    [(DESKTOP, False), (DESKTOP, True), (PHONE, False), (PHONE, True)],
    ids=["desk-light", "desk-dark", "phone-light", "phone-dark"],
)
EVIL = """
name: evil
rule:
  match:
    - id: a
      condition: event.EventType == 'Freeze' && event.DurationInSeconds >= 0 && event.DurationInSeconds < 9
      output: approve
      explanation: "'</script><img src=\\"http://example.com/\\" onerror=\\"document.title=1\\"><b>x</b>'"
      prepare: [{run: [/bin/x, "<b>x</b>"]}]
    - {id: b, condition: "vm.tags['<b>x</b>'] == '<b>y</b>'", output: hold}
"""

ROLES = """
name: roles
rule:
  match:
    - {id: brief, condition: "event.EventType == 'Freeze' && event.DurationInSeconds in [0, 1, 2]", output: approve}
    - id: replica
      condition: has(vm.tags.role) && vm.tags.role == 'replica' && size(event.Resources) == 1
      output: approve
    - id: primary
      condition: has(vm.tags.role) && vm.tags.role == 'primary'
      rule:
        match:
          - {id: too-late, condition: "notice < duration('2m')", output: hold}
          - {id: fail-over, output: approve, prepare: [{run: [/usr/local/bin/failover]}]}
    - {id: otherwise, output: hold}
"""


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return verified(tmp_path_factory.mktemp("web"), POLICIES / "web-tier.yml")


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return verified(tmp_path_factory.mktemp("every"), POLICIES)


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("changed")
    text = (POLICIES / "web-tier.yml").read_text().replace("default: 9", "default: 15")
    (directory / "web-tier.yml").write_text(text.replace('"Redeploy", "Terminate"', '"Redeploy"'))
    return compared(directory, POLICIES / "web-tier.yml", directory / "web-tier.yml")


@SIZES
@pytest.mark.in_turn(1)  # in_turn takes some of its cases
@pytest.mark.parametrize("which", in_turn(["web", "every", "changed"]))
def test_a_page_fits_and_is_silent(
    which: str, size: tuple[int, int], dark: bool, chromium: Browser, request: pytest.FixtureRequest
) -> None:
    page: Path = request.getfixturevalue(which)
    chromium.show(page, size, dark=dark)
    assert cells(chromium)
    assert chromium.overflow() <= 0
    assert chromium.too_wide() == []
    chromium.driver.find_elements(By.CSS_SELECTOR, ".cell")[0].click()
    assert chromium.overflow() <= 0
    chromium.run("for (const one of document.querySelectorAll('details')) one.open = true")
    assert chromium.faint() == []
    colour = str(chromium.run("return getComputedStyle(document.body).backgroundColor"))
    brightness = sum(int(part) for part in colour.strip("rgb()").split(","))
    assert (brightness < 200) == dark
    assert chromium.complaints(page) == []


def test_the_map_says_what_the_policy_says(web: Path, chromium: Browser) -> None:
    chromium.show(web)
    assert cells(chromium) == [
        [
            "Freeze, DurationInSeconds below 9 s: approve, by brief-freeze",
            "Freeze, Reboot, Redeploy or Terminate, DurationInSeconds 9 s or more, or unknown: "
            "approve once prepared, by drain",
        ],
        ["Reboot, Redeploy or Terminate, DurationInSeconds below 9 s: approve once prepared, by drain"],
        ["Preempt, every DurationInSeconds: hold, by preempt, which prepares"],
    ]
    assert "What is shown: EventStatus Scheduled; This VM leads" in chromium.driver.find_element(By.ID, "controls").text
    notes = chromium.driver.find_element(By.ID, "notes")
    assert notes.text.replace("\n", " ").replace("  ", " ") == (
        "EventStatus Started: hold by under-way This VM is not affected: hold by not-mine "
        "Once prepared, an event of several VMs waits until NotBefore."
    )
    notes.find_element(By.TAG_NAME, "button").click()
    assert cells(chromium) == [["hold, by under-way"]]
    assert focused(chromium) is not None
    assert "What is shown: EventStatus Started" in chromium.driver.find_element(By.ID, "controls").text
    choose(chromium, "EventStatus", "any")
    for axis in ("Rows", "Columns", "A table for each"):
        choose(chromium, axis, "—")
    chromium.run("document.querySelector('.cell').focus()")
    assert "it depends\non EventType, EventStatus and DurationInSeconds." in detail(chromium)
    assert "by under-way\nwhen EventStatus = Started" in detail(chromium)


def test_arrow_keys_move_between_cells(web: Path, every: Path, chromium: Browser) -> None:
    chromium.show(web)
    rows = cells(chromium)
    chromium.run("document.querySelector('.cell').focus()")

    def press(*keys: str) -> str:
        ActionChains(chromium.driver).send_keys(*keys).perform()
        stops = chromium.run("return document.querySelectorAll('.cell[tabindex=\"0\"]').length")
        assert stops == 1
        return focused(chromium)

    brief, prepared = rows[0]
    assert focused(chromium) == brief
    assert press(Keys.ARROW_RIGHT) == prepared
    assert press(Keys.ARROW_DOWN) == rows[2][0]  # below both rows that it covers, and over all columns
    assert press(Keys.ARROW_UP) == prepared  # not the cell on the left
    assert press(Keys.ARROW_LEFT) == rows[1][0]  # in the row in which it came into that cell
    assert press(Keys.ARROW_UP) == brief
    assert press(Keys.ARROW_UP) == brief  # the edge
    assert press(Keys.ARROW_LEFT) == brief
    assert press(Keys.ARROW_DOWN) == rows[1][0]
    assert press(Keys.END) == prepared
    assert press(Keys.HOME) == rows[1][0]
    ActionChains(chromium.driver).key_down(Keys.CONTROL).send_keys(Keys.HOME).key_up(Keys.CONTROL).perform()
    assert focused(chromium) == brief
    assert "Freeze" in detail(chromium)
    assert press(Keys.ENTER) == "The chosen cell"
    assert press(Keys.ESCAPE) == brief
    chromium.show(every)
    assert len(cells(chromium)) == 1
    choose(chromium, "Show", "postgres-patroni")
    below, above = chromium.driver.find_elements(By.CSS_SELECTOR, "[role=grid]")
    chromium.run("arguments[0].querySelector('.cell').focus()", below)
    (first,) = cells(chromium)[0]
    assert focused(chromium) == first
    assert "DurationInSeconds 3 s or more, or unknown" in press(Keys.ARROW_RIGHT)  # into the table beside it
    assert press(Keys.ARROW_LEFT) == first
    assert above.find_elements(By.CSS_SELECTOR, ".cell")
    roles = chromium.run("return [...document.querySelectorAll('[role]')].map((one) => one.getAttribute('role'))")
    assert {"grid", "row", "gridcell", "rowheader", "columnheader"} <= set(roles)


class ShownDecision(NamedTuple):
    """One decision that the page shows for a cell: what, by which rule, why, and for which event."""

    decision: str
    by: str
    reason: str
    event: str
    facts: str


def shown(chromium: Browser) -> list[ShownDecision]:
    """Choose every cell, and return everything that is shown for it."""
    found = chromium.run(
        """
        const texts = [];
        for (const cell of document.querySelectorAll(".cell")) {
          cell.focus();
          for (const block of document.querySelectorAll("#detail .outcome")) {
            const text = (selector) => block.querySelector(selector)?.textContent ?? "";
            const wanted = [".decision .badge", ".decision a", ".reason", "pre", "pre + .fact"];
            texts.push(wanted.map(text));
          }
        }
        return texts;
        """
    )
    return [ShownDecision(*one) for one in found]


@pytest.mark.parametrize("name", ["azure-sample", "postgres-patroni", "observe-only", "spot-worker", "web-tier"])
def test_examples_on_the_page_match_the_engine(name: str, chromium: Browser, tmp_path: Path) -> None:
    policy = POLICIES / f"{name}.yml"
    chromium.show(verified(tmp_path, policy))
    artifact = load_policies([policy])
    params = {entry["name"]: entry["default"] for data in artifact.data["policies"] for entry in data["params"]}
    engine = PolicySet(artifact, params)
    settings: list[str] = chromium.run(
        """
        const selects = [...document.querySelectorAll("#filters select")].slice(3);
        return selects.map((one) => one.parentElement.firstChild.textContent);
        """
    )
    texts = shown(chromium)
    for label in settings:
        choose(chromium, label, "any")
        texts += shown(chromium)
        for axis in ("Rows", "Columns", "A table for each"):
            choose(chromium, axis, "—")
        texts += shown(chromium)
    chromium.run("document.getElementById('unusual').click()")
    texts += shown(chromium)
    assert len(set(texts)) > (2 if name == "observe-only" else 8)
    for one in set(texts):
        facts = dict(re.findall(r"(at|first seen|VM:|tag) (?:name )?([^;,]+)", one.facts))
        known = None if facts["VM:"] == "nothing known" or facts["VM:"].startswith("tag ") else facts["VM:"]
        tags = dict(tag.split("=") for tag in re.findall(r"tag (\w+=\w+)", one.facts)) or None
        document = parse_document(json.dumps({"DocumentIncarnation": 1, "Events": [json.loads(one.event)]}))
        now = datetime.fromisoformat(facts["at"].replace("Z", "+00:00"))
        first = facts["first seen"] if "first seen" in facts else facts["at"]
        first_seen = datetime.fromisoformat(first.replace("Z", "+00:00"))
        seen = {event.key: first_seen for event in document.events}
        (decision,) = engine.decide(document, Facts(now, Vm(name=known, tags=tags), seen))
        assert one.decision.startswith(decision.output), one
        assert (one.decision == "approve once prepared") == (decision.output == "approve" and bool(decision.prepare))
        assert one.by == (decision.rule or ""), one
        assert one.reason == decision.reason, one


def test_tap_shows_a_closable_panel_with_the_reason(web: Path, chromium: Browser) -> None:
    chromium.show(web, PHONE)
    panel = chromium.driver.find_element(By.ID, "detail")
    assert not panel.is_displayed()
    chromium.tap(chromium.driver.find_elements(By.CSS_SELECTOR, ".cell")[0])
    assert panel.is_displayed()
    assert "brief-freeze" in panel.text
    assert "a freeze of 5 s goes unnoticed" in panel.text
    covered = chromium.run(
        """
        const cell = document.activeElement.getBoundingClientRect();
        return cell.bottom > document.getElementById("detail").getBoundingClientRect().top;
        """
    )
    assert not covered
    chromium.tap(panel.find_element(By.CSS_SELECTOR, ".close"))
    assert not panel.is_displayed()


def test_the_mouse_only_looks(web: Path, chromium: Browser) -> None:
    chromium.show(web)
    first, second, *_ = chromium.driver.find_elements(By.CSS_SELECTOR, ".cell")
    first.click()
    ActionChains(chromium.driver).move_to_element(second).perform()
    assert "by drain" in detail(chromium)
    ActionChains(chromium.driver).move_to_element(chromium.driver.find_element(By.TAG_NAME, "h1")).perform()
    assert "by brief-freeze" in detail(chromium)


def test_a_mixed_cell_says_what_splits_it(chromium: Browser, tmp_path: Path) -> None:
    policy = tmp_path / "roles.yml"
    policy.write_text(ROLES)
    chromium.show(verified(tmp_path, policy, POLICIES / "azure-sample.yml"))
    choose(chromium, "Show", "roles")
    for axis in ("Rows", "Columns", "A table for each"):
        choose(chromium, axis, "—")
    choose(chromium, "Rows", "EventType")
    redeploy = next(number for number, row in enumerate(cells(chromium)) if "Redeploy" in row[0])
    chromium.run("document.querySelectorAll('.cell')[arguments[0]].focus()", redeploy)
    shown = detail(chromium).replace("\n", " ")
    assert "it depends on Number of Resources, notice and vm.tags.role." in shown
    assert "when number of Resources = 1 and vm.tags.role = replica" in shown
    choose(chromium, "vm.tags.role", "replica")
    choose(chromium, "Number of Resources", "1")
    assert cells(chromium)[-1][0].endswith(": approve, by roles/replica")


def test_link_unfolds_the_list_of_its_rule(every: Path, chromium: Browser) -> None:
    chromium.show(every)
    link = chromium.driver.find_element(By.CSS_SELECTOR, "main a[href^='#rule-0-4-']")
    rule = chromium.driver.find_element(By.ID, str(link.get_dom_attribute("href"))[1:])
    assert not rule.is_displayed()
    chromium.run("arguments[0].click()", link)
    wait_until(rule.is_displayed, 5)


def test_a_difference_begins_at_what_changes(changed: Path, chromium: Browser) -> None:
    chromium.show(changed)
    assert cells(chromium) == [
        [
            "Freeze, Reboot, Redeploy or Preempt, DurationInSeconds below 9 s or unknown: no change",
            "Freeze, DurationInSeconds 9 s to below 15 s: preparation lost, by brief-freeze",
            "Freeze, Reboot, Redeploy or Preempt, DurationInSeconds 15 s or more: no change",
        ],
        ["Reboot, Redeploy or Preempt, DurationInSeconds 9 s to below 15 s: no change"],
        ["Terminate, every DurationInSeconds: no longer approved"],
    ]
    shown = detail(chromium)
    assert "Freeze · DurationInSeconds 9 s to below 15 s" in shown
    assert "drained before the Freeze" in shown
    assert "a freeze of 9 s goes unnoticed" in shown


def test_what_is_not_understood_is_said(chromium: Browser, tmp_path: Path) -> None:
    names = [f"'vm{number}' in event.Resources" for number in range(9)]
    listed = " || ".join(["size(event.Resources) > 20", *names])
    (tmp_path / "odd.yml").write_text(
        "name: odd\nrule:\n  match:\n"
        f'    - {{id: many, condition: "{listed}", output: hold}}\n'
        "    - {id: odd, condition: \"event.EventId.matches('^A')\", output: approve}\n"
        "    - {id: rest, output: hold}\n"
    )
    page = verified(tmp_path, tmp_path / "odd.yml")
    chromium.show(page)
    for axis in ("Rows", "Columns", "A table for each"):
        choose(chromium, axis, "—")
    chromium.run("document.querySelector('.cell').focus()")
    shown = detail(chromium)
    assert "it depends" in shown
    assert "(event.EventId.matches('^A')) is true" in shown
    assert "Not understood, so it may be either: event.EventId.matches('^A')" in shown
    assert "Example event" not in shown  # of so many names there are too many
    assert chromium.complaints(page) == []


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desk", "phone"])
def test_a_wide_table_scrolls_by_itself(size: tuple[int, int], chromium: Browser, tmp_path: Path) -> None:
    freeze = "event.EventType == 'Freeze' && event.DurationInSeconds"
    rules = "".join(
        f'    - {{id: r{seconds}, condition: "{freeze} == {seconds}", output: {output}}}\n'
        for seconds, output in zip(range(0, 90, 3), ["approve", "hold"] * 15, strict=True)
    )
    (tmp_path / "wide.yml").write_text(f"name: wide\nrule:\n  match:\n{rules}")
    page = verified(tmp_path, tmp_path / "wide.yml")
    chromium.show(page, size)
    assert len(cells(chromium)[0]) == 60  # what is unknown is decided as what is longest
    assert chromium.overflow() <= 0
    assert chromium.too_wide() == []
    chromium.run("document.querySelector('.cell').focus()")
    ActionChains(chromium.driver).send_keys(Keys.END).perform()
    seen = chromium.run(
        """
        const cell = document.activeElement.getBoundingClientRect();
        const head = document.activeElement.parentElement.cells[0].getBoundingClientRect();
        return [cell.left >= head.right, cell.right <= window.innerWidth];
        """
    )
    assert seen == [True, True]
    ActionChains(chromium.driver).send_keys(*[Keys.ARROW_LEFT] * 40).perform()
    assert chromium.run(
        """
        const cell = document.activeElement.getBoundingClientRect();
        return cell.left >= document.activeElement.parentElement.cells[0].getBoundingClientRect().right - 4;
        """
    )
    assert chromium.complaints(page) == []


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desk", "phone"])
def test_texts_of_a_policy_stay_texts(size: tuple[int, int], chromium: Browser, tmp_path: Path) -> None:
    (tmp_path / "evil.yml").write_text(EVIL)
    page = verified(tmp_path, tmp_path / "evil.yml")
    chromium.show(page, size)
    for element in chromium.driver.find_elements(By.CSS_SELECTOR, ".cell"):
        chromium.run("arguments[0].focus()", element)
    assert "<img" in chromium.run("return document.body.textContent")
    assert chromium.run("return document.querySelectorAll('img, #detail b, #panels b').length") == 0
    assert chromium.overflow() <= 0
    assert chromium.complaints(page) == []
    chromium.run(
        "document.head.append(Object.assign(document.createElement('script'), {textContent: 'window.ran = 1'}))"
    )
    assert chromium.run("return window.ran") is None  # the page's own policy refuses any other script


@pytest.mark.parametrize(("required", "outcome"), [("", "Skipped"), ("hosts", "Skipped"), ("hosts programs", "Failed")])
def test_a_missing_browser_is_no_excuse_in_ci(required: str, outcome: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOREWARN_REQUIRED", required)
    monkeypatch.setattr("tools.sites.browser.shutil.which", lambda name: None)
    with (
        pytest.raises((pytest.skip.Exception, pytest.fail.Exception), match="there is no chromium") as raised,
        browser(),
    ):
        pass
    assert raised.typename == outcome
