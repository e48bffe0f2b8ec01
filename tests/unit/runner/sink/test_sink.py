# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a batch is sent to the sink, and what follows from its outcome."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from forewarn.runner.hooks.executor import FAILED, SUCCEEDED, HookResult
from forewarn.runner.journal.writer import Journal
from forewarn.runner.sink import position as positions
from forewarn.runner.sink import sender, sink
from forewarn.runner.sink.report import MOST_ROWS, SendReport
from forewarn.runner.sink.sink import LONGEST_PAUSE_SECONDS, Sink, SinkSettings
from forewarn.runner.telemetry.log import Log
from forewarn.runner.telemetry.metrics import Metrics
from forewarn.runner.telemetry.recorder import Recorder
from tools.fixtures.children import Children
from tools.fixtures.clocks import ManualClocks
from tools.fixtures.journals import commit


class Rig:
    """A sink with its journal, in which nothing is sent."""

    def __init__(self, directory: Path, journal: Journal, clocks: ManualClocks) -> None:
        self.directory, self.journal, self.clocks = directory, journal, clocks
        self.children = Children("sink")
        self.output = io.StringIO()
        self.metrics = Metrics()
        self.facts: dict[str, Any] = {}
        recorder = Recorder(journal, Log(self.output, "json"), self.metrics)
        settings = SinkSettings("http://127.0.0.1:9/x?key=secret")
        self.sink = Sink(settings, str(directory), self.children, recorder, clocks, self.facts, jitter=lambda: 0.0)

    def note(self, *kinds: str) -> None:
        for kind in kinds:
            self.journal.note(kind)
        commit(self.journal)

    def attempts(self) -> int:
        """Return how many children were started so far, with what is due now."""
        self.sink.start_if_due()
        return len(self.children.started)

    def report(self, **report: Any) -> None:
        self.children.report(SendReport(**report))
        self.sink.collect_results()

    def begin(self) -> None:
        """Let the sink find out where it begins, and send what an earlier runner may have left."""
        assert self.attempts() == 1
        self.report(begins=0)
        assert self.attempts() == 2

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.output.getvalue().splitlines()]


@pytest.fixture
def rig(tmp_path: Path, journal: Journal, clocks: ManualClocks) -> Rig:
    return Rig(tmp_path, journal, clocks)


def test_stream_name_is_saved_before_sending(rig: Rig) -> None:
    assert rig.attempts() == 1
    kept = positions.read(str(rig.directory))
    assert kept is not None
    assert rig.children.started[0]["position"] == kept._asdict()


def test_new_entries_are_sent_after_a_moment(rig: Rig) -> None:
    rig.begin()
    rig.report()
    rig.clocks.sleep(3600)
    assert rig.attempts() == 2
    rig.note("state", "state")
    assert rig.facts["sink"]["behind"] == 0
    assert rig.attempts() == 2
    assert rig.facts["sink"]["behind"] == 2
    rig.clocks.sleep(sink.LINGER_SECONDS)
    assert rig.attempts() == 3
    assert rig.attempts() == 3  # one at a time
    rig.report(rows=2, acknowledged=2, checksum=5)
    kept = positions.read(str(rig.directory))
    assert (kept and kept[1:3]) == (2, 5)
    assert rig.facts["sink"]["behind"] == 0
    assert rig.facts["sink"]["url"] == "http://127.0.0.1:9/x?key=…"
    rig.clocks.sleep(3600)
    assert rig.attempts() == 3


def test_a_backlog_is_sent_without_a_pause(rig: Rig) -> None:
    rig.begin()
    rig.report(rows=500, acknowledged=500, checksum=1, behind=120)
    assert rig.facts["sink"]["behind"] == 120
    assert rig.attempts() == 3


def test_failure_is_retried_with_growing_pauses(rig: Rig) -> None:
    rig.begin()
    pauses: list[float] = []
    for _ in range(12):
        assert rig.attempts() == len(pauses) + 2
        rig.report(rows=3, behind=1, problem="answered 503")
        before = rig.clocks.monotonic()
        while rig.attempts() == len(pauses) + 2:
            rig.clocks.sleep(0.5)
        pauses.append(rig.clocks.monotonic() - before)
        assert rig.facts["sink"]["behind"] == 4
    assert pauses[:4] == [1, 2, 4, 8]
    assert pauses[-1] == LONGEST_PAUSE_SECONDS
    assert [line["line"] for line in rig.lines()] == ["sink-failed"]
    rig.report(rows=3, acknowledged=3, checksum=1)
    assert [line["line"] for line in rig.lines()] == ["sink-failed", "sink-recovered"]
    assert rig.lines()[1]["failures"] == 12
    assert rig.facts["sink"]["problem"] is None
    assert 'forewarn_sink_requests_total{result="failed"} 12' in rig.metrics.render()


def test_the_sink_says_how_long_to_wait(rig: Rig) -> None:
    rig.begin()
    rig.report(rows=1, problem="answered 429", after_seconds=900.0)
    rig.clocks.sleep(899)
    assert rig.attempts() == 2
    rig.clocks.sleep(1)
    assert rig.attempts() == 3


def test_what_lasts_is_tried_again_slowly(rig: Rig) -> None:
    rig.begin()
    rig.report(rows=1, problem="answered 401", lasting=True)
    assert rig.lines()[-1]["lasting"] is True
    rig.clocks.sleep(LONGEST_PAUSE_SECONDS - 1)
    assert rig.attempts() == 2
    rig.clocks.sleep(1)
    assert rig.attempts() == 3


def test_oversized_batch_is_split(rig: Rig) -> None:
    rig.begin()
    rig.report(rows=8, problem="answered 413", lasting=True, too_large=True)
    assert rig.attempts() == 3
    assert rig.children.started[-1]["most_rows"] == 4
    rig.report(rows=4, acknowledged=4, checksum=1, behind=4)
    assert rig.attempts() == 4
    assert rig.children.started[-1]["most_rows"] == 8
    rig.report(rows=1, problem="answered 413", lasting=True, too_large=True)  # alone, it cannot be smaller
    assert rig.attempts() == 4
    assert rig.lines()[-1]["reason"] == "answered 413"


def test_another_journal_is_another_stream(rig: Rig) -> None:
    rig.begin()
    rig.report(rows=5, acknowledged=5, checksum=1, lost=2)
    before = positions.read(str(rig.directory))
    rig.note("state")
    assert rig.attempts() == 2
    rig.clocks.sleep(1)
    assert rig.attempts() == 3
    rig.report(replaced=True)
    assert rig.lines()[-1]["line"] == "sink-new-stream"
    assert rig.attempts() == 4
    after = positions.read(str(rig.directory))
    assert before
    assert after
    assert after.stream != before.stream
    assert (after.acknowledged, after.checksum, after.begins, after.lost) == (0, None, None, 2)


def test_lost_and_rejected_entries_are_counted(rig: Rig) -> None:
    rig.begin()
    rig.report(rows=5, acknowledged=12, checksum=1, lost=7, rejected=2, rejection="too old")
    lines = rig.lines()
    assert [(line["line"], line["entries"]) for line in lines] == [("sink-lost", 7), ("sink-rejected", 2)]
    assert lines[1]["reason"] == "too old"
    kept = positions.read(str(rig.directory))
    assert kept
    assert (kept.lost, kept.rejected) == (7, 2)
    rendered = rig.metrics.render()
    assert "forewarn_sink_entries_lost_total 7" in rendered
    assert "forewarn_sink_entries_rejected_total 2" in rendered


@pytest.mark.parametrize(
    "result",
    [
        HookResult(FAILED, 1, 0.1, "", "it ended with exit code 1"),
        HookResult(SUCCEEDED, 0, 0.1, "", ""),
        HookResult(SUCCEEDED, 0, 0.1, "{}}", ""),
        HookResult(SUCCEEDED, 0, 0.1, '{"unknown": 1}', ""),
    ],
)
def test_a_child_that_reports_nothing_is_a_failure(rig: Rig, result: HookResult) -> None:
    rig.begin()
    rig.children.end_with(result)
    rig.sink.collect_results()
    assert "the process that sends it" in rig.lines()[-1]["reason"]
    rig.clocks.sleep(1)
    assert rig.attempts() == 3


def test_unwritable_state_directory_delays_sending(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(positions, "write", Mock(side_effect=OSError(28, "No space left on device")))
    assert rig.attempts() == 0  # nothing is sent under a name that a crash would forget
    assert "No space left on device" in rig.lines()[-1]["reason"]
    monkeypatch.undo()
    rig.clocks.sleep(1)
    assert rig.attempts() == 1
    assert rig.children.started[0]["most_rows"] == MOST_ROWS


def test_what_is_rejected_is_read_from_the_answer() -> None:
    assert sender.partial_success(b'{"partialSuccess": {"rejectedLogRecords": "3", "errorMessage": "old"}}') == (
        3,
        "old",
    )
    for content in (b"", b"{}", b"[]", b"ok", b'{"partialSuccess": {}}', b'{"partialSuccess": 1}', b"\xff"):
        assert sender.partial_success(content) == (0, "")
