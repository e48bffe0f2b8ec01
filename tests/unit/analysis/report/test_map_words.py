# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The words of the map: numbers with units, what a change is, and a word, a colour and a sign for everything in it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from forewarn.analysis.diff.diff import compare
from forewarn.analysis.report import __file__ as report
from forewarn.analysis.report.categories import WORDS, change_category
from forewarn.analysis.report.dimension_words import duration_words, what_matters
from forewarn.analysis.report.page import difference_page, verification_page
from forewarn.analysis.report.table import difference_table, verification_table
from forewarn.analysis.verify.verify import verify
from forewarn.compiler.policies import load_policies
from forewarn.pages import __file__ as pages
from forewarn.policy.functions.timevalues import SECOND
from hypothesis import given
from hypothesis import strategies as st
from tools.fixtures.policy_files import DIRECTORY, HEAD, SHIPPED, changed_web_tier, loaded

REPORT = Path(report).parent
SIZES = {"day": 86400, "days": 86400, "h": 3600, "min": 60, "s": 1}


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (9, "9 s"),
        (60, "1 min"),
        (90, "1 min 30 s"),
        (5400, "1 h 30 min"),
        (86400, "1 day"),
        (7 * 86400, "7 days"),
        (-120, "-2 min"),
        (0.25, "0.25 s"),
        (60.000000001, "1 min 0.000000001 s"),
    ],
)
def test_a_duration_has_the_units_of_people(seconds: float, words: str) -> None:
    assert duration_words(round(seconds * SECOND)) == words


@given(st.integers(0, 10**19))
def test_no_duration_loses_anything(value: int) -> None:
    total = 0
    for number, unit in re.findall(r"([\d.]+) (\w+)", duration_words(value)):
        whole, _, rest = number.partition(".")
        total += int(whole) * SIZES[unit] * SECOND + int(rest.ljust(9, "0"))
    assert total == value


def bounds(directory: Path, condition: str, name: str, head: str = "") -> list[tuple[Any, Any]]:
    """Return the bounds of the intervals of a dimension that a condition makes."""
    text = head + HEAD + f"    - {{id: a, condition: {condition!r}, output: approve}}\n"
    dims = verification_table(loaded(directory, text))["dims"]
    (found,) = [one for one in dims if one["name"] == name]
    return [(one["low"], one["high"]) for one in found["values"] if "width" in one]


@pytest.mark.parametrize(
    ("condition", "name", "expected"),
    [
        ("event.DurationInSeconds < 9", "event.DurationInSeconds", [(None, ["9 s", False]), (["9 s", True], None)]),
        ("event.DurationInSeconds <= 9", "event.DurationInSeconds", [(None, ["10 s", False]), (["10 s", True], None)]),
        (
            "event.DurationInSeconds <= 300",
            "event.DurationInSeconds",
            [(None, ["5 min", True]), (["5 min", False], None)],
        ),
        ("notice < duration('90s')", "notice", [(None, ["1 min 30 s", False]), (["1 min 30 s", True], None)]),
        ("notice <= duration('2h')", "notice", [(None, ["2 h", True]), (["2 h", False], None)]),
        (
            "age == duration('1h')",
            "age",
            [(None, ["1 h", False]), (["1 h", True], ["1 h", True]), (["1 h", False], None)],
        ),
        ("size(event.Resources) > 3", "count", [(["1", True], ["3", True]), (["4", True], None)]),
        (
            "now < timestamp('2027-01-01T00:00:00Z')",
            "now",
            [(None, ["2027-01-01T00:00:00Z", False]), (["2027-01-01T00:00:00Z", True], None)],
        ),
    ],
)
def test_intervals_read_as_policies_write_them(condition: str, name: str, expected: Any, tmp_path: Path) -> None:
    assert bounds(tmp_path, condition, name) == expected


def test_interval_widths_grow_with_their_length(tmp_path: Path) -> None:
    text = HEAD + "".join(
        f"    - {{id: r{cut}, condition: event.DurationInSeconds < {cut}, output: approve}}\n"
        for cut in (2, 10, 1000, 100_000_000)
    )
    dims = verification_table(loaded(tmp_path, text))["dims"]
    (found,) = [one for one in dims if one["name"] == "event.DurationInSeconds"]
    widths = [one["width"] for one in found["values"] if "width" in one]
    assert widths == sorted(widths)
    assert widths[0] < widths[2] < widths[-1]


@pytest.mark.parametrize(
    ("before", "after", "hooks", "effect", "expected"),
    [
        ("hold", "approve", ((), ()), "more-permissive", "newly-approved"),
        ("uncovered", "prepared", ((), ("a",)), "more-permissive", "newly-approved"),
        ("hold", "approve", (("a",), ()), "more-permissive", "newly-approved"),
        ("prepared", "in-doubt", (("a",), ()), "less-permissive", "no-longer-approved"),
        ("prepared", "approve", (("a",), ()), "more-permissive", "preparation-lost"),
        ("prepared", "prepared", (("a", "b"), ("a",)), "incomparable", "preparation-lost"),
        ("prepared", "prepared", (("a", "a"), ("a",)), "more-permissive", "preparation-lost"),
        ("hold", "hold", (("a",), ()), "alike", "preparation-lost"),
        ("approve", "prepared", ((), ("a",)), "less-permissive", "preparation-added"),
        ("prepared", "prepared", (("a",), ("b",)), "incomparable", "incomparable"),
        ("prepared", "prepared", (("a",), ("a", "b")), "incomparable", "incomparable"),
        ("approve", "approve", ((), ()), "more-permissive", "more-permissive"),
        ("hold", "uncovered", ((), ()), "less-permissive", "less-permissive"),
        ("hold", "hold", ((), ()), "alike", "alike"),
        ("hold", "hold", ((), ()), "same", "same"),
    ],
)
def test_what_a_change_is(before: str, after: str, hooks: Any, effect: str, expected: str) -> None:
    assert change_category(effect, before, after, hooks) == expected


def test_held_event_without_its_preparation_has_lost_it(tmp_path: Path) -> None:
    text = HEAD + "    - {id: a, output: hold, prepare: [{run: [/bin/x]}], notify: [{run: [/bin/y]}]}\n"
    old = loaded(tmp_path, text)
    new = loaded(tmp_path, text.replace("prepare: [{run: [/bin/x]}], ", ""))
    leaves = difference_table(old, new)["views"][0]["leaves"]
    assert {leaf["category"] for leaf in leaves if leaf["usual"]} == {"preparation-lost"}


def test_each_word_has_one_colour_and_sign() -> None:
    words = [word for word, _sentence in WORDS.values()]
    assert len(set(words)) == len(words)
    style = (Path(pages).parent / "style.css").read_text()
    script = (REPORT / "page_data.js").read_text()
    signs = re.findall(r'^  "?([a-z-]+)"?: "(M[^"]+)",$', script, re.MULTILINE)
    assert {name for name, _path in signs} == {*WORDS, "mixed"}
    assert len({path for _name, path in signs}) == len(signs)
    coloured = re.findall(r"^((?:\.c-[a-z-]+(?:, )?)+) \{ --fill: var\(--([a-z]+)\)", style, re.MULTILINE)
    names = [name for selectors, _fill in coloured for name in re.findall(r"\.c-([a-z-]+)", selectors)]
    assert len(set(names)) == len(names)
    assert set(WORDS) < set(names)
    (red,) = [selectors for selectors, fill in coloured if fill == "alarm"]
    assert red == ".c-error, .c-newly-approved"  # no page has both


def test_decisions_are_worded_as_on_the_map(tmp_path: Path) -> None:
    artifact = load_policies(SHIPPED)
    page = verification_page(artifact, verify(artifact), [str(path) for path in SHIPPED])
    badges = set(re.findall(r'<span class="badge c-([a-z-]+)">([^<]+)</span>', page))
    assert {(name, word) for name, word in badges if name in WORDS} == {
        (name, WORDS[name][0]) for name in ("approve", "prepared", "hold")
    }
    assert not re.search(r"[\d,]+ classes", page)
    old, new = (load_policies([path]) for path in map(Path, changed_web_tier(tmp_path)))
    page = difference_page(old, new, compare(old, new), ("old", "new"))
    assert "Before: approve once prepared by web-tier/drain" in page
    assert "Before: hold by web-tier/preempt" in page
    assert not re.search(r"[\d,]+ classes", page)
    for name in ("newly-approved", "preparation-lost", "no-longer-approved"):
        assert f'<span class="badge c-{name}">{WORDS[name][0]}</span>' in page


def test_relevant_inputs_are_named() -> None:
    dims = verification_table(load_policies([DIRECTORY / "postgres-patroni.yml"]))["dims"]
    assert what_matters(dims) == [
        "EventType",
        "EventStatus",
        "DurationInSeconds",
        "notice",
        "the VM's place in Resources",
    ]
    odd = [*dims, {"name": "opaque:1", "subject": "x", "opaque": True, "values": []}]
    assert what_matters(odd)[-1] == "1 expression that forewarn does not understand"
