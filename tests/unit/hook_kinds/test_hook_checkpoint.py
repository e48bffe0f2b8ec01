# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kind checkpoint: which files count as saved."""

from __future__ import annotations

from pathlib import Path

import pytest
from forewarn.hook_kinds.common.process import PREPARE, perform
from forewarn.hook_kinds.common.work import HookFailedError

EVENT = {"EventId": "1", "EventType": "Reboot"}


def save(directory: Path, command: list[str]) -> None:
    options = {"file": str(directory / "saved"), "run": command}
    perform("checkpoint", PREPARE, options, EVENT, 0.9, str(directory / "memory.json"))


def test_file_of_an_earlier_run_does_not_count(tmp_path: Path) -> None:
    """The content of an event changes hours after its preparation, so the hook runs again, and nothing is saved."""
    save(tmp_path, ["/bin/touch", str(tmp_path / "saved")])
    with pytest.raises(HookFailedError, match="saved has not been written since this hook began"):
        save(tmp_path, ["/bin/true"])


def test_new_file_with_an_old_time_counts(tmp_path: Path) -> None:
    """The clock may have been set meanwhile."""
    saved = tmp_path / "saved"
    saved.touch()
    save(tmp_path, ["/bin/touch", "--date=2001-01-01", str(saved)])
    assert saved.stat().st_mtime < 1e9


def test_a_file_that_disappears_is_not_saved(tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    saved.touch()
    with pytest.raises(HookFailedError, match="has not been written"):
        save(tmp_path, ["/bin/rm", str(saved)])
