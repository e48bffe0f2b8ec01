# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A runner on Windows whose state is on a disk that is full or read-only until somebody mends it.

Its program needs mounts of its own.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import tools
from forewarn.emulator.client import EmulatorClient
from forewarn.emulator.server import EmulatorServer
from tools.sites.full_disk import fill
from tools.sites.waiting import wait_until
from tools.sites.wine import wine
from tools.sites.wine_modules import MODULES, provide_modules
from tools.worlds.windows.vm import STATE, Windows, WindowsVm

KINDS = ("full from the start", "full in the middle", "read-only after a restart")
POLICY = r"""
name: windows
rule:
  match:
    - {id: started, condition: event.EventStatus == "Started", output: hold}
    - output: approve
      prepare: [{run: ['C:\hooks\drain.cmd']}]
"""


def play(directory: Path) -> dict[str, Any]:
    """Let it happen, one kind after the other; return what was seen of each. The directory must be empty."""
    package = Path(sys.modules[EmulatorServer.__module__].__file__ or "").parents[1]
    with wine(directory / "prefix") as booted:
        provide_modules(booted, package, Path(tools.__path__[0]))
        machine = Windows(booted, booted.path(MODULES))
        return {kind: _with_bad_disk(machine, kind) for kind in KINDS}


@contextmanager
def _vm_with_disk(machine: Windows) -> Iterator[WindowsVm]:
    """Yield a VM whose state is on a small disk of its own."""
    with ExitStack() as stack:
        server = stack.enter_context(EmulatorServer(vms=["web_0"]))
        emulator = stack.enter_context(EmulatorClient(server.url))
        # After its processes have ended.
        stack.callback(subprocess.run, ["umount", str(machine.wine.path(STATE))], check=False)
        vm = stack.enter_context(machine.vm(emulator, server.vm_endpoint("web_0")))
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=0755", "none", str(vm.state)], check=True)
        yield vm


def _with_bad_disk(machine: Windows, kind: str) -> dict[str, Any]:
    with _vm_with_disk(machine) as vm:
        vm.hook("drain", r">>C:\hooks\said echo %FOREWARN_PHASE%")
        vm.policy(POLICY)
        filler = vm.state / "filler"
        if kind == "full from the start":
            fill(filler)
        runner = vm.start()
        if kind == "full in the middle":
            runner.wait_for("document")
            fill(filler)
        elif kind == "read-only after a restart":
            runner.wait_for("document")
            vm.kill(runner)
            # Until Wine has closed the files.
            wait_until(lambda: _remount(vm, "ro") == 0, pause=0.05)
            runner = vm.start()
        event = vm.emulator.schedule("Reboot", ["web_0"], notice_seconds=600, start_delay_seconds=300)
        held = runner.wait_for("decision", event_id=event, eligibility="journal-trouble")
        status = vm.forewarn("status")
        before = {"said": vm.said(), "approvals": vm.approvals()}
        if filler.exists():
            filler.unlink()
        else:
            assert _remount(vm, "rw") == 0
        runner.wait_for("approved", event_ids=[event])
        return {
            "reason": held["reason"],
            "status": {"code": status.returncode, "out": status.stdout, "err": status.stderr},
            "event": event,
            "before": before,
            "after": {"said": vm.said(), "approvals": vm.approvals()},
        }


def _remount(vm: WindowsVm, mode: str) -> int:
    return subprocess.run(["mount", "-o", f"remount,{mode}", str(vm.state)], check=False).returncode
