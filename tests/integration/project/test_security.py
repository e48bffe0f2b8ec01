# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What docs/SECURITY.md claims of the running service."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import psutil
from forewarn.emulator.server import EmulatorServer
from tools.fixtures.policy_data import artifact_data, policy


def test_runner_listens_nowhere_and_connects_to_the_service(tmp_path: Path) -> None:
    artifact = tmp_path / "policy.json"
    artifact.write_text(json.dumps(artifact_data(policy({"output": "hold"}))))
    with EmulatorServer(vms=["web_0"]) as server:
        runner = subprocess.Popen(
            [sys.executable, "-m", "forewarn.cli.main", "run", "--artifact", str(artifact), "--log-format", "json"],
            env={
                **os.environ,
                "FOREWARN_ENDPOINT": server.vm_endpoint("web_0"),
                "STATE_DIRECTORY": str(tmp_path / "s"),
            },
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert runner.stdout
            seen: set[str] = set()
            while not {"document", "identity"} <= seen:
                seen.add(json.loads(runner.stdout.readline())["line"])
            connections = psutil.Process(runner.pid).net_connections("inet")
        finally:
            runner.kill()
            runner.communicate()
    assert [each for each in connections if each.status == psutil.CONN_LISTEN or not each.raddr] == []
    assert {each.raddr.port for each in connections} == {urlsplit(server.url).port}
