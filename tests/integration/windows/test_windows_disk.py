# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""State on a disk that is full or read-only: events with hooks are held until it is mended, and nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.fixtures.journals import run_with_own_mounts

BAD_DISK = """
import json, sys
from pathlib import Path
from tools.worlds.windows.bad_disk import play
print(json.dumps(play(Path(sys.argv[1]))))
"""
HELD: dict[str, list[str]] = {"said": [], "approvals": []}


@pytest.mark.root(reason="a plain user may not mount everywhere")
def test_bad_disk_holds_events_until_mended(tmp_path: Path) -> None:
    seen = run_with_own_mounts(BAD_DISK, tmp_path)
    start, middle, read_only = seen.values()
    for story in (start, middle):
        assert story["reason"].endswith("journal.db cannot be used: the disk is full")
    assert read_only["reason"].endswith("journal.db cannot be used: Permission denied")
    assert "nothing can be kept" in middle["status"]["out"]
    assert f"held where there are hooks: Reboot {middle['event']}" in middle["status"]["out"]
    assert "see the runner's log" in start["status"]["err"]
    for story in seen.values():
        assert story["before"] == HELD
        assert story["after"] == {"said": ["prepare"], "approvals": [[story["event"]]]}
