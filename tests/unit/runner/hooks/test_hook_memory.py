# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What hooks of a kind remember ends with the last event that needs it, however that ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from forewarn.policy.decision import APPROVE, Verdict
from forewarn.runner.event_record import EventRecord
from forewarn.runner.hooks.commands import HookSettings
from forewarn.runner.hooks.open_records import OpenRecords
from tools.worlds.stage import Stage

DRAIN = {"kind": "haproxy", "options": {"socket": "/run/haproxy/admin.sock", "server": "web/a"}}
OTHER = {"kind": "haproxy", "options": {"socket": "/run/haproxy/admin.sock", "server": "web/b"}}


def opened(
    records: OpenRecords, stage: Stage, event_id: str, *hooks: dict[str, Any], begun: bool = True
) -> EventRecord:
    record = records.open(stage.event(event_id), drill=False)
    record.plan.update([Verdict("p", APPROVE, "drain", "", "", prepare=hooks)])
    for run in record.plan.runs:
        run.attempts = int(begun)
    return record


def test_memory_is_kept_while_an_event_needs_it(stage: Stage, tmp_path: Path) -> None:
    settings = HookSettings(memory_directory=str(tmp_path))
    records = OpenRecords(stage.recorder, stage.world.clocks(), settings)
    files = [Path(str(settings.memory_file(hook))) for hook in (DRAIN, OTHER)]
    for file in files:
        file.write_text("{}")
    first = opened(records, stage, "A", DRAIN, {"run": ["/bin/true"]})
    second = opened(records, stage, "B", DRAIN, OTHER)
    waiting = opened(records, stage, "C", OTHER, begun=False)
    records.close(first, "dealt with by a person")
    assert [file.exists() for file in files] == [True, True]
    records.close(second, "recovered")
    assert [file.exists() for file in files] == [False, False], "what has not begun remembers nothing"
    records.close(waiting, "recovered")


def test_without_a_directory_there_is_nothing_to_forget(stage: Stage) -> None:
    records = OpenRecords(stage.recorder, stage.world.clocks(), HookSettings())
    records.close(opened(records, stage, "A", DRAIN), "recovered")
    assert list(records) == []
