# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The line on a terminal about work that takes long."""

from __future__ import annotations

import io

import pytest
from forewarn.cli.policy.output.progress_line import ProgressLine
from tools.fixtures.clocks import ManualClocks
from tools.fixtures.recorded_state import Terminal

ERASE = "\r\033[K"


def test_nothing_appears_in_the_first_second() -> None:
    terminal, clocks = Terminal(), ManualClocks()
    line = ProgressLine(terminal, clocks.monotonic, {})
    line.show(lambda: "begun")
    clocks.now += 0.99
    line.show(lambda: "nearly")
    line.clear()
    assert terminal.getvalue() == ""


def test_the_line_is_replaced_and_erased() -> None:
    terminal, clocks = Terminal(), ManualClocks()
    line = ProgressLine(terminal, clocks.monotonic, {})
    for text, seconds in (("1 of 50", 1.0), ("2 of 50", 0.1), ("3 of 50", 0.15)):
        clocks.now += seconds
        line.show(lambda text=text: text)  # type: ignore[misc]  # a default binds it now
    assert terminal.getvalue() == f"{ERASE}1 of 50{ERASE}3 of 50"
    line.clear()
    line.clear()
    assert terminal.getvalue() == f"{ERASE}1 of 50{ERASE}3 of 50{ERASE}"


def test_a_long_or_hostile_text_stays_one_line() -> None:
    terminal, clocks = Terminal(), ManualClocks()
    line = ProgressLine(terminal, clocks.monotonic, {})
    clocks.now += 1
    line.show(lambda: "a\nb\033" + "x" * 200)
    written = terminal.getvalue().removeprefix(ERASE)
    assert len(written) == 79
    assert written.startswith("a\\nb\\x1bxx")


@pytest.mark.parametrize(("stream", "environ"), [(io.StringIO(), {}), (Terminal(), {"TERM": "dumb"})])
def test_nothing_is_written_where_erasing_is_impossible(stream: io.StringIO, environ: dict[str, str]) -> None:
    clocks = ManualClocks()
    line = ProgressLine(stream, clocks.monotonic, environ)
    clocks.now += 60
    line.show(lambda: "never")
    line.clear()
    assert stream.getvalue() == ""


def test_a_terminal_that_is_gone_ends_nothing() -> None:
    terminal, clocks = Terminal(), ManualClocks()
    line = ProgressLine(terminal, clocks.monotonic, {})
    clocks.now += 1
    terminal.close()
    line.show(lambda: "x")
    line.clear()
