# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long ``ansible -m scheduled_events`` takes with policies, beside ansible.builtin.uri fetching the document."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.processes import emulator
from benchmarks.report import AT_MOST, Goal, Quantity, Report
from benchmarks.rules import POLICY
from tools.sites.adhoc import MODULE, AdHoc
from tools.sites.link_collection import link_collection

HOSTS = {1: 7, 32: 3}  # number of hosts -> runs


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
        ansible = AdHoc(directory, link_collection(directory / "collections"))
        first = timed(ansible, 1, MODULE, ours)  # compiles the policies; the result is kept
        timed(ansible, 1, "ansible.builtin.uri", theirs)
        quantities.append(Quantity("scheduled_events, the first time ever", first, "s"))
        for hosts, runs in HOSTS.items():
            times: tuple[list[float], list[float]] = ([], [])
            for _ in range(runs):
                times[0].append(timed(ansible, hosts, MODULE, ours))
                times[1].append(timed(ansible, hosts, "ansible.builtin.uri", theirs))
            mine, baseline = map(statistics.median, times)
            where = "1 host" if hosts == 1 else f"{hosts} hosts"
            quantities.append(Quantity(f"scheduled_events with policies, {where}", mine, "s"))
            quantities.append(Quantity(f"uri, {where}", baseline, "s"))
            goals.append(Goal(where, mine / baseline, "uri", AT_MOST, 1.15))
        sent = _sent(ansible, ours) / 1000
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


def timed(ansible: AdHoc, hosts: int, module: str, args: dict[str, Any], **environ: str) -> float:
    """Return the seconds that the command takes with a module on so many hosts."""
    as_users_have_it = {"PYTHONDONTWRITEBYTECODE": None, **environ}
    begin = time.monotonic()
    outcome = ansible.run({f"h{number}": {} for number in range(hosts)}, args, module=module, environ=as_users_have_it)
    seconds = time.monotonic() - begin
    if outcome.code or list(outcome.status.values()) != ["SUCCESS"] * hosts:
        raise AssertionError(outcome.stdout + outcome.stderr)
    return seconds


def _sent(ansible: AdHoc, args: dict[str, Any]) -> int:
    """Return the bytes that one host gets."""
    timed(ansible, 1, MODULE, args, ANSIBLE_KEEP_REMOTE_FILES="1")
    return sum(path.stat().st_size for path in (ansible.directory / "remote").rglob("AnsiballZ_*.py"))
