# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The second act: Ansible rolls Forewarn out to three real hosts, and asks them ad hoc. It takes some minutes.

The hosts are those of tests/lab. Exits with 0 if everything went as it should, 1 if not, 3 where no hosts can run.
"""

from __future__ import annotations

import json
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from group_act import GroupAct  # noqa: E402 - from the path above
from lab import images, machine  # noqa: E402 - from the path above
from lab.hosts import Host  # noqa: E402 - as above
from lab.lab import Lab  # noqa: E402 - as above
from lab.role.playbooks import PlaybookRun, Playbooks  # noqa: E402 - as above
from narration import Narrator  # noqa: E402 - as above
from tools.servers import etcd_server  # noqa: E402 - as above
from tools.sites.link_collection import link_collection  # noqa: E402 - as above

ROLLOUT, STATUS = "forewarn.azure.rollout", "forewarn.azure.status"
VARIABLES = {"forewarn_policies": ["policies"], "forewarn_serial": [1, "100%"]}
WEB = "[Service]\nExecStart=/usr/bin/python3 -m http.server 8080 --bind 127.0.0.1\n"
HEADER = ("WHAT", "HOST", "SHOULD BE", "IS", "GOOD")
_TASK = re.compile(r"^TASK \[(?:forewarn\.azure\.runner : )?(.*)\]")
_SHOWN = ("Build the runner", "Ask the VM", "Bring the runner", "Wait until", "Ask for its status")


class Demo:
    """The acts, and their results in ``rows``: what, host, what should be, what is, yes or no."""

    def __init__(self, lab: Lab, playbooks: Playbooks, narrator: Narrator) -> None:
        self.lab = lab
        self.playbooks = playbooks
        self.narrator = narrator
        self.rows: list[tuple[str, str, str, str, str]] = []

    def play(self) -> None:
        """Play all acts."""
        self.hosts()
        self.roll_out()
        self.again()
        self.short_freeze()
        self.held_and_asked()
        self.reboot()
        self.refused()
        GroupAct(self.lab, self.playbooks, self.narrator, self._judge).play()

    def hosts(self) -> None:
        """Show the hosts."""
        self.narrator.act(
            "Three hosts",
            "Each has its own systemd, disk, network and SSH; at 169.254.169.254 each finds the emulated service.",
        )
        for host in self.lab.hosts:
            host.write(WEB, "/etc/systemd/system/web.service")
            python = host.ssh("systemctl daemon-reload; systemctl start web; python3 --version").stdout.strip()
            self.narrator.say(host.name, f"Debian {host.suite}, {python}, with a web server", "dim")

    def roll_out(self) -> None:
        """Bring the runner to all hosts: one first, then the others."""
        self.narrator.act(
            "The rollout",
            "The control node compiles the policies, runs their tests, proves their claims. Then one host gets the",
            "runner, and once that works there, the others. Nothing but Python and systemd is needed on a host.",
        )
        before = {host.name: host.place.sent() for host in self.lab.hosts}
        played = self._roll_out()
        for host in self.lab.hosts:
            sent = (host.place.sent() - before[host.name]) // 1000
            self.narrator.say("ansible", f"{host.name}: was sent {sent} kB", "dim")
            self._judge(
                "rollout", host, "running, ok", self._health(host) if played.code == 0 else f"exit code {played.code}"
            )

    def again(self) -> None:
        """Roll out again, without a change."""
        self.narrator.act("The same once more", "Nothing is to be done, so nothing is changed.")
        played = self._roll_out()
        for host in self.lab.hosts:
            changes = played.recap[host.name]["changed"] if played.code == 0 else "?"
            self._judge("rollout again", host, "0 changes", f"{changes} changes")

    def short_freeze(self) -> None:
        """Let a live migration be approved."""
        host = self.lab.hosts[0]
        self.narrator.act("A live migration", "The host is to stand still for 5 seconds. The policy lets that pass.")
        event_id = self._schedule(host, "Freeze", duration_seconds=5)
        self._until_started(host, event_id)
        host.freeze(1)
        self.lab.emulator.finish(event_id)
        self._judge_event("freeze of 5 s", host, event_id, "approved by brief-freeze")

    def held_and_asked(self) -> None:
        """Ask the fleet ad hoc about an event that is held."""
        host = self.lab.hosts[1]
        self.narrator.act(
            "A freeze of unknown duration, and a question to the fleet",
            "No rule lets it pass, so it is held. Asked ad hoc, every host tells what comes, and what is decided.",
        )
        event_id = self._schedule(host, "Freeze", duration_seconds=-1)
        host.wait_for(lambda: self._history(host, event_id))
        arguments = "policies=policies"
        self.narrator.say("operator", f"$ ansible all -m forewarn.azure.scheduled_events -a '{arguments}'", "bold")
        code, text = self.playbooks.run(
            "ansible", "all", "-m", "forewarn.azure.scheduled_events", "-a", arguments, "--one-line"
        )
        found = dict(re.findall(r"^(\S+) \| SUCCESS => (\{.*\})$", text, re.MULTILINE))
        for each in self.lab.hosts:
            result: dict[str, Any] = json.loads(found.get(each.name, "{}"))
            said = [decision["output"] for decision in result.get("decisions", [])]
            self.narrator.say("ansible", f"{each.name}: {result.get('msg', text[-300:])}", "cyan")
            self._judge("ad-hoc question", each, "hold", ", ".join(said) or f"exit code {code}")
        self.narrator.say("operator", f"$ ansible-playbook {STATUS} -i inventory", "bold")
        for line in _table(self.playbooks.play(STATUS, {}).text):
            self.narrator.say("ansible", line, "cyan")
        self.lab.emulator.cancel(event_id)
        self._judge_event("freeze, no duration", host, event_id, "held by otherwise")

    def reboot(self) -> None:
        """Let a host be prepared, really rebooted, and recovered."""
        host = self.lab.hosts[2]
        self.narrator.act(
            "A reboot",
            "The runner stops the web server, approves, lives through the reboot, and starts the web server when it is",
            "over.",
        )
        event_id = self._schedule(host, "Reboot")
        self._until_started(host, event_id)
        self._judge("web server, before", host, "inactive", self._web(host))
        self.narrator.say(host.name, "reboots", "red")
        host.reboot()
        self.narrator.say(host.name, "is up again; the runner resumes the event", "green")
        self.lab.emulator.finish(event_id)
        self._judge_event("reboot", host, event_id, "approved by reboot")
        self._judge("web server, after", host, "active", self._web(host))

    def refused(self) -> None:
        """Try to roll out a policy with a mistake."""
        self.narrator.act("A policy with a mistake", "It is refused on the control node. No host is asked anything.")
        path = self.playbooks.directory / "policies" / "policy.yml"
        path.write_text(path.read_text().replace('event.EventType == "Reboot"', 'event.EvntType == "Reboot"'))
        before = {host.name: self._installed(host) for host in self.lab.hosts}
        played = self.playbooks.play(ROLLOUT, VARIABLES)
        for line in played.text.splitlines():
            if "EvntType" in line and "error" in line:
                self.narrator.say("ansible", line.strip()[:300], "red")
                break
        refused = "refused" if played.code and "event has no field EvntType" in played.text else "not refused"
        for host in self.lab.hosts:
            touched = "untouched" if self._installed(host) == before[host.name] else "touched"
            self._judge("a broken policy", host, "refused, untouched", f"{refused}, {touched}")

    def _roll_out(self) -> PlaybookRun:
        self.narrator.say("operator", f"$ ansible-playbook {ROLLOUT} -i inventory", "bold")
        return self.playbooks.play(ROLLOUT, VARIABLES, heard=self._hear)

    def _hear(self, line: str) -> None:
        found = _TASK.match(line)
        if found and found[1].startswith(_SHOWN):
            self.narrator.say("ansible", found[1], "cyan")

    def _schedule(self, host: Host, kind: str, **values: Any) -> str:
        event_id = self.lab.emulator.schedule(kind, [host.name], **values)
        self.narrator.say("Azure", f"schedules a {kind} of {host.name}", "cyan")
        return event_id

    def _until_started(self, host: Host, event_id: str) -> None:
        host.wait_for(lambda: self.lab.emulator.event(event_id)["status"] == "Started")
        event = self.lab.emulator.event(event_id)
        by = ", ".join(approval["vm"] for approval in event["approvals"])
        self.narrator.say("Azure", f"starts it, with the approval of {by or 'nobody'}", "cyan")
        host.wait_for(lambda: self._history(host, event_id).get("state") == "started")

    def _judge_event(self, what: str, host: Host, event_id: str, expected: str) -> None:
        """Compare the end of an event, according to the host's journal, with what was expected."""

        def ended() -> dict[str, Any] | None:
            entry = self._history(host, event_id)
            return entry if entry.get("outcome") else None

        entry = host.wait_for(ended)
        approved = any(line["kind"] == "approved" for line in entry["entries"])
        found = f"{'approved' if approved else 'held'} by {entry['decision']['rule']}"
        self.narrator.say(host.name, f"sees it gone: {entry['outcome']}, {found}", "dim")
        self._judge(what, host, expected, found)

    def _judge(self, what: str, host: Host, expected: str, found: str) -> None:
        self.rows.append((what, host.name, expected, found, "yes" if found == expected else "no"))

    def _history(self, host: Host, event_id: str) -> dict[str, Any]:
        text = host.ssh("forewarn history --json", check=False).stdout
        events = json.loads(text)["events"] if text else []
        return next((entry for entry in events if entry["event"]["EventId"] == event_id), {})

    def _health(self, host: Host) -> str:
        status = json.loads(host.ssh("forewarn status --json", check=False).stdout or "{}")
        return f"{status['runner']['condition']}, {status['service']['state']}" if status else "no answer"

    def _installed(self, host: Host) -> str:
        files = "/etc/forewarn /opt/forewarn /etc/systemd/system/forewarn.service"
        process = "systemctl show --property=MainPID,ExecMainStartTimestamp forewarn"
        return host.ssh(f"find {files} -type f -exec sha256sum {{}} +; {process}").stdout

    def _web(self, host: Host) -> str:
        return host.properties("web", "ActiveState")["ActiveState"]


def _table(text: str) -> list[str]:
    """Return the lines of the table in what the status playbook wrote."""
    pattern = r"^TASK \[Show the fleet\].*?\n(.*?)\n(?:ok: |fatal: |\[ERROR\]: )"
    found = re.search(pattern, text, re.DOTALL | re.MULTILINE)
    return found[1].split("\n") if found else []


def main() -> int:
    """Play the demo."""
    narrator = Narrator()
    reason = machine.missing(etcd_server.PROGRAMS)
    if reason is not None:
        narrator.console.error(f"The demo of a fleet cannot run here: {reason}.")
        return 3
    # However it is ended, the hosts are removed. SIGINT too: in the background of a shell it is ignored from the start.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        return _run(narrator)
    except machine.LabError as error:
        narrator.console.error(f"The demo cannot go on: {error}")
        return 1
    except KeyboardInterrupt:
        narrator.console.line("\nEnded, and everything that was started too.")
        return 130


def _run(narrator: Narrator) -> int:
    if images.absent():
        narrator.say("", f"builds root file systems in {images.CACHE}: some minutes, this once", "dim")
    narrator.say("", "boots three hosts", "dim")
    with tempfile.TemporaryDirectory(prefix="forewarn-fleet-") as name, Lab() as lab:
        directory = Path(name)
        shutil.copytree(ROOT / "demo" / "fleet", directory / "policies")
        shutil.copytree(ROOT / "demo" / "group", directory / "group")
        demo = Demo(lab, Playbooks(lab, directory, link_collection(directory / "collections")), narrator)
        demo.play()
    praise = f"All {len(demo.rows)} are as they should be, by the hosts' own records."
    return narrator.conclude(HEADER, demo.rows, verdict(demo.rows), praise)


def verdict(rows: Sequence[tuple[str, str, str, str, str]]) -> list[str]:
    """Return a sentence for each difference from what should be."""
    return [f"{what}, {host}: {found}, not {should}" for what, host, should, found, good in rows if good != "yes"]


if __name__ == "__main__":
    raise SystemExit(main())
