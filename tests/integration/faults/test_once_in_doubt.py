# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A single run respects the lost records in the state directory that it is given."""

from __future__ import annotations

from pathlib import Path

from forewarn.emulator.client import EmulatorClient
from forewarn.emulator.server import EmulatorServer
from forewarn.runner.journal import lost_records
from forewarn.runner.journal.integrity import Loss
from tools.sites.commands import in_process
from tools.sites.runner_process import approvals, compiled

POLICY = """
name: web
rule:
  match:
    - id: all
      output: approve
"""


def test_once_approves_nothing_that_is_in_doubt(
    tmp_path: Path, server: EmulatorServer, emulator: EmulatorClient
) -> None:
    """docs/operations.md: nothing is approved ... until a person has seen to it."""
    tmp_path.chmod(0o700)
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    artifact = compiled(tmp_path, POLICY)
    event = emulator.schedule("Reboot", ["web_0"], notice_seconds=300)
    lost_records.LostRecords(str(state)).add(
        [Loss(event.lower(), 1, "its record in the journal is damaged", "x")], 1.8e9
    )
    done = in_process(
        *("run", "--artifact", artifact, "--once", "--state", state, "--vm-name", "web_0"),
        FOREWARN_ENDPOINT=server.vm_endpoint("web_0"),
    )
    print(done.stdout, done.stderr, sorted(path.name for path in state.iterdir()))
    assert approvals(emulator) == []
