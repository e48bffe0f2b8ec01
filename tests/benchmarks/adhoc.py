# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long ``ansible -m scheduled_events`` takes with policies, beside ansible.builtin.uri fetching the document."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.processes import emulator
from benchmarks.report import AT_MOST, Goal, Quantity, Report
from benchmarks.rules import POLICY
from tools.link_collection import link_collection

HOSTS = {1: 7, 32: 3}  # number of hosts -> runs
_ANSIBLE = str(Path(sysconfig.get_path("scripts"), "ansible"))


def run() -> Report:
    """Run both in turn, on one host and on many."""
    quantities, goals = [], []
    with tempfile.TemporaryDirectory(prefix="forewarn-bench-") as name, emulator(["web_0"]) as service:
        directory = Path(name)
        service.schedule("Freeze", ["web_0"], duration_seconds=5)
        ours = {"endpoint": service.vm_endpoint("web_0"), "policies": str(POLICY)}
        theirs = {
            "url": f"{service.vm_endpoint('web_0')}/metadata/scheduledevents?api-version=2020-07-01",
            "headers": {"Metadata": "true"},
            "return_content": True,
            "use_proxy": False,
        }
        ansible = _ansible(directory)
        first = ansible(1, "forewarn.azure.scheduled_events", ours)  # compiles; what came of it is kept
        ansible(1, "ansible.builtin.uri", theirs)
        quantities.append(Quantity("scheduled_events, the first time ever", first, "s"))
        for hosts, runs in HOSTS.items():
            times: tuple[list[float], list[float]] = ([], [])
            for _ in range(runs):
                times[0].append(ansible(hosts, "forewarn.azure.scheduled_events", ours))
                times[1].append(ansible(hosts, "ansible.builtin.uri", theirs))
            mine, baseline = map(statistics.median, times)
            where = "1 host" if hosts == 1 else f"{hosts} hosts"
            quantities.append(Quantity(f"scheduled_events with policies, {where}", mine, "s"))
            quantities.append(Quantity(f"uri, {where}", baseline, "s"))
            goals.append(Goal(where, mine / baseline, "uri", AT_MOST, 1.15))
        sent = _sent(directory, ansible, ours) / 1000
    quantities.append(Quantity("sent to a host", sent, "kB"))
    return Report(
        "Asking a fleet ad hoc",
        quantities,
        goals,
        [
            "Medians of whole runs of ansible, in turn, all hosts this machine, with five forks.",
            "Policies are YAML, compiled by the first run. What is sent: the file that Ansible makes of the module.",
        ],
    )


def _ansible(directory: Path) -> Callable[..., float]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)  # as users have it
    environ.update(
        ANSIBLE_COLLECTIONS_PATH=str(link_collection(directory / "collections")),
        ANSIBLE_HOME=str(directory / "home"),
        ANSIBLE_REMOTE_TEMP=str(directory / "remote"),
        ANSIBLE_NOCOLOR="1",
    )
    (directory / "ansible.cfg").write_text("[defaults]\n")

    def call(hosts: int, module: str, args: dict[str, Any], more: dict[str, str] | None = None) -> float:
        common = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
        inventory = {"all": {"hosts": {f"h{number}": common for number in range(hosts)}}}
        (directory / "inventory.json").write_text(json.dumps(inventory))
        command: Sequence[str] = [_ANSIBLE, "all", "-i", "inventory.json", "-m", module, "-a", json.dumps(args)]
        begin = time.monotonic()
        process = subprocess.run(
            command, cwd=directory, env={**environ, **(more or {})}, capture_output=True, text=True, check=False
        )
        seconds = time.monotonic() - begin
        if process.returncode or process.stdout.count("SUCCESS") != hosts:
            raise AssertionError(process.stdout + process.stderr)
        return seconds

    return call


def _sent(directory: Path, ansible: Callable[..., float], args: dict[str, Any]) -> int:
    """Return the bytes that one host gets."""
    ansible(1, "forewarn.azure.scheduled_events", args, {"ANSIBLE_KEEP_REMOTE_FILES": "1"})
    return sum(path.stat().st_size for path in (directory / "remote").rglob("AnsiballZ_*.py"))
