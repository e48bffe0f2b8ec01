# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The map for somebody who sees it for the first time: axes that separate, cells that name rules, one word, one red."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from forewarn.analysis.report.categories import WORDS
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from tools.fixtures.map_page import cells, choose, compared, detail, focused, verified
from tools.fixtures.policy_files import DIRECTORY, SHIPPED, changed_web_tier
from tools.sites.browser import DESKTOP, PHONE, Browser
from tools.suite.sizes import NAME, SEED, in_turn

pytestmark = pytest.mark.in_turn(3)

# A browser without a graphics card takes seconds to draw each page.
SOME = SHIPPED[SEED % 3 :: 3] if NAME == "small" else SHIPPED

DESK = (1400, 900)
COUNTS = """
name: counts
rule:
  match:
    - {id: several, condition: size(event.Resources) > 3, output: hold}
    - {id: far, condition: "notice > duration('90m')", output: hold}
    - {id: rest, output: approve}
"""
LEFT = """
name: left
rule:
  match:
    - {id: a, condition: "event.DurationInSeconds == 7200 || event.DurationInSeconds < 90", output: approve}
"""
# Red is between purple and orange, and not pale or nearly black: neither the page's colours nor its greys are.
REDS = """
const red = (colour) => {
  const [r, g, b, alpha = 1] = colour.match(/[\\d.]+/g).map(Number);
  const most = Math.max(r, g, b), least = Math.min(r, g, b);
  if (alpha === 0 || most - least < 30 || r !== most) return false;
  const hue = (60 * ((g - b) / (most - least)) + 360) % 360;
  return hue < 20 || hue > 340;
};
const seen = [...document.body.querySelectorAll("*")].filter((one) => one.getClientRects().length);
const found = seen.filter((one) => {
  const style = getComputedStyle(one);
  return [style.backgroundColor, style.color, style.stroke].some((colour) => /^rgb/.test(colour) && red(colour));
});
return [...new Set(found.map((one) => (one.closest("[class*=c-]")?.className.match(/c-[a-z-]+/) ?? ["none"])[0]))];
"""


def tables(chromium: Browser) -> list[str]:
    """Return the heading of each table."""
    return [str(one.text) for one in chromium.driver.find_elements(By.CSS_SELECTOR, "#panels h3")]


def axes(chromium: Browser) -> list[str]:
    """Return the dimensions of rows, columns and tables."""
    found: list[str] = chromium.run(
        """
        const fields = [...document.querySelectorAll("#filters label")];
        return ["Rows", "Columns", "A table for each"].map((name) =>
          fields.find((one) => one.firstChild.textContent === name)?.querySelector("select").selectedOptions[0].text);
        """
    )
    return found


@pytest.fixture(scope="module")
def change(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("change")
    return compared(directory, *changed_web_tier(directory))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("azure-sample", ["EventType", "EventSource", "DurationInSeconds"]),
        ("postgres-patroni", ["EventType", "notice", "DurationInSeconds"]),
        ("spot-worker", ["EventType", "notice", "—"]),
        ("web-tier", ["EventType", "DurationInSeconds", "—"]),
    ],
)
def test_the_axes_separate_every_decision(name: str, expected: list[str], chromium: Browser, tmp_path: Path) -> None:
    chromium.show(verified(tmp_path, DIRECTORY / f"{name}.yml"), DESK)
    assert axes(chromium) == expected
    labels = [label for row in cells(chromium) for label in row]
    assert all(label.count(", by ") == 1 and " or approve" not in label for label in labels), labels
    assert chromium.driver.find_elements(By.CSS_SELECTOR, ".cell.c-mixed") == []


def test_axes_need_not_be_types_or_durations(chromium: Browser, tmp_path: Path) -> None:
    (tmp_path / "counts.yml").write_text(COUNTS)
    chromium.show(verified(tmp_path, tmp_path / "counts.yml"), DESK)
    assert set(axes(chromium)) == {"Number of Resources", "notice", "—"}
    assert len([label for row in cells(chromium) for label in row]) == 3
    assert {label.partition(": ")[2] for row in cells(chromium) for label in row} == {
        "hold, by several",
        "hold, by far",
        "approve, by rest",
    }


def test_what_a_filter_leaves_open_is_an_axis(chromium: Browser, tmp_path: Path) -> None:
    chromium.show(verified(tmp_path, DIRECTORY / "web-tier.yml"), DESK)
    choose(chromium, "EventStatus", "any")
    assert "EventStatus" in axes(chromium)
    assert chromium.driver.find_elements(By.CSS_SELECTOR, ".cell.c-mixed") == []
    started = {label.partition(": ")[2] for row in cells(chromium) for label in row if "EventStatus Started" in label}
    assert started == {"hold, by under-way"}


def test_neighbours_that_are_equal_are_one_cell(chromium: Browser, tmp_path: Path) -> None:
    chromium.show(verified(tmp_path, DIRECTORY / "postgres-patroni.yml"), DESK)
    assert tables(chromium) == ["DurationInSeconds below 3 s", "DurationInSeconds 3 s or more, or unknown"]
    assert [len(row) for row in cells(chromium)] == [1, 2, 2]
    neighbours = chromium.run(
        """
        const cells = [...document.querySelectorAll(".cell")];
        const boxes = cells.map((one) => [one.innerText, one.getBoundingClientRect()]);
        const beside = (one, other) => one.top === other.top && one.bottom === other.bottom
          && other.left > one.right && other.left < one.right + 9;
        const below = (one, other) => one.left === other.left && one.right === other.right
          && other.top > one.bottom && other.top < one.bottom + 9;
        return boxes.flatMap(([text, box]) => boxes.filter(([other, there]) => text === other
          && (beside(box, there) || below(box, there))).map(() => text));
        """
    )
    assert neighbours == []


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_a_cell_names_its_rule_in_full_sight(size: tuple[int, int], chromium: Browser, tmp_path: Path) -> None:
    chromium.show(verified(tmp_path, DIRECTORY / "web-tier.yml"), size)
    assert [one.text for one in chromium.driver.find_elements(By.CSS_SELECTOR, ".cell .by")] == [
        "brief-freeze",
        "drain",
        "drain",
        "preempt, which prepares",
    ]
    cut = chromium.run(
        """
        return [...document.querySelectorAll(".cell")].filter((one) => one.scrollWidth > one.clientWidth + 1
          || one.getBoundingClientRect().right > window.innerWidth).map((one) => one.textContent);
        """
    )
    assert cut == []


def test_no_word_is_broken(change: Path, chromium: Browser, tmp_path: Path) -> None:
    """Every word of a cell or a heading is on one line, or broken where it may be: in pictures they often were not."""
    broken = """
        const range = document.createRange();
        return [...document.querySelectorAll("#panels .cell *, #panels th")].flatMap((one) => [...one.childNodes])
          .filter((one) => one.nodeType === Node.TEXT_NODE).flatMap((one) =>
            [...one.data.matchAll(/[^\\s-]+/g)].filter((word) => {
              range.setStart(one, word.index);
              range.setEnd(one, word.index + word[0].length);
              return new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size > 1;
            }).map((word) => word[0]));
    """
    pages = [change]
    for path in SOME:
        (tmp_path / path.stem).mkdir()
        pages.append(verified(tmp_path / path.stem, path))
    for page in pages:
        for size in (DESK, PHONE):
            chromium.show(page, size)
            assert chromium.run(broken) == [], page


@pytest.mark.parametrize(
    ("policies", "name"), [([DIRECTORY / "observe-only.yml"], "observe-only"), (SHIPPED, "observe-only")]
)
def test_what_is_the_same_everywhere_is_a_sentence(
    policies: list[Path], name: str, chromium: Browser, tmp_path: Path
) -> None:
    chromium.show(verified(tmp_path, *policies), DESK)
    assert cells(chromium) == [[f"Everything is held, by {name}."]]
    assert chromium.driver.find_element(By.CSS_SELECTOR, ".cell").text == f"Everything is held, by {name}."
    assert "under-way" in detail(chromium)
    assert "it depends" not in detail(chromium)
    assert chromium.driver.find_element(By.ID, "notes").text == ""


def test_a_change_of_nothing_is_a_sentence(chromium: Browser, tmp_path: Path) -> None:
    chromium.show(compared(tmp_path, DIRECTORY / "spot-worker.yml", DIRECTORY / "spot-worker.yml"), DESK)
    assert cells(chromium) == [["Nothing changes."]]


def test_numbers_have_the_units_of_people(chromium: Browser, tmp_path: Path) -> None:
    (tmp_path / "left.yml").write_text(LEFT)
    chromium.show(verified(tmp_path, tmp_path / "left.yml"), DESK)
    assert [label for row in cells(chromium) for label in row] == [
        "DurationInSeconds below 1 min 30 s or unknown: approve, by a",
        "DurationInSeconds 1 min 30 s to below 2 h: hold, no rule applies",
        "DurationInSeconds 2 h: approve, by a",
        "DurationInSeconds above 2 h: hold, no rule applies",
    ]
    (tmp_path / "counts.yml").write_text(COUNTS)
    chromium.show(verified(tmp_path, tmp_path / "counts.yml"), DESK)
    heads = " ".join(str(one.text) for one in chromium.driver.find_elements(By.CSS_SELECTOR, "#panels th"))
    assert "up to 1 h 30 min" in heads.replace("\u00a0", " ")
    assert "above 1 h 30 min" in heads.replace("\u00a0", " ")
    assert not re.search(r"\d\.\.|\d+ ns|\d{4,} s", heads)


def test_longer_intervals_are_wider(change: Path, chromium: Browser) -> None:
    for size in (DESK, PHONE):
        chromium.show(change, size)
        heads = chromium.driver.find_elements(By.CSS_SELECTOR, "#panels thead tr:last-child th:not(.corner)")
        widths = {str(one.text).replace("\u00a0", " ").replace("\n", " "): one.size["width"] for one in heads}
        assert list(widths) == ["below 9 s or unknown", "9 s to below 15 s", "15 s or more"]
        below, between, above = widths.values()
        assert between < below < above


def test_red_is_for_one_thing(change: Path, chromium: Browser, tmp_path: Path) -> None:
    """It is the new approval of a change, and the error of a policy; nothing else, in light and in dark."""
    broken = tmp_path / "broken.yml"
    broken.write_text(LEFT + "    - {id: b, condition: event.DurationInSeconds == 30, output: hold}\n")
    for page, only in [(change, ["c-newly-approved"]), (verified(tmp_path, broken), ["c-error"])]:
        for dark in (False, True):
            chromium.show(page, DESK, dark=dark)
            chromium.run("for (const one of document.querySelectorAll('details')) one.open = true")
            assert chromium.run(REDS) == only
    for path in SOME:
        chromium.show(verified(tmp_path, path), DESK)
        assert chromium.run(REDS) == []


def test_cell_kinds_differ_in_colour_pattern_and_sign(change: Path, chromium: Browser) -> None:
    looks = """
        return [...document.querySelectorAll(".cell")].map((one) => {
          const style = getComputedStyle(one);
          return [one.querySelector(".word").textContent, style.backgroundColor, style.backgroundImage !== "none",
            one.querySelector("path").getAttribute("d")];
        });
    """
    for dark in (False, True):
        chromium.show(change, DESK, dark=dark)
        found = {word: look for word, *look in chromium.run(looks)}
        assert set(found) == {"newly approved", "preparation lost", "no longer approved", "no change"}
        for part in (0, 1, 2):  # its colour, its pattern, its sign
            assert found["newly approved"][part] != found["preparation lost"][part]
        assert len({look[0] for look in found.values()}) == len({look[2] for look in found.values()}) == 4


@pytest.mark.in_turn(1)  # in_turn takes some of its cases
@pytest.mark.parametrize("which", in_turn([*(path.stem for path in SHIPPED), "all", "change"], 2))
def test_a_decision_has_one_word(which: str, change: Path, chromium: Browser, tmp_path: Path) -> None:
    if which == "change":
        chromium.show(change, DESK)
    else:
        chromium.show(verified(tmp_path, *(SHIPPED if which == "all" else [DIRECTORY / f"{which}.yml"])), DESK)
        if which == "all":
            choose(chromium, "Show", "web-tier")
    found: list[tuple[str, str]] = chromium.run(
        """
        for (const cell of document.querySelectorAll(".cell")) cell.focus();
        for (const one of document.querySelectorAll("details")) one.open = true;
        const every = [...document.querySelectorAll(".badge, .cell:not(.c-mixed):not(.sentence), .part")];
        return every.filter((one) => /c-/.test(one.className)).map((one) =>
          [one.className.match(/c-([a-z-]+)/)[1], (one.querySelector(".word") ?? one).textContent.trim()]);
        """
    )
    words = {category: word for category, (word, _sentence) in WORDS.items()}
    severities = {"note", "warning", "error", "suppressed"}
    said = {(category, text) for category, text in found if category not in severities and category != "mixed"}
    assert said
    assert {words[category] for category, _text in said} == {text for _category, text in said}
    assert all(words[category] == text for category, text in said)


def test_the_map_is_used_by_keyboard_alone(change: Path, chromium: Browser) -> None:
    chromium.show(change, PHONE)

    def tab() -> str:
        ActionChains(chromium.driver).send_keys(Keys.TAB).perform()
        script = "const one = document.activeElement; return one.getAttribute('aria-label') || one.textContent"
        return str(chromium.run(script))

    assert tab().startswith("What is shown")
    assert tab() == "Freeze, DurationInSeconds 9 s to below 15 s: preparation lost, by brief-freeze"
    assert tab().startswith("EventStatus Started")  # one cell is a stop, however many there are
    chromium.show(change, DESKTOP)
    button = chromium.driver.find_element(By.CSS_SELECTOR, "#notes button")
    assert button.text.replace("\n", " ").startswith("EventStatus Started: no change")
    button.send_keys(Keys.ENTER)
    assert chromium.run("return document.activeElement.textContent").startswith("What is shown: EventStatus Started")
    assert cells(chromium) == [["no change"]]
    chromium.run("document.querySelector('.cell').focus()")
    assert focused(chromium) == "no change"
