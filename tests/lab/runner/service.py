# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runner on a host, installed by hand: forewarn.pyz, artifact, unit; an application that hooks stop and start."""

from __future__ import annotations

import json
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

from forewarn.compiler.policies import compile_policies

from ..hosts import Host
from .journals import event_state

PROGRAM = "/usr/local/bin/forewarn.pyz"
ARTIFACT = "/etc/forewarn/policy.json"
_CONFIG = "/etc/forewarn/config.json"
POLICY = """
name: lab
rule:
  match:
    - id: drain
      condition: event.EventType == "Reboot" && affects_me
      prepare:
        - {run: [/usr/local/bin/drain], timeout: 2m}
        - {unit: app.service, action: stop}
      recover:
        - {unit: app.service, action: start}
        - {run: [/usr/local/bin/undrain]}
      output: approve
    - id: brief-freeze
      condition: event.EventType == "Freeze" && event.DurationInSeconds >= 0 && event.DurationInSeconds < 9
      output: approve
"""
# As docs/operations.md has it. Hooks act on other units here, so nothing is locked away.
_UNIT = """
[Unit]
Wants=network-online.target
After=network-online.target

[Service]
{reloads}
ExecStart=/usr/local/bin/forewarn.pyz run --config /etc/forewarn/config.json
StateDirectory=forewarn
StateDirectoryMode=0700
WatchdogSec=4min
KillMode=mixed
TimeoutStopSec=30
Restart=always
RestartSec=2

[Install]
WantedBy=multi-user.target
"""
_RELOADS = "Type=notify-reload"
_RELOADS_BEFORE_253 = "Type=notify\nExecReload=/bin/kill -HUP $MAINPID"
_APP = "[Service]\nExecStart=/bin/sleep infinity\n\n[Install]\nWantedBy=multi-user.target\n"
# Each call writes a line. A drain lasts as long as /run/busy exists.
_HOOK = """#!/bin/sh
echo "{name} $FOREWARN_PHASE $FOREWARN_ATTEMPT $FOREWARN_EVENT_ID" >> /var/log/hooks
while [ {name} = drain ] && [ -e /run/busy ]; do sleep 0.1; done
"""


class Service:
    """The runner of one host."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._since = 0  # seconds since 1970

    def install(self, pyz: Path, policy: str = POLICY) -> None:
        """Put everything in place, and start it."""
        host = self.host
        for name in ("drain", "undrain"):
            host.write(_HOOK.format(name=name), f"/usr/local/bin/{name}", 0o755)
        host.write(_APP, "/etc/systemd/system/app.service")
        host.ssh("systemctl daemon-reload && systemctl enable --quiet --now app")
        install_runner(host, pyz, policy)

    def replace_policy(self, policy: str) -> None:
        """Compile a policy here, and put the artifact there."""
        self.host.write(compile_text(policy), ARTIFACT)

    def command(self, *arguments: str, check: bool = True) -> str:
        """Run a command of forewarn.pyz there, and return what it wrote."""
        return self.host.ssh(f"{PROGRAM} {' '.join(arguments)}", check=check).stdout

    def history(self, event_id: str) -> dict[str, Any]:
        """Return what ``forewarn history --json`` reports of an event; empty if it has no such event."""
        found: list[dict[str, Any]] = json.loads(self.command("history", "--json"))["events"]
        return next((entry for entry in found if entry["event"]["EventId"] == event_id), {})

    def wait_for_state(self, event_id: str, *states: str) -> dict[str, Any]:
        """Wait until an event has come to a state; return what history reports of it."""
        self.host.wait_for(lambda: event_state(self.host, event_id) in states)
        return self.history(event_id)

    def settle(self) -> None:
        """Let drains end, wait until no event is left, and forget the calls and the log so far."""
        self.host.ssh("rm -f /run/busy && systemctl start forewarn app")
        self.host.wait_for(lambda: not json.loads(self.command("status", "--json", check=False))["events"])
        self.host.ssh("rm -f /var/log/hooks")
        self._since = int(time.time())

    def wait_for_line(self, name: str, **fields: str) -> dict[str, str]:
        """Return the first entry of that name and with these fields that the runner has logged since ``settle``."""
        wanted = {"FOREWARN_LINE": name, **{f"FOREWARN_{key.upper()}": value for key, value in fields.items()}}
        matches = " ".join(f"{key}={value}" for key, value in wanted.items())
        command = f"journalctl --output=json --no-pager --since=@{self._since} {matches}"
        lines = self.host.wait_for(lambda: self.host.ssh(command).stdout.splitlines())
        first: dict[str, str] = json.loads(lines[0])
        return first

    def calls(self) -> list[tuple[str, ...]]:
        """Return the calls of hooks: program, phase, attempt, EventId."""
        text = self.host.ssh("cat /var/log/hooks", check=False).stdout
        return [tuple(line.split()) for line in text.splitlines()]

    def busy(self) -> None:
        """Let drains last until ``idle``, or a reboot."""
        self.host.ssh("touch /run/busy")

    def idle(self) -> None:
        """Let drains end."""
        self.host.ssh("rm /run/busy")

    def restarts(self) -> int:
        """Return how often systemd has restarted the runner."""
        return int(self.host.properties("forewarn", "NRestarts")["NRestarts"])


def install_runner(host: Host, pyz: Path, policy: str, **settings: Any) -> None:
    """Start the runner as a service outside any sandbox, with these settings of its configuration."""
    host.copy(pyz, PROGRAM, 0o755)
    host.write(compile_text(policy), ARTIFACT)
    host.write(json.dumps({"artifact": ARTIFACT, **settings}), _CONFIG)
    version = int(host.ssh("systemctl --version").stdout.split()[1])
    unit = _UNIT.format(reloads=_RELOADS if version >= 253 else _RELOADS_BEFORE_253)
    host.write(unit, "/etc/systemd/system/forewarn.service")
    # Of Type=notify: the start ends with the runner's READY.
    host.ssh(f"ln -s {PROGRAM} /usr/local/bin/forewarn && systemctl daemon-reload && systemctl enable --now forewarn")


@cache
def compile_text(policy: str) -> str:
    """Return the artifact of a policy."""

    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "policy.yml")
        path.write_text(policy, encoding="utf-8")
        return json.dumps(compile_policies([path]).artifact)
