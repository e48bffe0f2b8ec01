# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The log in a thread of its own: bounded, in order, and honest about what it lost."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from forewarn.runner.telemetry.log import Log
from forewarn.runner.telemetry.log_writer import LIMIT_BYTES, LogWriter
from forewarn.runner.telemetry.system_log import SystemLog
from forewarn.system.posix.log_destination import LogDestination
from tools.sites.waiting import wait_until


class Paper:
    """Where lines are written, as long as ``fault`` lets them."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.fault: OSError | None = None
        self.free = threading.Event()
        self.free.set()
        self.writer = LogWriter(self.deliver, lambda count: (f"lost {count}".encode(),))

    def deliver(self, forms: Sequence[bytes]) -> None:
        assert self.free.wait(20)
        if self.fault is not None:
            raise self.fault
        self.lines.append(forms[-1].decode()[:20])

    def put(self, *lines: str) -> None:
        for line in lines:
            self.writer.put((line.encode(),))


@pytest.fixture
def paper() -> Iterator[Paper]:
    made = Paper()
    yield made
    made.free.set()


def test_lines_are_written_in_their_order(paper: Paper) -> None:
    names = [str(number) for number in range(1000)]
    paper.put(*names)
    paper.writer.close(10)
    assert paper.lines == names
    assert paper.writer.lost == 0


def test_stalled_reader_costs_limited_memory_and_no_time(paper: Paper) -> None:
    paper.free.clear()
    large = "x" * 10_000
    begin = time.monotonic()
    paper.put(*[f"{number:5}{large}" for number in range(1000)])
    assert time.monotonic() - begin < 5
    assert sum(sum(map(len, line)) for line in list(paper.writer._waiting) if not isinstance(line, int)) <= LIMIT_BYTES
    lost = paper.writer.lost
    assert lost >= 1000 - LIMIT_BYTES // 10_000 - 2
    paper.free.set()
    wait_until(lambda: paper.lines[-1:] == [f"lost {lost}"])
    assert [int(line[:5]) for line in paper.lines[:-1]] == list(range(1000 - lost)), "the oldest are kept, in order"
    paper.put("after")
    paper.writer.close(10)
    assert paper.lines[-1] == "after"


def test_a_gap_is_reported_where_it_is(paper: Paper) -> None:
    paper.free.clear()
    large = "x" * 300_000
    paper.put("first", *[large] * 10)
    lost = paper.writer.lost
    assert lost >= 6
    paper.free.set()
    wait_until(lambda: f"lost {lost}" in paper.lines)
    paper.put("last")
    paper.writer.close(10)
    assert paper.lines == ["first", *[large[:20]] * (10 - lost), f"lost {lost}", "last"]


def test_one_line_may_be_larger_than_the_limit(paper: Paper) -> None:
    paper.put("x" * (LIMIT_BYTES + 1))
    paper.writer.close(10)
    assert (len(paper.lines), paper.writer.lost) == (1, 0)


def test_full_disk_is_reported_when_room_returns(paper: Paper) -> None:
    paper.fault = OSError(28, "No space left on device")
    paper.put("one", "two", "three")
    paper.writer.close(10)
    assert (paper.lines, paper.writer.lost) == ([], 3)
    paper.fault = None
    paper.put("four")
    wait_until(lambda: len(paper.lines) == 2)
    assert paper.lines == ["four", "lost 3"]
    assert paper.writer.lost == 3


def test_unreported_loss_is_counted_once(paper: Paper) -> None:
    paper.free.clear()
    paper.put("first", *["x" * 300_000] * 10)
    paper.fault = OSError(5, "Input/output error")
    paper.free.set()
    wait_until(lambda: paper.writer.lost == 11)
    paper.fault = None
    paper.put("after")
    wait_until(lambda: len(paper.lines) == 2)
    assert paper.lines == ["after", "lost 11"]
    assert paper.writer.lost == 11


def test_closed_pipe_is_raised_to_the_next_writer(paper: Paper) -> None:
    paper.fault = BrokenPipeError()
    paper.put("one")
    paper.writer.close(10)
    with pytest.raises(BrokenPipeError):
        paper.put("two")


def test_close_waits_briefly_for_a_stalled_reader(paper: Paper) -> None:
    paper.free.clear()
    paper.put("one", "two")
    begin = time.monotonic()
    paper.writer.close(0.1)
    assert 0.1 <= time.monotonic() - begin < 8


def test_log_on_a_pipe_continues_without_a_reader() -> None:
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as read, os.fdopen(writer, "w", encoding="utf-8") as stream:
        log = Log(stream)
        log.detach()
        begin = time.monotonic()
        for number in range(30_000):  # 2 MB; a pipe holds 64 KiB
            log.info("decision", number=number, reason="größer")
        assert time.monotonic() - begin < 10
        lost = log.lost
        assert lost > 1000
        text = b""
        while b"log-lines-lost" not in text:
            text += os.read(read.fileno(), 65536)
        log.close(5)
    lines = text.decode().splitlines()
    assert [line.split("number=")[1].split()[0] for line in lines[:-1]] == [str(n) for n in range(30_000 - lost)]
    assert lines[-1].endswith(f" warning log-lines-lost lines={lost}")


def test_nonblocking_pipe_loses_nothing() -> None:
    """Another process that shares our standard output may have made it non-blocking."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with os.fdopen(reader, "rb") as read, os.fdopen(writer, "w", encoding="utf-8") as stream:
        log = Log(stream)
        log.detach()
        log.info("decision", reason="x" * 300_000)
        text = b""
        while not text.endswith(b"\n"):
            text += os.read(read.fileno(), 65536)
        log.close(5)
    assert len(text) > 300_000
    assert log.lost == 0


def test_log_without_a_file_is_written_at_once() -> None:
    import io

    stream = io.StringIO()
    log = Log(stream)
    log.detach()
    log.info("decision")
    assert "decision" in stream.getvalue()
    log.close(1)


def test_blocked_journald_delays_nobody(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as journald, (tmp_path / "out").open("w") as stream:
        journald.bind(str(tmp_path / "socket"))
        log = SystemLog(stream, LogDestination(str(tmp_path / "socket")))
        log.detach()
        begin = time.monotonic()
        for _ in range(5000):
            log.info("decision", reason="x" * 1000)
        assert time.monotonic() - begin < 10
        assert log.lost > 1000
        journald.settimeout(5)
        received = b""
        with suppress(TimeoutError):
            while b"FOREWARN_LINE=log-lines-lost" not in received:
                received = journald.recv(1 << 20)
        assert f"FOREWARN_LINES={log.lost}\n".encode() in received
        log.close(5)
        assert (tmp_path / "out").read_text() == "", "the stream may lead to it as well"


def test_missing_journald_leaves_lines_to_the_stream(tmp_path: Path) -> None:
    with (tmp_path / "out").open("w") as stream:
        log = SystemLog(stream, LogDestination(str(tmp_path / "none")))
        log.detach()
        log.info("decision")
        log.close(5)
    assert (tmp_path / "out").read_text().endswith(" info decision\n")
    assert log.lost == 0
