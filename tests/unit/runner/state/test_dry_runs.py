# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state directory of a dry run, and when it reports the hooks that it would run."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from forewarn.cli import main as cli
from forewarn.errors import InputError
from forewarn.events import Event
from forewarn.runner.approvals import Approvals
from forewarn.runner.event_record import EventRecord
from forewarn.runner.hooks.dry_run_reporter import DryRunReporter
from forewarn.runner.journal.null import NoJournal
from forewarn.runner.state import dry_runs
from forewarn.runner.telemetry.log import Log
from forewarn.runner.telemetry.metrics import Metrics
from forewarn.runner.telemetry.recorder import Recorder
from tools.fixtures.clocks import ManualClocks
from tools.fixtures.recorded_state import DRAIN, UNDRAIN, RecordedState, decided, planned


class Asks(NamedTuple):
    """What is read of a verdict."""

    policy: str = "web-tier"
    rule: str = "drain"
    prepare: tuple[dict[str, Any], ...] = (DRAIN,)
    recover: tuple[dict[str, Any], ...] = (UNDRAIN,)
    prepare_within_seconds: float | None = None
    recover_when: str = "prepared"


class ReportedDryRun:
    """A pretence, and what it said."""

    def __init__(self) -> None:
        self._stream = io.StringIO()
        clocks = ManualClocks()
        self._pretence = DryRunReporter(Recorder(NoJournal(clocks), Log(self._stream, "json"), Metrics()))
        self._record = EventRecord(1, Event("A"), clocks.stamp())

    def prepare(self, *verdicts: Asks, notice: float | None = 900.0) -> list[tuple[str, list[str]]]:
        self._pretence.report_prepare(self._record, verdicts, notice)  # type: ignore[arg-type]  # as far as it is read
        return self._said()

    def gone(self) -> list[tuple[str, list[str]]]:
        self._pretence.report_recover(self._record)
        return self._said()

    def _said(self) -> list[tuple[str, list[str]]]:
        lines = [json.loads(line) for line in self._stream.getvalue().splitlines()]
        self._stream.truncate(0)
        self._stream.seek(0)
        return [(line["phase"], line["hooks"]) for line in lines]


def test_no_event_means_no_report() -> None:
    stream, clocks, nothing = io.StringIO(), ManualClocks(), None
    recorder = Recorder(NoJournal(clocks), Log(stream, "json"), Metrics())
    approvals = Approvals(nothing, nothing, recorder, clocks, nothing, nothing)  # type: ignore[arg-type]  # not asked
    assert approvals.simulate([], nothing) == []  # type: ignore[arg-type]  # a simulation looks at no record
    assert not stream.getvalue()


def test_hooks_are_reported_once_and_recoveries_later() -> None:
    said = ReportedDryRun()
    assert said.prepare(Asks()) == [("prepare", ["run /usr/local/bin/drain --wait"])]
    assert said.prepare(Asks()) == []
    assert said.prepare(Asks(), Asks(rule="other", prepare=(UNDRAIN,), recover=())) == [
        ("prepare", ["run /usr/local/bin/undrain"])
    ]
    assert said.gone() == [("recover", ["run /usr/local/bin/undrain"])]
    assert said.gone() == []


def test_what_never_was_due_is_not_recovered() -> None:
    said = ReportedDryRun()
    later = Asks(prepare_within_seconds=600.0)
    assert said.prepare(later, notice=601.0) == []
    assert said.gone() == []
    assert said.prepare(later, notice=600.0) == [("prepare", ["run /usr/local/bin/drain --wait"])]
    assert said.gone() == [("recover", ["run /usr/local/bin/undrain"])]


def test_missing_not_before_is_due_at_once() -> None:
    assert ReportedDryRun().prepare(Asks(prepare_within_seconds=600.0), notice=None) != []


def test_a_directory_is_marked_once_and_for_good(tmp_path: Path) -> None:
    assert not dry_runs.is_marked(str(tmp_path))
    for _ in range(2):
        dry_runs.claim(str(tmp_path), dry_run=True)
        assert (tmp_path / "mode").read_text() == "dry-run\n"
        assert (tmp_path / "mode").stat().st_mode & 0o777 == 0o600
    with pytest.raises(InputError, match="is that of a dry run: what is kept there was never done"):
        dry_runs.claim(str(tmp_path), dry_run=False)


@pytest.mark.parametrize("kept", ["journal.db", "heartbeat"])
def test_live_state_directory_is_not_marked(tmp_path: Path, kept: str) -> None:
    (tmp_path / kept).touch()
    dry_runs.claim(str(tmp_path), dry_run=False)
    with pytest.raises(InputError, match="is that of a live runner"):
        dry_runs.claim(str(tmp_path), dry_run=True)
    assert not dry_runs.is_marked(str(tmp_path))


def test_one_that_cannot_be_marked_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be marked as that of a dry run"):
        dry_runs.claim(str(tmp_path / "missing"), dry_run=True)


def test_link_in_place_of_the_mark_is_kept(tmp_path: Path) -> None:
    (tmp_path / "mode").symlink_to(tmp_path / "elsewhere")
    dry_runs.claim(str(tmp_path), dry_run=True)
    assert not (tmp_path / "elsewhere").exists()


# Comparing


@pytest.fixture
def both(tmp_path: Path) -> tuple[RecordedState, RecordedState]:
    """Return the state of a live runner and of its dry run."""
    live, dry = tmp_path / "live", tmp_path / "live" / "dry-run"
    dry.mkdir(parents=True)
    dry_runs.claim(str(dry), dry_run=True)
    return RecordedState(live), RecordedState(dry)


def compare(
    both: tuple[RecordedState, RecordedState], capsys: pytest.CaptureFixture[str], *more: str
) -> tuple[int, str]:
    code = cli.main(["history", "--state", both[0].directory, "--since", "2020-01-01", "--compare", *more])
    return code, capsys.readouterr().out


def decision(state: RecordedState, event_id: str, status: str = "Scheduled", **fields: Any) -> None:
    record = state.record(
        event_id, plan=[planned("prepare", DRAIN, "succeeded")] if fields.pop("drains", False) else []
    )
    state.note("decision", record, status=status, **decided("approve", **fields))


def test_the_same_words_are_the_same(
    both: tuple[RecordedState, RecordedState], capsys: pytest.CaptureFixture[str]
) -> None:
    for state in both:
        decision(state, "A1")
    code, out = compare(both, capsys)
    assert (code, out.splitlines()[-1]) == (0, "1 event: 1 the same, 0 different, 0 decided by one alone.")
    assert out.startswith("Reboot  A1  same\n")


@pytest.mark.parametrize("other", [{"output": "hold"}, {"rule": "late"}, {"policy": "db"}, {"drains": True}])
def test_other_words_are_a_difference(
    both: tuple[RecordedState, RecordedState], capsys: pytest.CaptureFixture[str], other: dict[str, Any]
) -> None:
    decision(both[0], "A1", **other)
    decision(both[1], "A1")
    code, out = compare(both, capsys)
    assert (code, "1 different" in out) == (1, True)


def test_the_last_decision_before_the_start_counts(
    both: tuple[RecordedState, RecordedState], capsys: pytest.CaptureFixture[str]
) -> None:
    for state, first in zip(both, ("hold", "approve")):
        record = state.record("A1")
        for status, output in (("Scheduled", first), ("Scheduled", "approve"), ("Started", first)):
            state.note("decision", record, status=status, **decided("approve", output=output))
    assert compare(both, capsys)[0] == 0


def test_event_of_one_run_is_no_difference(
    both: tuple[RecordedState, RecordedState], capsys: pytest.CaptureFixture[str]
) -> None:
    decision(both[0], "A1")
    both[0].record("drill-1", drill=True)
    code, out = compare(both, capsys)
    assert (code, out.splitlines()[-1]) == (0, "1 event: 0 the same, 0 different, 1 decided by one alone.")
    assert "  dry run  did not see it" in out


def test_equal_kinds_are_named_by_directory(
    both: tuple[RecordedState, RecordedState], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    decision(RecordedState(other), "A1")
    decision(both[0], "A1")
    code, out = compare(both, capsys, str(other), "--json")
    (row,) = json.loads(out)["events"]
    assert (code, [side["name"] for side in row["sides"]]) == (0, [both[0].directory, str(other)])


def test_documents_are_of_one_runner(
    both: tuple[RecordedState, RecordedState], capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare(both, capsys, "--documents")[0] == 2


def test_comparison_without_a_dry_run_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = RecordedState(tmp_path)
    assert cli.main(["history", "--state", state.directory, "--compare"]) == 2
    assert f"{tmp_path}/dry-run" in capsys.readouterr().err
