# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runners of ``story``: many processes with one policy, on networks of their own."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

from forewarn.emulator.server import EmulatorServer
from forewarn.runner.journal.schema import FILE_NAME
from tools.judges.group_judge import Rule
from tools.sites.commands import vm_command
from tools.sites.runner_process import compiled, program
from tools.suite.sizes import SIZE

RUNNERS = SIZE.group_runners
FAR = RUNNERS // 5  # the last of them are behind a link of their own
AT_MOST = 6
GROUP = "web"
HERE, ELSEWHERE = "10.99.0.10", "10.99.0.11"
PREPARE_SECONDS = 10.0
RULES = {
    "together": Rule(ready=True, limited=True, prepare_seconds=PREPARE_SECONDS),
    "ready": Rule(ready=True, limited=False, prepare_seconds=PREPARE_SECONDS),
    "one-by-one": Rule(ready=False, limited=True, prepare_seconds=PREPARE_SECONDS),
}
POLICY = """
name: web
rule:
  match:
    - id: together
      condition: event.Description == "together"
      output: approve
      group: ready
      limit: {most}
      {hooks}
    - id: ready
      condition: event.Description == "ready"
      output: approve
      group: ready
      {hooks}
    - id: one-by-one
      condition: event.Description == "one-by-one"
      output: approve
      group: independent
      limit: {most}
      {hooks}
"""
HOOKS = "prepare: [{{run: [{hook}, drain], timeout: 10s}}]\n      recover: [{{run: [{hook}, undrain], timeout: 10s}}]"
# It takes up to 2.5 s, and fails once in ten times.
HOOK = """
number=$(od -An -N1 -tu1 /dev/urandom)
sleep "$((number / 100)).$((number % 10))"
[ "$1" = undrain ] || [ "$number" -gt 25 ]
"""


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def make_networks() -> list[tuple[str, str]]:
    """Join namespaces to a bridge in this one; return the name and the address of each that a node of etcd gets."""
    Path("/run/netns").mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "none", "/run/netns"], check=True)
    ip("link", "set", "lo", "up")
    ip("link", "add", "hub", "type", "bridge")
    ip("address", "add", f"{HERE}/24", "dev", "hub")
    ip("link", "set", "hub", "up")
    nodes = [(f"node{number}", f"10.99.0.{number}") for number in (1, 2, 3)]
    for name, address in (*nodes, ("far", ELSEWHERE)):
        ip("netns", "add", name)
        ip("link", "add", f"to-{name}", "type", "veth", "peer", "name", "eth0", "netns", name)
        ip("link", "set", f"to-{name}", "master", "hub", "up")
        ip("-n", name, "address", "add", f"{address}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            ip("-n", name, "link", "set", device, "up")
    return nodes


class Fleet:
    """The runners, as processes."""

    def __init__(self, directory: Path, server: EmulatorServer, store: dict[str, Any]) -> None:
        self.names = [f"vm-{number}" for number in range(RUNNERS)]
        self._directory = directory
        self._has_far = "etcd" in store
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        hook = program(directory / "hook", HOOK)
        hooks = HOOKS.format(hook=hook)
        artifact = compiled(directory, POLICY.format(most=AT_MOST, hooks=hooks.replace("{{", "{").replace("}}", "}")))
        for name in self.names:
            config = {
                "artifact": str(artifact),
                "endpoint": f"http://{HERE}:{server.port}/vm/{name}",
                "allow_endpoint": True,
                "state": str(self.state(name)),
                "log_format": "json",
                "group": GROUP,
                "group_members": self.names,
                "group_store": store,
            }
            (directory / f"{name}.json").write_text(json.dumps(config))

    def state(self, name: str) -> Path:
        return self._directory / f"state-{name}"

    def log(self, name: str) -> Path:
        return self._directory / f"{name}.log"

    def start(self, name: str) -> None:
        """Start a runner, unless it runs."""
        if self.runs(name):
            return
        far = self._has_far and self.names.index(name) >= RUNNERS - FAR
        within = ["ip", "netns", "exec", "far"] if far else []
        command = [*within, *vm_command(), "run", "--config", str(self._directory / f"{name}.json")]
        with self.log(name).open("ab") as log:
            self._processes[name] = subprocess.Popen(command, stdout=log, stderr=log)

    def runs(self, name: str) -> bool:
        return name in self._processes and self._processes[name].poll() is None

    def all_up(self) -> bool:
        """Return whether each runner has begun its journal."""
        return all((self.state(name) / FILE_NAME).exists() for name in self.names)

    def signal(self, name: str, number: int) -> None:
        """Send a signal to a runner that runs."""
        if self.runs(name):
            self._processes[name].send_signal(number)

    def kill(self, name: str) -> None:
        """Kill a runner, and the hooks that it would leave behind stay."""
        self.signal(name, signal.SIGKILL)
        if name in self._processes:
            self._processes[name].wait(30)

    def stop(self) -> None:
        """Stop all."""
        for name in self.names:
            self.signal(name, signal.SIGCONT)
            self.signal(name, signal.SIGTERM)
        for process in self._processes.values():
            process.wait(30)
