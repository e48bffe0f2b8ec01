# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Output for people: when it has colour, what a table looks like, and that no text can forge a line."""

from __future__ import annotations

import io

import pytest
from forewarn.cli.output.console import Console, clean, one_line
from hypothesis import given
from hypothesis import strategies as st
from tools.fixtures.recorded_state import Terminal


@pytest.mark.parametrize(
    ("stream", "environ", "colour"),
    [
        (Terminal, {}, True),
        (Terminal, {"TERM": "xterm"}, True),
        (Terminal, {"NO_COLOR": ""}, True),
        (Terminal, {"NO_COLOR": "1"}, False),
        (Terminal, {"TERM": "dumb"}, False),
        (io.StringIO, {}, False),
        (io.StringIO, {"FORCE_COLOR": ""}, False),
        (io.StringIO, {"FORCE_COLOR": "1"}, True),
        (io.StringIO, {"FORCE_COLOR": "1", "NO_COLOR": "1", "TERM": "dumb"}, True),
    ],
)
def test_when_there_is_colour(stream: type[io.StringIO], environ: dict[str, str], colour: bool) -> None:
    console = Console(stream(), environ)
    assert console.colour is colour
    assert console.style("hold", "bold", "red") == ("\033[1;31mhold\033[0m" if colour else "hold")
    assert console.style("hold") == "hold"


def test_the_environment_is_the_one_of_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert Console(io.StringIO()).colour
    monkeypatch.delenv("FORCE_COLOR")
    assert not Console(io.StringIO()).colour


def test_a_table_is_aligned_with_and_without_colour() -> None:
    for environ in ({}, {"FORCE_COLOR": "1"}):
        stream = io.StringIO()
        Console(stream, environ).table(
            ["TYPE", "ID"], [["Freeze", "a"], ["Terminate", "bcd"]], {"Freeze": "green", "bcd": "red"}
        )
        plain = stream.getvalue()
        for code in ("\033[1m", "\033[31m", "\033[32m", "\033[0m"):
            assert (code in plain) is bool(environ)
            plain = plain.replace(code, "")
        assert plain == "TYPE       ID\nFreeze     a\nTerminate  bcd\n"


def test_an_empty_table_is_its_header() -> None:
    stream = io.StringIO()
    Console(stream, {}).table(["TYPE", "ID"], [])
    assert stream.getvalue() == "TYPE  ID\n"


def test_no_cell_can_forge_a_row() -> None:
    stream = io.StringIO()
    Console(stream, {}).table(["TYPE", "DESCRIPTION"], [["Freeze", "ok\nReboot  \x1b[2Japproved\tx\r"]])
    assert stream.getvalue().splitlines()[1:] == [r"Freeze  ok\nReboot  \x1b[2Japproved\tx\r"]


def test_an_error_and_its_hint() -> None:
    stream = io.StringIO()
    console = Console(stream, {})
    console.error("web.yml:3:5: no such field\nweb.yml:4:5: no such type", "Run `forewarn policy check`.\x07")
    console.error("gone")
    assert stream.getvalue().splitlines() == [
        "error: web.yml:3:5: no such field",
        "web.yml:4:5: no such type",
        r"  hint: Run `forewarn policy check`.\x07",
        "error: gone",
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain – “quoted” ☃ 日本", "plain – “quoted” ☃ 日本"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("a\rb\x00\x7f\x9b31m", r"a\rb\x00\x7f\x9b31m"),
        ("approve\u202ehold\u2066x\u200f", r"approve\u202ehold\u2066x\u200f"),
        ("a\u2028b\u2029c\x85d", r"a\u2028b\u2029c\x85d"),
        ("\ud800", r"\ud800"),
    ],
)
def test_control_characters_are_written_out(text: str, shown: str) -> None:
    assert clean(text) == shown
    assert one_line(text) == shown
    assert Console(io.StringIO(), {"FORCE_COLOR": "1"}).style(text, "bold") == f"\033[1m{shown}\033[0m"


@given(st.text(st.characters(codec=None)))
def test_any_text_becomes_one_encodable_line(text: str) -> None:
    assert len(one_line(text).splitlines()) <= 1
    one_line(text).encode()
    assert clean(text).split("\n") == [clean(line) for line in text.split("\n")]
    assert clean(clean(text)) == clean(text)
