# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A group of many VMs with a real etcd whose nodes are killed, paused, cut off, filled and wiped; and with Azurite."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tools.servers.azurite import installed
from tools.suite.sizes import SEED, SIZE

TESTS = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("store", "seconds"), [("etcd", SIZE.group_seconds), ("blob", SIZE.group_seconds / 2)])
def test_no_promise_is_broken_whatever_fails(lab_machine: None, tmp_path: Path, store: str, seconds: float) -> None:
    if store == "blob":
        installed()  # here: the namespaces have no way out
    tmp_path.chmod(0o755)
    command = ["unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc", "--kill-child", sys.executable]
    done = subprocess.run(
        [*command, "-m", "lab.groups.story", str(seconds), str(SEED), str(tmp_path), store],
        cwd=TESTS,
        capture_output=True,
        text=True,
        timeout=seconds + 700,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads(done.stdout)
    print(report)
    assert report["broken"] == []
    assert report["done"]["approved events"] > seconds / 30
