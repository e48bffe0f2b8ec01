# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the playbook ``status`` costs the control node beside SSH: its hosts answer from files, at once."""

from __future__ import annotations

import json
import resource
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks.report import AT_MOST, Goal, Quantity, Report
from tools.sites import connection
from tools.sites.adhoc import AdHoc
from tools.sites.ansible_cores import ansible
from tools.sites.commands import run_program
from tools.sites.link_collection import link_collection
from tools.worlds.fleets import report

HOSTS = (100, 1000)
SECONDS = 20.0  # the limit, for 1,000 hosts
_RAW = "- {hosts: all, gather_facts: false, become: true, tasks: [{ansible.builtin.raw: 'true'}]}\n"


def run() -> Report:
    """Run the playbook and its baseline in turn, on few hosts and on many."""
    quantities, costs, times = [], {}, {}
    for hosts in HOSTS:
        for name, playbook in (("raw", "raw.yml"), ("status", "forewarn.azure.status")):
            with tempfile.TemporaryDirectory(prefix="forewarn-bench-") as directory:
                times[name], cpu = _play(Path(directory), playbook, hosts)
            costs[name, hosts] = cpu / hosts
            quantities.append(Quantity(f"{name}, {hosts:,} hosts", times[name], "s"))
            quantities.append(Quantity(f"{name}, {hosts:,} hosts, CPU of each", 1000 * cpu / hosts, "ms"))
    few, many = HOSTS
    return Report(
        "Asking a fleet by a playbook",
        quantities,
        [
            Goal(f"{many:,} hosts, CPU", costs["status", many] / costs["raw", many], "raw", AT_MOST, 1.2),
            Goal(f"{many:,} hosts, time", times["status"] / SECONDS, f"{SECONDS:g} s", AT_MOST, 1),
            Goal("CPU of a host, of many", costs["status", many] / costs["status", few], "of few", AT_MOST, 1.2),
        ],
        [
            "Whole runs of ansible-playbook, with five forks. The connection answers from a file: no SSH, no sudo.",
            "raw: a playbook with the task ansible.builtin.raw alone, the least that Ansible can do on each host.",
        ],
    )


def _play(directory: Path, playbook: str, hosts: int) -> tuple[float, float]:
    """Return the seconds that a playbook takes on so many hosts, and its seconds of CPU."""
    environ = _environ(directory)
    inventory: dict[str, Mapping[str, str]] = {}
    for name in (f"web_{number}" for number in range(hosts)):
        inventory[name] = {"ansible_connection": "scripted_vm"}
        script = {"status": [0, report(vm=name)["stdout"], ""], "other": [0, "", ""]}
        (directory / "vms" / f"{name}.json").write_text(json.dumps(script))
    (directory / "hosts.json").write_text(json.dumps({"all": {"hosts": inventory}}))
    (directory / "raw.yml").write_text(_RAW)
    before, begin = _cpu(), time.monotonic()
    process = run_program(
        *(ansible("ansible-playbook"), "-i", "hosts.json", playbook), cwd=directory, env=environ, timeout=1800
    )
    seconds, cpu = time.monotonic() - begin, _cpu() - before
    if process.returncode or f"web_{hosts - 1} " not in process.stdout:
        raise AssertionError(process.stdout[-3000:] + process.stderr)
    return seconds, cpu


def _environ(directory: Path) -> dict[str, str]:
    (directory / "vms").mkdir()
    environ = {
        **AdHoc(directory, link_collection(directory / "collections")).environ,
        "ANSIBLE_CONNECTION_PLUGINS": connection.__path__[0],
        "SCRIPTED_VMS": str(directory / "vms"),
    }
    environ.pop("PYTHONDONTWRITEBYTECODE", None)  # as users have it
    return environ


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
