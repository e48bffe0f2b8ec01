# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of ``forewarn events`` on terminals of several widths, and in a pipe."""

from __future__ import annotations

import io
from datetime import datetime, timezone

import pytest
from forewarn.cli.events import _show_table
from forewarn.cli.output.console import Console
from forewarn.events import Event
from tools.fixtures import events
from tools.fixtures.events import GUID
from tools.fixtures.recorded_state import Terminal

NOW = datetime(2022, 4, 11, 22, 12, tzinfo=timezone.utc)
PAUSED = "Virtual machine is being paused because of a memory-preserving Live Migration operation."


def event(description: str | None = PAUSED) -> Event:
    resources, at = ("WestNO_0", "WestNO_1"), datetime(2022, 4, 11, 22, 26, 58, tzinfo=timezone.utc)
    return events.event(GUID, resources=resources, not_before=at, description=description)


def lines(stream: io.StringIO, *events: Event) -> list[str]:
    _show_table(Console(stream, {"NO_COLOR": "1"}), events, "WestNO_0", NOW)
    return stream.getvalue().splitlines()


def test_piped_description_is_complete_and_last() -> None:
    header, first, second = lines(io.StringIO(), event(), event(None))
    assert header.endswith("  EVENT ID                              DESCRIPTION")
    assert first.endswith(f"  C7061BAC-AFDC-4513-B24B-AA5F13A16123  {PAUSED}")
    assert second.endswith("  C7061BAC-AFDC-4513-B24B-AA5F13A16123  -")


@pytest.mark.parametrize("columns", [190, 200, 240])
def test_description_on_a_wide_terminal_is_cut(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    header, row = lines(Terminal(), event())
    shown = row[header.index("DESCRIPTION") :]
    assert len(row) <= columns
    if columns == 240:
        assert shown == PAUSED
    else:
        assert shown.endswith("...")
        assert PAUSED.startswith(shown[:-3])
        assert len(row) > columns - 3


def test_description_on_a_narrow_terminal_is_wrapped_below(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    header, first, *below, last = lines(Terminal(), event(), event(""))
    assert "DESCRIPTION" not in header
    assert first == last
    assert all(line.startswith("  ") and len(line) <= 80 for line in below)
    assert " ".join(line.strip() for line in below) == PAUSED


@pytest.mark.parametrize("columns", [80, 200, 400])
def test_a_description_steers_no_terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    shown = lines(Terminal(), event("\x1b[2J\nFreeze  Started"))
    assert "\\x1b[2J\\nFreeze  Started" in "\n".join(shown)
    assert not any(line.startswith("Freeze  Started") or "\x1b" in line for line in shown)
