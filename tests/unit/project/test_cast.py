# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The picture of the demo: it shows each line when the terminal did, in order, and the end where nothing moves."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

SVG = "{http://www.w3.org/2000/svg}"
# What XML can hold, and no terminal would take for a command.
TEXTS = st.text(st.characters(exclude_categories=("Cc", "Cs", "Cn"), exclude_characters="\u2028\u2029"), max_size=12)
CODES = st.sampled_from(["", "0", "1", "2", "31", "32", "33", "34", "36", "1;31"])
STYLED = st.lists(st.tuples(CODES, TEXTS), max_size=3).map(
    lambda parts: "".join(f"\x1b[{code}m{text}\x1b[0m" for code, text in parts)
)
# Pauses as long as a frame at least, or none: what the percentages of keyframes can tell apart.
PAUSES = st.one_of(st.just(0.0), st.floats(0.1, 5))


@pytest.fixture(scope="module")
def cast(repository: Path) -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(repository / "demo"))
        import cast as module

        yield module


@pytest.fixture(scope="module")
def terminal_svg(cast: ModuleType) -> ModuleType:
    return sys.modules["terminal_svg"]


def places(svg: str, name: str, seconds: float) -> list[tuple[float, int]]:
    """Return the keyframes of an animation: seconds, pixels."""
    found = re.search(rf"@keyframes {name} {{ (.*) }}", svg)
    assert found is not None
    steps = re.findall(r"([\d.]+)%{transform:translateY\((-?\d+)px\)}", found[1])
    assert steps[0][0] == "0.00"
    return [(float(percent) / 100 * seconds, int(place)) for percent, place in steps]


def at(steps: list[tuple[float, int]], second: float) -> int:
    return [place for begin, place in steps if begin <= second][-1]


@given(st.lists(st.tuples(PAUSES, STYLED), min_size=1, max_size=60))
def test_each_line_is_seen_from_its_second_on(terminal_svg: ModuleType, script: list[tuple[float, str]]) -> None:
    lines, now = [], 0.0
    for pause, text in script:
        now += pause
        lines.append(terminal_svg.Line(now, text))
    svg = terminal_svg.draw(lines, "a <title>", "what & why")
    root = ElementTree.fromstring(svg)
    group = next(one for one in root.iter(f"{SVG}g") if one.get("class") == "lines")
    drawn = {int(one.get("y", "")): "".join(one.itertext()) for one in group.iter(f"{SVG}text")}
    (cover,) = (one for one in group if one.get("class") == "cover")
    covers, scrolls = (places(svg, name, now + terminal_svg.LAST_PAUSE) for name in ("cover", "scroll"))
    height, top = terminal_svg.LINE_HEIGHT, int(cover.get("y", ""))
    for number, line in enumerate(lines, 1):
        after = lines[number].at if number < len(lines) else now + terminal_svg.LAST_PAUSE
        if after > line.at:
            middle = (line.at + after) / 2
            seen = [y for y in drawn if y < top + at(covers, middle)]
            assert [drawn[y] for y in seen] == [one.plain for one in lines[:number] if one.text]
            in_window = min(number, terminal_svg.ROWS)
            assert top + at(scrolls, middle) + number * height == top + in_window * height
            assert all((y - top) % height == 0 for y in seen)
    # Where nothing moves, everything is uncovered, and the last lines are in the window.
    still = re.findall(r"\.(cover|lines) { transform: translateY\((-?\d+)px\) }", svg)
    assert still == [("cover", str(covers[-1][1])), ("lines", str(scrolls[-1][1]))]


def test_colours_become_classes(terminal_svg: ModuleType) -> None:
    svg = terminal_svg.draw([terminal_svg.Line(0, "a \x1b[1;31mb < c\x1b[0m \x1b[32md")], "", "")
    assert 'a <tspan class="b r">b &lt; c</tspan> <tspan class="g">d</tspan></text>' in svg


def test_a_terminal_is_recorded(cast: ModuleType) -> None:
    program = "import os, sys; print('\\x1b[32mé\\x1b[0m', sys.stdout.isatty()); print(os.get_terminal_size().columns)"
    first, second = cast.record([sys.executable, "-c", program])
    assert (first.text, first.plain, second.text) == ("\x1b[32mé\x1b[0m True", "é True", "100")
    assert 0 < first.at <= second.at


def test_a_demo_that_fails_leaves_the_picture(
    cast: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "demo.py").write_text("print('no emulator'); raise SystemExit(3)")
    monkeypatch.setattr(cast, "__file__", str(tmp_path / "cast.py"))
    assert cast.main(tmp_path / "demo.svg") == 1
    assert not (tmp_path / "demo.svg").exists()
    assert capsys.readouterr().err.endswith("demo.py ended with 3, after\nno emulator\n")


def lines_of(terminal_svg: ModuleType, *texts: str) -> list[tuple[float, str]]:
    return [terminal_svg.Line(float(number), text) for number, text in enumerate(texts)]


def test_dots_stand_for_what_is_left_out(
    cast: ModuleType, terminal_svg: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cast, "SECTIONS", ("Two", "Five"))
    titles = [("", f"\x1b[1m{title}\x1b[0m", f"  of {title}") for title in ("One", "Two", "Three", "Four", "Five")]
    lines = lines_of(terminal_svg, *(text for part in titles for text in part), "")
    shown = [line.plain for line in cast.excerpt(lines)]
    assert shown == ["…", "", "Two", "  of Two", "", "…", "", "Five", "  of Five"]
    monkeypatch.setattr(cast, "SECTIONS", ("Two", "Six"))
    with pytest.raises(ValueError, match="no section that begins with 'Six'"):
        cast.excerpt(lines)


def test_nobody_waits_for_long(cast: ModuleType, terminal_svg: ModuleType) -> None:
    lines = [terminal_svg.Line(second, "") for second in (0.5, 0.75, 60.0, 61.0)]
    assert [line.at for line in cast.hurry(lines)] == [0, 0.25, 2.25, 3.25]


def test_the_picture_is_of_this_demo(cast: ModuleType, repository: Path) -> None:
    picture = repository / "docs" / "demo.svg"
    assert picture.stat().st_size < 60_000
    texts = ["".join(one.itertext()) for one in ElementTree.parse(picture).getroot().iter(f"{SVG}text")]
    sources = "".join((repository / "demo" / name).read_text() for name in ("acts.py", "demo.py", "verify.py"))
    for section in cast.SECTIONS:
        assert any(text.startswith(section) for text in texts), f"{section}: make cast"
        assert re.search(f'"{section.strip()}\\b', sources), f"{section} is no act any more: SECTIONS in demo/cast.py"
    assert texts[-1].endswith("events went as they should, by the emulator's records and the journals.")
