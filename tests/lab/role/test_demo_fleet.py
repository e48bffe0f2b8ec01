# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The demo's second act: it shows what it promises on real hosts, and says why where it cannot run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import psutil
import pytest
from tools.sites.bare_environment import bare_environment

ROWS = {
    "rollout": "running, ok",
    "rollout again": "0 changes",
    "freeze of 5 s": "approved by brief-freeze",
    "ad-hoc question": "hold",
    "freeze, no duration": "held by otherwise",
    "web server, before": "inactive",
    "reboot": "approved by reboot",
    "web server, after": "active",
    "a broken policy": "refused, untouched",
    "rollout of a group": "done",
    "one event, two hosts": "approved together",
    "two events, one slot": "active",
    "etcd without its leader": "approved by web_2",
}


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the interpreter of an environment as the README makes it."""
    return bare_environment(tmp_path_factory.mktemp("bare"))


@pytest.mark.in_turn(4)  # it takes two minutes
@pytest.mark.lab
def test_demo_fleet_shows_every_act_as_expected(lab_machine: None, bare_python: Path, repository: Path) -> None:
    process = subprocess.run(
        [bare_python, "demo/fleet_demo.py"],
        cwd=repository,
        capture_output=True,
        text=True,
        timeout=1_800,
        check=False,
    )
    assert process.returncode == 0, process.stdout[-6000:] + process.stderr
    lines = process.stdout[process.stdout.index("\nWHAT ") :].strip().split("\n\n")[0].splitlines()[1:]
    rows = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in lines]
    assert list(dict.fromkeys(row[0] for row in rows)) == list(ROWS)
    assert [row[2:] for row in rows] == [[ROWS[row[0]], ROWS[row[0]], "yes"] for row in rows]
    assert "\x1b" not in process.stdout  # plain in a pipe


# As root on a machine that could have hosts, if it had the programs.
ALMOST = """
import os, pathlib
from lab import machine
os.geteuid, machine._linux, machine.control_groups = lambda: 0, lambda: (6, 1), pathlib.Path
machine._SYSTEM_PATH = os.environ["PATH"]
import fleet_demo
exit(fleet_demo.main())
"""


def test_missing_programs_are_named(bare_python: Path, repository: Path, tmp_path: Path) -> None:
    for program in ("debootstrap", "ip", "mount", "setpriv", "ssh", "ssh-keygen", "unshare", "openssl"):
        (tmp_path / program).write_text("#!/bin/sh\n")
        (tmp_path / program).chmod(0o755)
    reason = "the lab needs more programs: apt-get install etcd-server systemd-container"
    process = subprocess.run(
        [bare_python, "-c", ALMOST],
        env={"PATH": str(tmp_path), "PYTHONPATH": f"{repository}/demo:{repository}/tests"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert process.returncode == 3
    assert process.stdout + process.stderr == f"error: The demo of a fleet cannot run here: {reason}.\n"


def test_a_row_that_differs_is_a_failure(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(repository / "demo"))
    import fleet_demo

    demo = fleet_demo.Demo.__new__(fleet_demo.Demo)
    demo.rows = []

    class SomeHost:
        name = "web_0"

    for found in ("approved by reboot", "held by otherwise"):
        demo._judge("reboot", SomeHost(), "approved by reboot", found)  # type: ignore[arg-type]  # its name is all of it
    assert [row[-1] for row in demo.rows] == ["yes", "no"]
    assert fleet_demo.verdict(demo.rows) == ["reboot, web_0: held by otherwise, not approved by reboot"]


@pytest.mark.lab
def test_interrupted_demo_leaves_no_host_or_file(
    lab_machine: None, bare_python: Path, repository: Path, tmp_path: Path
) -> None:
    with subprocess.Popen(
        [bare_python, "-u", "demo/fleet_demo.py"],
        cwd=repository,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "$ ansible-playbook" in line:  # by now the hosts are there
                break
        started = psutil.Process(process.pid).children(recursive=True)
        assert [child for child in started if child.name() == "systemd-nspawn"]
        assert len(list(tmp_path.iterdir())) == 1
        process.terminate()
        rest = process.stdout.read()
    assert process.returncode == 130, rest
    assert not [child for child in psutil.wait_procs(started, timeout=20)[1] if child.status() != psutil.STATUS_ZOMBIE]
    assert list(tmp_path.iterdir()) == []
