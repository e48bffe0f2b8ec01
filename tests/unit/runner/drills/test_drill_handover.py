# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Handing a drill over to the runner that works on a state directory."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from unittest.mock import Mock

import pytest
from forewarn.errors import InputError
from forewarn.runner.clocks import Stamp
from forewarn.runner.drills import drill, store
from forewarn.runner.drills.drill import Drills
from forewarn.runner.drills.store import DrillRecord, DrillStore
from tools.fixtures.clocks import ManualClocks
from tools.fixtures.drill_bench import REBOOT, changed, fail_to_write, files, hand_over, record_of


def test_submitted_drill_is_private_to_the_runner(state: Path, clocks: ManualClocks, drills: Drills) -> None:
    event_id = hand_over(state, clocks)
    assert files(state) == [f"{event_id}.json"]
    assert (state / "drills" / f"{event_id}.json").stat().st_mode & 0o777 == 0o600
    record = DrillStore(str(state)).read(event_id)
    assert record == DrillRecord(REBOOT, clocks.stamp())
    assert record_of(state, event_id) == changed(handed_over=list(clocks.stamp()))


def test_without_a_runner_nothing_is_handed_over(tmp_path: Path, clocks: ManualClocks) -> None:
    (tmp_path / "drills").mkdir()
    with pytest.raises(InputError, match=r"no runner works on .*: no runner has ever worked there"):
        hand_over(tmp_path, clocks)
    with pytest.raises(InputError, match="no runner works on"):
        drill.cancel(str(tmp_path), "drill-0", clocks)
    assert files(tmp_path) == []


def test_invalid_request_is_not_submitted(state: Path, clocks: ManualClocks, drills: Drills) -> None:
    with pytest.raises(InputError, match="the notice"):
        hand_over(state, clocks, REBOOT._replace(notice_seconds=float("nan")))
    assert files(state) == []


def test_a_directory_that_cannot_be_made_is_reported(
    state: Path, clocks: ManualClocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "mkdir", Mock(side_effect=PermissionError(13, "Permission denied")))
    with pytest.raises(InputError, match=r"drills: Permission denied\. Only root and the runner's user may write"):
        hand_over(state, clocks)


def test_a_full_disk_is_reported_and_leaves_nothing(
    state: Path, clocks: ManualClocks, drills: Drills, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "write", fail_to_write)
    with pytest.raises(InputError, match="No space left on device"):
        hand_over(state, clocks)
    assert files(state) == []


def test_partial_write_is_not_submitted(
    state: Path, clocks: ManualClocks, drills: Drills, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "write", lambda file, content: len(content) - 1)
    with pytest.raises(InputError, match="No space left on device"):
        hand_over(state, clocks)
    assert files(state) == []


def test_link_in_place_of_the_directory_is_refused(state: Path, clocks: ManualClocks) -> None:
    (state / "elsewhere").mkdir()
    (state / "drills").symlink_to(state / "elsewhere")
    with pytest.raises(InputError):
        hand_over(state, clocks)
    assert list((state / "elsewhere").iterdir()) == []


@pytest.mark.root(reason="only root can give a file away")
@pytest.mark.parametrize("there", [False, True])
def test_file_submitted_by_root_belongs_to_the_runner(
    state: Path, clocks: ManualClocks, drills: Drills, there: bool
) -> None:
    event_id = hand_over(state, clocks)
    assert (state / "drills").stat().st_uid == 0  # the runner's, here
    if not there:
        shutil.rmtree(state / "drills")
    os.chown(state, 12345, 12346)
    event_id = hand_over(state, clocks)
    assert ((state / "drills").stat().st_uid, (state / "drills").stat().st_gid) == (12345, 12346)
    status = (state / "drills" / f"{event_id}.json").stat()
    assert (status.st_uid, status.st_gid) == (12345, 12346)
    drill.cancel(str(state), event_id, clocks)
    assert (state / "drills" / f"{event_id}.cancel").stat().st_uid == 12345


def test_ids_are_new_each_time() -> None:
    ids = {store.new_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert all(len(one) == 18 for one in ids)


def test_a_stamp_is_kept_as_it_was(state: Path, clocks: ManualClocks, drills: Drills) -> None:
    found = DrillStore(str(state))
    record = DrillRecord(REBOOT, Stamp(1.25, 2.5, "b"), Stamp(3.125, 4.0, "b"), Stamp(5.0, 6.0, "b"), ("web_0", "é"))
    found.write("drill-1", record)
    assert found.read("drill-1") == record
