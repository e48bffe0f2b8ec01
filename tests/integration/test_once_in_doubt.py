# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A single run goes by what is in doubt in the state directory that it is given."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from forewarn.compiler.policyfile import compile_policies
from forewarn.emulator.client import EmulatorClient
from forewarn.emulator.server import EmulatorServer
from forewarn.emulator.spec import Settings
from forewarn.runner.journal import doubts
from forewarn.runner.journal.mark import Loss

POLICY = """
name: web
rule:
  match:
    - id: all
      output: approve
"""


def test_once_approves_nothing_that_is_in_doubt(tmp_path: Path) -> None:
    """docs/operations.md: nothing is approved ... until a person has seen to it."""
    tmp_path.chmod(0o700)
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    (tmp_path / "web.yml").write_text(POLICY)
    artifact = tmp_path / "policy.json"
    artifact.write_text(json.dumps(compile_policies([tmp_path / "web.yml"]).artifact))
    with EmulatorServer(vms=["web_0"], settings=Settings()) as server, EmulatorClient(server.url) as emulator:
        event = emulator.schedule("Reboot", ["web_0"], notice_seconds=300)
        doubts.Doubts(str(state)).add([Loss(event.lower(), 1, "its record in the journal is damaged", "x")], 1.8e9)
        command = [sys.executable, "-m", "forewarn.cli.main", "run", "--artifact", str(artifact), "--once"]
        environ = {**os.environ, "FOREWARN_ENDPOINT": server.vm_endpoint("web_0")}
        done = subprocess.run(
            [*command, "--state", str(state), "--vm-name", "web_0"],
            env=environ,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        print(done.stdout, done.stderr, sorted(path.name for path in state.iterdir()))
        assert [entry for entry in emulator.requests() if entry["method"] == "POST"] == []
