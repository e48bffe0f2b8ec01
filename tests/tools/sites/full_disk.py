# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn run`` with its state on a disk that is full, and what ``forewarn status`` says: with mounts of its own.

Its arguments are a directory and WHEN, ``start`` or ``middle``. Prints what was seen as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from forewarn.emulator.client import EmulatorClient
from forewarn.emulator.server import EmulatorServer
from tools.sites.commands import in_process
from tools.sites.runner_process import Process, compiled
from tools.sites.waiting import wait_until

POLICY = "name: d\nrule:\n  match:\n    - {output: approve, prepare: [{run: [/bin/true]}]}\n"


def fill(file: Path) -> None:
    """Fill the file system to the last byte."""
    with file.open("wb", buffering=0) as stream:
        for size in (65536, 1):
            with suppress(OSError):
                while True:
                    stream.write(b"x" * size)


def status(state: Path) -> dict[str, Any]:
    """Return the command's output and its exit code."""
    shown = in_process("status", "--state", state)
    return {"code": shown.returncode, "out": shown.stdout, "err": shown.stderr}


def play(directory: Path, when: str) -> dict[str, Any]:
    """Let it happen; return what was seen."""
    state = directory / "state"
    state.mkdir()
    os.environ["RUNTIME_DIRECTORY"] = str(directory / "run")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=0700", "none", str(state)], check=True)
    artifact = compiled(directory, POLICY)
    seen: dict[str, Any] = {}
    with EmulatorServer(vms=["web_0"]) as server, EmulatorClient(server.url) as emulator:
        if when == "start":
            fill(state / "filler")
        endpoint = server.vm_endpoint("web_0")
        runner = Process("--artifact", str(artifact), endpoint=endpoint, state=state, quick=True)
        if when == "middle":
            runner.wait_for("document")
            fill(state / "filler")
        seen["event"] = emulator.schedule("Reboot", ["web_0"])
        runner.wait_for("decision", eligibility="journal-trouble")
        wait_until(lambda: seen["event"] in status(state)["out"])
        seen["full"] = status(state)
        (state / "filler").unlink()
        runner.wait_for("approved")
        wait_until(lambda: "not in the journal" not in status(state)["out"])
        seen["healed"] = status(state)
        seen["left"] = [path.name for path in (directory / "run").glob("*")]
        runner.stop()
    return seen


if __name__ == "__main__":
    print(json.dumps(play(Path(sys.argv[1]), sys.argv[2])))
