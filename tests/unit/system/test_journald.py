# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import io
import json
import os
import re
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from forewarn.runner.telemetry.log import text_line
from forewarn.runner.telemetry.system_log import FORMATS, SystemLog, open_log
from forewarn.system.posix.log_destination import LogDestination
from hypothesis import given
from hypothesis import strategies as st
from tools.sites.waiting import wait_until

Entry = list[tuple[str, str]]


def parse(datagram: bytes) -> Entry:
    """Read an entry as journald does: NAME=value, or NAME, eight bytes of length and that many bytes."""
    entry = []
    while datagram:
        line, end, rest = datagram.partition(b"\n")
        assert end
        name, equals, value = line.partition(b"=")
        if not equals:
            length = int.from_bytes(rest[:8], "little")
            value, end, rest = rest[8 : 8 + length], rest[8 + length : 9 + length], rest[9 + length :]
            assert len(value) == length
            assert end == b"\n"
        assert re.fullmatch("[A-Z][A-Z0-9_]{0,63}", name.decode())
        entry.append((name.decode(), value.decode()))
        datagram = rest
    return entry


class Journald:
    """Listens where journald would."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(path)
        self.socket.setblocking(False)

    def entries(self) -> list[Entry]:
        found = []
        with suppress(BlockingIOError):
            while True:
                found.append(parse(self.socket.recv(1 << 20)))
        return found

    def stop(self) -> None:
        self.socket.close()
        Path(self.path).unlink()


@pytest.fixture
def journald(tmp_path: Path) -> Iterator[Journald]:
    journald = Journald(str(tmp_path / "socket"))
    yield journald
    journald.socket.close()


def test_entry_has_message_and_fields(journald: Journald) -> None:
    log = SystemLog(io.StringIO(), LogDestination(journald.path))
    log.warning("decision", event_id="C7-A", rule="drain", reason='it is "brief"', left=1.5, dry_run=True, error=None)
    assert journald.entries() == [
        [
            ("MESSAGE", 'decision event_id=C7-A rule=drain reason="it is \\"brief\\"" left=1.5 dry_run=true'),
            ("PRIORITY", "4"),
            ("SYSLOG_IDENTIFIER", "forewarn"),
            ("FOREWARN_LINE", "decision"),
            ("FOREWARN_EVENT_ID", "C7-A"),
            ("FOREWARN_RULE", "drain"),
            ("FOREWARN_REASON", 'it is "brief"'),
            ("FOREWARN_LEFT", "1.5"),
            ("FOREWARN_DRY_RUN", "true"),
        ]
    ]


@pytest.mark.parametrize(("level", "priority"), [("info", "6"), ("warning", "4"), ("error", "3")])
def test_levels_are_those_of_syslog(journald: Journald, level: str, priority: str) -> None:
    getattr(SystemLog(io.StringIO(), LogDestination(journald.path)), level)("started")
    ((*_, (name, value), _, _),) = journald.entries()
    assert (name, value) == ("PRIORITY", priority)


def test_lines_about_several_events_are_found_by_each(journald: Journald) -> None:
    log = SystemLog(io.StringIO(), LogDestination(journald.path))
    log.info("approved", event_ids=["C7-A", "C7-B"], times=2)
    log.info("approved", event_ids=[str(number) for number in range(5000)])
    short, long = journald.entries()
    assert [value for name, value in short if name == "FOREWARN_EVENT_ID"] == ["C7-A", "C7-B"]
    assert dict(short)["MESSAGE"] == 'approved event_ids=["C7-A", "C7-B"] times=2'
    assert len(long) < 1024, "more fields than that journald does not take"


# Texts that would form a line or a field of their own without care.
NASTY = st.sampled_from(["\n", "\nMESSAGE=x", "=", "A\n\x01\x00\x00\x00\x00\x00\x00\x00b\n", "\0", "\ud800"])


@given(
    name=st.from_regex(r"[a-z_]{1,100}", fullmatch=True).filter(lambda name: name not in ("name", "event_ids")),
    value=st.one_of(st.text(), st.lists(st.one_of(NASTY, st.text(max_size=5))).map("".join)),
)
def test_value_cannot_forge_an_entry_or_field(tmp_path_factory: pytest.TempPathFactory, name: str, value: str) -> None:
    path = tmp_path_factory.getbasetemp() / "forging"
    path.unlink(missing_ok=True)
    journald = Journald(str(path))
    with journald.socket:
        SystemLog(io.StringIO(), LogDestination(journald.path)).info("decision", **{name: value})
        (entry,) = journald.entries()
    message, _, _, _, (field, sent) = entry
    assert message == ("MESSAGE", text_line("decision", {name: value}))
    assert field == f"FOREWARN_{name.upper()}"[:64]
    assert sent == value.encode("utf-8", "backslashreplace").decode()


def test_values_of_other_kinds_are_json(journald: Journald) -> None:
    SystemLog(io.StringIO(), LogDestination(journald.path)).info(
        "decision", values={"notice": "5s\n"}, resources=["web_0"], ok=False
    )
    (entry,) = journald.entries()
    fields = dict(entry)
    assert json.loads(fields["FOREWARN_VALUES"]) == {"notice": "5s\n"}
    assert json.loads(fields["FOREWARN_RESOURCES"]) == ["web_0"]
    assert fields["FOREWARN_OK"] == "false"


def test_a_long_value_is_cut_between_two_letters(journald: Journald) -> None:
    SystemLog(io.StringIO(), LogDestination(journald.path)).info(
        "hook-ended", output="x" + "ä" * 50_000, phase="prepare"
    )
    (entry,) = journald.entries()
    fields = dict(entry)
    assert fields["FOREWARN_OUTPUT"] == "x" + "ä" * 16_383 + "…"
    assert fields["FOREWARN_PHASE"] == "prepare"


@pytest.mark.parametrize(("count", "length"), [(30, 4_096), (200, 512)])
def test_what_no_datagram_holds_is_shortened_not_lost(journald: Journald, count: int, length: int) -> None:
    stream = io.StringIO()
    log = SystemLog(stream, LogDestination(journald.path))
    log.info("many", **{f"field_{number}": "ä" * 100_000 for number in range(count)})
    (entry,) = journald.entries()
    assert len(entry) == 4 + count
    assert {len(value.encode()) for name, value in entry if name.startswith("FOREWARN_FIELD")} == {
        length + len("…".encode())
    }
    assert (stream.getvalue(), log.lost) == ("", 0)


def test_lines_go_to_the_stream_without_journald(tmp_path: Path) -> None:
    stream = io.StringIO()
    log = SystemLog(stream, LogDestination(str(tmp_path / "socket")))
    log.error("first", reason="a b")
    assert re.fullmatch(r'\S+Z error first reason="a b"\n', stream.getvalue())
    journald = Journald(str(tmp_path / "socket"))
    log.info("second")
    assert [dict(entry)["MESSAGE"] for entry in journald.entries()] == ["second"]
    journald.stop()
    log.info("third")
    assert stream.getvalue().endswith("info third\n")
    journald = Journald(str(tmp_path / "socket"))
    log.info("fourth")
    assert [dict(entry)["MESSAGE"] for entry in journald.entries()] == ["fourth"]
    assert "fourth" not in stream.getvalue()
    journald.stop()
    assert log.lost == 0


def test_restarted_journald_loses_no_line(journald: Journald) -> None:
    stream = io.StringIO()
    log = SystemLog(stream, LogDestination(journald.path))
    log.info("first")
    journald.stop()
    anew = Journald(journald.path)
    log.info("second")
    assert [dict(entry)["MESSAGE"] for entry in anew.entries()] == ["second"]
    assert stream.getvalue() == ""
    anew.stop()


def test_service_log_continues_once_journald_is_back(tmp_path: Path) -> None:
    """The stream of a service led to journald too: while journald is away, that stream is a pipe without a reader."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as stream:
        log = SystemLog(stream, LogDestination(str(tmp_path / "socket")))
        log.detach(None)
        log.info("first")
        wait_until(lambda: log.lost == 1, seconds=30)
        journald = Journald(str(tmp_path / "socket"))
        log.info("second")
        log.close(None)
        messages = [dict(entry)["MESSAGE"] for entry in journald.entries()]
        journald.stop()
    assert "second" in messages


@pytest.mark.parametrize("fault", [OSError(28, "No space left on device"), BrokenPipeError()])
def test_what_goes_neither_way_is_counted(tmp_path: Path, fault: OSError) -> None:
    class Broken(io.StringIO):
        def flush(self) -> None:
            raise fault

    log = SystemLog(Broken(), LogDestination(str(tmp_path / "none")))
    log.info("decision")
    log.error("decision")
    assert log.lost == 2


def test_blocked_journald_costs_one_wait_and_lines(journald: Journald, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forewarn.runner.telemetry.system_log.PATIENCE_SECONDS", 0.05)
    stream = io.StringIO()
    log = SystemLog(stream, LogDestination(journald.path))
    started = time.monotonic()
    for _ in range(2000):  # the queue has some hundred places at most
        log.info("decision")
    assert time.monotonic() - started < 5
    arrived = len(journald.entries())
    assert log.lost == 2000 - arrived > 0
    assert stream.getvalue() == "", "the stream may be blocked as well"
    log.info("again")
    assert [dict(entry)["MESSAGE"] for entry in journald.entries()] == ["again"]


@pytest.mark.parametrize("form", ["auto", None])
def test_journald_is_chosen_by_journal_stream(form: str | None, tmp_path: Path) -> None:
    with (tmp_path / "out").open("w") as out:
        status = os.fstat(out.fileno())
        here = {"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"}
        assert isinstance(open_log(form, here, out), SystemLog)
        assert type(open_log(form, {}, out)) is not SystemLog
        # A child of a service whose output goes elsewhere.
        assert not isinstance(open_log(form, {"JOURNAL_STREAM": "1:1"}, out), SystemLog)
        assert not isinstance(open_log(form, here, io.StringIO()), SystemLog)
        error = os.fstat(2)
        assert isinstance(
            open_log(form, {"JOURNAL_STREAM": f"{error.st_dev}:{error.st_ino}"}, io.StringIO()), SystemLog
        )


def test_a_form_that_is_named_is_taken(tmp_path: Path) -> None:
    assert FORMATS == ("auto", "journald", "text", "json")
    assert isinstance(open_log("journald", {}, io.StringIO()), SystemLog)
    stream = io.StringIO()
    open_log("json", {}, stream).info("started")
    assert json.loads(stream.getvalue())["line"] == "started"
    stream = io.StringIO()
    open_log("text", {}, stream).info("started", answer=42)
    assert stream.getvalue().endswith(" info started answer=42\n")


def test_a_field_named_like_ours_is_told_apart(journald: Journald) -> None:
    fields: dict[str, Any] = {"message": "theirs", "priority": "0", "a-b.c": 1}
    SystemLog(io.StringIO(), LogDestination(journald.path)).info("decision", **fields)
    (entry,) = journald.entries()
    assert entry[1] == ("PRIORITY", "6")
    assert entry[4:] == [("FOREWARN_MESSAGE", "theirs"), ("FOREWARN_PRIORITY", "0"), ("FOREWARN_A_B_C", "1")]
