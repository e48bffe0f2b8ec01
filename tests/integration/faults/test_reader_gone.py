# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A runner whose log nobody reads any more ends, and so do its hooks."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from forewarn.emulator.client import EmulatorClient
from forewarn.emulator.server import EmulatorServer
from tools.fixtures.hook_bench import is_running
from tools.sites.commands import vm_command
from tools.sites.runner_process import compiled
from tools.sites.waiting import wait_until

POLICY = """
name: web
rule:
  match:
    - id: all
      output: approve
      prepare: [{run: [/bin/sh, -c, 'echo $$ > PID; exec sleep 60']}]
      recover: [{run: [/bin/true]}]
"""


def test_closed_log_ends_the_runner_and_its_hooks(
    tmp_path: Path, server: EmulatorServer, emulator: EmulatorClient
) -> None:
    tmp_path.chmod(0o700)
    pid_file = tmp_path / "pid"
    artifact = compiled(tmp_path, POLICY.replace("PID", str(pid_file)))
    emulator.schedule("Reboot", ["web_0"], notice_seconds=300)
    environ = {**os.environ, "FOREWARN_ENDPOINT": server.vm_endpoint("web_0")}
    command = [*vm_command(quick=True), "run", "--artifact", str(artifact)]
    options = ["--state", str(tmp_path / "state"), "--vm-name", "web_0"]
    with subprocess.Popen([*command, *options], env=environ, stdout=subprocess.PIPE) as runner:
        try:
            wait_until(lambda: pid_file.exists() and pid_file.read_text().strip(), what="the hook runs")
            hook = int(pid_file.read_text())
            assert runner.stdout
            runner.stdout.close()
            emulator.schedule("Freeze", ["web_0"], notice_seconds=300)  # about which the log has a line
            assert runner.wait(20) == 141
            assert not is_running(hook)
        finally:
            runner.kill()
