# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn policy replay`` as a command: a real runner's journal, lines of JSON, exit codes."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from forewarn.emulator.client import EmulatorClient
from forewarn.emulator.server import EmulatorServer
from forewarn.emulator.spec import Settings
from tools.fixtures.events import NOW, listed
from tools.fixtures.recorded_state import RecordedState
from tools.sites.commands import in_process
from tools.sites.runner_process import runners

POLICY = """
name: web-tier
params:
  - {name: tolerable_freeze, type: int, default: 9}
rule:
  match:
    - id: brief-freeze
      condition: event.EventType == "Freeze" && event.DurationInSeconds < params.tolerable_freeze
      output: approve
"""
CAREFUL = 'name: careful\nrule:\n  match:\n    - condition: notice < duration("5m")\n      output: approve\n'


replay = partial(in_process, "policy", "replay")


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "web-tier.yml"
    path.write_text(POLICY)
    return path


def event(event_id: str = "E1", **values: Any) -> dict[str, Any]:
    return listed(event_id, **{"Resources": ["web_0"], **values})


def line(seconds: float, *events: dict[str, Any], **more: Any) -> str:
    at = (NOW + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return json.dumps({"time": at, "document": {"DocumentIncarnation": int(seconds), "Events": events}, **more})


def recording(tmp_path: Path, lines: Sequence[str]) -> Path:
    path = tmp_path / "recorded.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


# A runner's journal


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the state directory of a runner that has approved a brief freeze and held a reboot."""
    directory = tmp_path_factory.mktemp("ran")
    (directory / "web-tier.yml").write_text(POLICY)
    settings = Settings(start_delay=0.2, gone_after=0.5)
    with (
        EmulatorServer(vms=["web_0", "web_1"], settings=settings) as server,
        EmulatorClient(server.url) as emulator,
        runners(server, directory) as start,
    ):
        runner = start("--policy", str(directory / "web-tier.yml"))
        runner.wait_for("started")
        brief = emulator.schedule("Freeze", ["web_0"], duration_seconds=5, impact_seconds=0.1)
        runner.wait_for("approved")
        runner.wait_for("event-gone", event_id=brief)
        reboot = emulator.schedule("Reboot", ["web_0", "web_1"])
        runner.wait_for("decision", event_id=reboot)
        assert runner.stop() == (0, "")
    (state,) = {path.parent for path in directory.rglob("journal.db")}
    return state


def test_the_policy_that_ran_decides_as_it_did(journal: Path, policy: Path) -> None:
    result = replay(policy, "--from", journal, "--json")
    assert (result.returncode, result.stderr) == (0, "")
    data = json.loads(result.stdout)
    assert data["forewarn"] == {"schema": "policy-replay", "version": 1}
    freeze, reboot = data["events"]
    assert [replayed["event"]["EventType"] for replayed in (freeze, reboot)] == ["Freeze", "Reboot"]
    assert [replayed["then"]["outcome"] for replayed in (freeze, reboot)] == ["approved", "held"]
    assert [replayed["now"]["outcome"] for replayed in (freeze, reboot)] == ["approved", "held"]
    assert [replayed["changed"] for replayed in (freeze, reboot)] == [False, False]
    assert {replayed["vm"] for replayed in (freeze, reboot)} == {"web_0"}
    # Then it took a request; now it takes no time.
    assert 0 < freeze["then"]["latency_seconds"] < 10
    assert freeze["now"]["latency_seconds"] == 0
    shown = replay(policy, "--from", journal).stdout
    assert shown.count("        approved at ") == 2
    assert shown.count("approved") == 3
    assert freeze["then"]["ahead_seconds"] <= freeze["now"]["ahead_seconds"]
    assert data["summary"]["compared"] == 2
    assert replay(policy, "--from", journal / "journal.db", "--changed").returncode == 0


def test_changed_exits_with_1_for_another_parameter(journal: Path, policy: Path) -> None:
    result = replay(policy, "--from", journal, "--param", "tolerable_freeze=3", "--changed")
    assert result.returncode == 1
    assert "CHANGED" in result.stdout
    assert "then  approve by web-tier/brief-freeze" in result.stdout
    assert "now   hold" in result.stdout
    assert "Reboot" not in result.stdout
    assert "1 of 2 decided differently now" in result.stdout
    assert "approve by web-tier/brief-freeze -> hold" in result.stdout


def test_of_another_vm(journal: Path, policy: Path) -> None:
    data = json.loads(replay(policy, "--from", journal, "--vm-name", "web_7", "--json").stdout)
    assert [replayed["now"]["outcome"] for replayed in data["events"]] == ["not-sent", "held"]


def test_since(journal: Path, policy: Path) -> None:
    result = replay(policy, "--from", journal, "--since", "2100-01-01", "--json")
    data = json.loads(result.stdout)
    assert (result.returncode, data["events"], data["summary"]["events"]) == (0, [], 0)
    assert replay(policy, "--from", journal, "--since", "yesterday").returncode == 2


def test_a_journal_of_months_ago(tmp_path: Path, policy: Path) -> None:
    recorded = RecordedState(tmp_path)
    recorded.beat(vm="web_1")
    document = {"DocumentIncarnation": 1, "Events": [event(Resources=["web_0", "web_1"], NotBefore=recorded.at(900))]}
    recorded.note("document", document=document)
    recorded.note("document", document=document, drill=True)
    recorded.clocks.now += 40
    recorded.note("runner-stopped")
    result = replay(policy, "--from", tmp_path)
    assert result.returncode == 0
    assert "approved at 2026-11-21T14:05:41Z, 30 s after it was first seen, 14 min 30 s before NotBefore" in (
        result.stdout
    )
    compared = replay(policy, "--from", tmp_path, "--changed")
    assert compared.returncode == 2
    assert "no decisions to compare with" in compared.stderr


# Lines


def test_lines_with_times(tmp_path: Path, policy: Path) -> None:
    brief, late = event(), event("E2", EventType="Reboot")
    path = recording(tmp_path, [line(0), line(10, brief), line(20, brief, late), line(30, late)])
    result = replay(policy, "--from", path, "--vm-name", "web_0")
    assert result.stderr == ""
    assert result.stdout == (
        "2026-05-04T12:00:10Z  Freeze  E1  affects web_0\n"
        "  now   approve by web-tier/brief-freeze: rule brief-freeze applies: "
        'event.EventType == "Freeze" && event.DurationInSeconds < params.tolerable_freeze\n'
        "        approved at 2026-05-04T12:00:10Z, 0 s after it was first seen, 14 min 50 s before NotBefore\n"
        "\n"
        "2026-05-04T12:00:20Z  Reboot  E2  affects web_0\n"
        "  now   hold: no rule of any policy applies to this event\n"
        "\n"
        "4 documents, 2 events, 2026-05-04T12:00:00Z to 2026-05-04T12:00:30Z\n"
        "                                    NOW\n"
        "approved                            1\n"
        "not sent                            0\n"
        "held                                1\n"
        "started when first seen             0\n"
        "approval after first sight, median  0 s\n"
        "  longest                           0 s\n"
        "approval before NotBefore, median   14 min 50 s\n"
        "  shortest                          14 min 50 s\n"
    )
    assert replay(policy, "--from", path, "--vm-name", "web_0", "--summary").stdout.startswith("4 documents")


def test_decision_that_changes_later_has_its_time(tmp_path: Path) -> None:
    (tmp_path / "careful.yml").write_text(CAREFUL)
    path = recording(tmp_path, [line(0, event()), line(800, event())])
    result = replay(tmp_path / "careful.yml", "--from", path, "--vm-name", "web_0")
    assert "  now   hold: no rule of any policy applies to this event\n" in result.stdout
    assert "        after 10 min 1 s: approve by careful/match-1" in result.stdout


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("piped", [False, True])
def test_files_and_pipes_compressed_or_not(tmp_path: Path, policy: Path, compress: bool, piped: bool) -> None:
    content = (line(0, event(), vm="web_0") + "\n").encode()
    content = gzip.compress(content) if compress else content
    path = tmp_path / "recorded"
    path.write_bytes(content)
    result = replay(policy, "--from", "-" if piped else path, "--json", stdin=content)
    assert (result.returncode, result.stderr) == (0, "")
    (replayed,) = json.loads(result.stdout)["events"]
    assert replayed["now"]["outcome"] == "approved"


def test_several_recordings(tmp_path: Path, policy: Path) -> None:
    one = recording(tmp_path, [line(0, event())])
    two = tmp_path / "two.jsonl"
    two.write_text(line(0, event("E2")))
    data = json.loads(replay(policy, "--from", one, "--from", two, "--json").stdout)
    assert [(replayed["source"], replayed["event"]["EventId"]) for replayed in data["events"]] == [
        (str(one), "E1"),
        (str(two), "E2"),
    ]


def test_unreadable_lines_are_counted_and_skipped(tmp_path: Path, policy: Path) -> None:
    path = recording(tmp_path, ["{", line(0, event()), *["[]"] * 12])
    result = replay(policy, "--from", path, "--vm-name", "web_0")
    assert result.returncode == 0
    assert f"warning: {path}:1: not JSON: Expecting property name" in result.stderr
    assert f"warning: {path}:11: the line is not a JSON object\n" in result.stderr
    assert "3 more lines could not be read" in result.stderr
    assert "13 lines that cannot be read" in result.stdout


def test_changed_exits_with_1_after_unreadable_lines(journal: Path, tmp_path: Path, policy: Path) -> None:
    """A comparison that has not seen every document has not passed."""
    path = recording(tmp_path, ["{", line(0)])
    assert replay(policy, "--from", journal, "--from", path, "--changed").returncode == 1


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{\n[]\n", "no line could be read"),
        (b"\n", "there are no documents in it"),
        (b"SQLite format 3\0", "is a database"),
        (b"\x1f\x8b\x08\x00garbage", "cannot be read to its end"),
        (gzip.compress(b'{"Events": []}\n' * 1000, mtime=0)[:40], "cannot be read to its end"),
    ],
    ids=["no JSON", "no line", "a database", "no gzip", "half a gzip"],
)
def test_unreadable_recording_is_an_error(tmp_path: Path, policy: Path, content: bytes, said: str) -> None:
    path = tmp_path / "recorded"
    path.write_bytes(content)
    result = replay(policy, "--from", path, "--summary")
    assert result.returncode == 2
    assert said in result.stderr


def test_what_is_not_there(tmp_path: Path, policy: Path) -> None:
    for source, said in ((tmp_path / "none", "No such file"), (tmp_path, "there is no journal in")):
        result = replay(policy, "--from", source)
        assert result.returncode == 2
        assert said in result.stderr
    assert replay(policy).returncode == 2


def test_a_policy_over_the_time_needs_times(tmp_path: Path) -> None:
    (tmp_path / "careful.yml").write_text(CAREFUL)
    path = recording(tmp_path, [json.dumps({"DocumentIncarnation": 1, "Events": [event()]})])
    result = replay(tmp_path / "careful.yml", "--from", path)
    assert result.returncode == 2
    assert f"{path}:1: the line has no 'time'" in result.stderr


def test_missing_vm_name_is_reported(tmp_path: Path, policy: Path) -> None:
    result = replay(policy, "--from", recording(tmp_path, [line(0, event())]))
    assert "name it with --vm-name" in result.stderr


def test_older_lines_are_counted(tmp_path: Path, policy: Path) -> None:
    result = replay(policy, "--from", recording(tmp_path, [line(10, event()), line(0, event())]), "--vm-name", "web_0")
    assert "1 document older than the previous one" in result.stderr


def test_how_far_it_is_is_for_terminals_only(tmp_path: Path, policy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forewarn.cli.policy.output.progress_line.FIRST_SECONDS", 0)
    path = recording(tmp_path, [line(seconds) for seconds in range(5)])
    assert replay(policy, "--from", path).stderr == ""
    shown = replay(policy, "--from", path, terminal=True).stderr
    assert "1 document, 20% of " in shown
    assert shown.endswith("\r\033[K")


def test_texts_of_a_recording_are_shown_not_obeyed(tmp_path: Path, policy: Path) -> None:
    path = recording(tmp_path, [line(0, event("E1\x1b[2J\n2026"), vm="web_0")])
    assert "E1\\x1b[2J\\n2026" in replay(policy, "--from", path).stdout
