# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import ast
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from forewarn.system.windows import api
from forewarn.system.windows.event_log import EVENT_IDS, LONGEST_TEXT, EventLog, event_text

NOT_LINES = {"fault"}


def documented(repository: Path) -> dict[str, int]:
    """Return the event ids in the table of docs/log.md."""
    found: dict[str, int] = {}
    for row in re.findall(r"^\| (`.*)$", (repository / "docs/log.md").read_text(), re.MULTILINE):
        names, ids = (re.split(", ", cell.strip()) for cell in row.split(" | ")[:2])
        if all(number.isdecimal() for number in ids):
            assert len(names) == len(ids), row
            for name, number in zip(names, ids):
                assert found.setdefault(name.strip("`"), int(number)) == int(number), name
    return found


def written_lines(package: Path) -> set[str]:
    """Return the names of lines that the runner's code writes."""
    found = set()
    for path in (*package.joinpath("runner").rglob("*.py"), *package.joinpath("cli/run").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in ("info", "warning", "error")
                and node.args
            ):
                found |= {part.value for part in ast.walk(node.args[0]) if isinstance(part, ast.Constant)}
    return {name for name in found if isinstance(name, str) and name[0] != "-"}  # f"{kind}-failed"


def test_each_line_has_its_documented_event_id(repository: Path) -> None:
    assert documented(repository) == EVENT_IDS


def test_written_lines_have_event_ids(package: Path) -> None:
    lines = written_lines(package)
    assert len(lines) > 25, "the walk found the lines"
    assert lines - EVENT_IDS.keys() == set()


def test_event_ids_are_distinct_and_have_messages() -> None:
    """EventCreate.exe, whose messages are used, has those from 1 to 1000."""
    assert len(set(EVENT_IDS.values())) == len(EVENT_IDS)
    assert all(1 <= number <= 1000 for number in EVENT_IDS.values())


@pytest.mark.parametrize("letter", ["x", "ä", "\U0001f9ca"])
def test_long_text_is_cut_between_two_letters(letter: str) -> None:
    text = event_text("1" + letter * 40_000)
    units = len(text.encode("utf-16-le")) // 2
    assert LONGEST_TEXT - 2 <= units <= LONGEST_TEXT
    assert text.endswith("…")
    assert event_text(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [("fe80::1%12", "fe80::1% 12"), ("%%5 100%", "% % 5 100%"), ("a%20b", "a% 20b"), ("100 % of 5", "100 % of 5")],
)
def test_viewer_finds_nothing_to_replace(text: str, shown: str) -> None:
    assert event_text(text) == shown
    assert not re.search(r"%[%0-9]", event_text(text))


class FakeLibrary:
    """advapi32 with an event log, as the Windows API reference has its functions."""

    def __init__(self) -> None:
        self.events: list[tuple[int, int, str]] = []  # type, id, text
        self.sources = 0
        self.full = False

    def register(self, server: None, source: str) -> int:
        assert (server, source) == (None, "forewarn")
        self.sources += 1
        return self.sources

    def deregister(self, _handle: int) -> int:
        return 1

    def report(self, handle: int, kind: int, category: int, number: int, *rest: Any) -> int:
        sid, count, size, strings, data = rest
        assert (handle, category, sid, count, size, data) == (self.sources, 0, None, 1, 0, None)
        if not self.full:
            self.events.append((kind, number, strings[0]))
        return int(not self.full)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> FakeLibrary:
    fake = FakeLibrary()
    functions = {
        "RegisterEventSourceW": fake.register,
        "DeregisterEventSource": fake.deregister,
        "ReportEventW": fake.report,
    }
    monkeypatch.setattr(api, "advapi32", SimpleNamespace(**functions))
    monkeypatch.setattr(api, "error", lambda: OSError(1502, "The event log file is full."))
    return fake


def test_event_has_the_lines_level_and_kind(library: FakeLibrary) -> None:
    log = EventLog()
    for level, name in (("error", "fault"), ("warning", "approval-failed"), ("info", "approved"), ("info", "other")):
        log.write(level, name, f"{name} 100%")
    # EVENTLOG_ERROR_TYPE, EVENTLOG_WARNING_TYPE, EVENTLOG_INFORMATION_TYPE
    assert library.events == [
        (1, 1, "fault 100%"),
        (2, 42, "approval-failed 100%"),
        (4, 40, "approved 100%"),
        (4, 1000, "other 100%"),
    ]
    assert library.sources == 1


def test_log_that_failed_is_opened_again(library: FakeLibrary) -> None:
    log = EventLog()
    library.full = True
    with pytest.raises(OSError, match="full"):
        log.write("info", "started", "started")
    library.full = False
    log.write("info", "started", "started")
    assert (len(library.events), library.sources) == (1, 2)
