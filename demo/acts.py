# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What happens in the demo, act by act, and how each event should end."""

from __future__ import annotations

import random
import re
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible_command import AdHoc
from narration import Narrator
from pool import Pool
from stage import EMULATOR, Line, Stage, StageError

# How fast emulated time runs: a minute takes a second. The runner does not know this and polls once a real second.
TIME_SCALE = 60.0
OUTAGE_SECONDS = 5.0  # real ones
# Real seconds from an event's appearance to its approval: one poll interval, and the rest for a busy machine.
SOON = 8.0
AFTER_OUTAGE = OUTAGE_SECONDS + 10.0  # the longest pause between two attempts by then, and a poll
AFTER_ANSIBLE = 50.0
AFTER_DRAIN = 20.0
# NotBefore of events that wait for a drain or for Ansible: both end before it even on a busy machine.
LONG_NOTICE_SECONDS = 60.0 * TIME_SCALE
USERS = 3
_GUID_END = re.compile(r"(?<=\b[0-9A-F]{8})(?:-[0-9A-F]{4}){3}-[0-9A-F]{12}")


@dataclass(frozen=True)
class Expectation:
    """How an event should go.

    ``eligibilities``: what each VM concludes for itself before it starts, in order; ``within``: real seconds;
    ``hooks``: what each VM runs, in order: hook, attempt, and result, None if the runner did not live to see
    that.
    """

    title: str
    event_id: str
    resources: Sequence[str]
    output: str
    rule: str
    eligibilities: Mapping[str, Sequence[str]]
    approved_by: str | None = None
    within: float = SOON
    started_by: str | None = "approval"
    status: str = "Finished"
    hooks: Mapping[str, Sequence[tuple[str, int, str | None]]] = field(default_factory=dict)


@dataclass
class Acts:
    """Plays the acts on a stage.

    ``adhoc_decisions``: event, VM -> what the ad-hoc command said; ``kills``: VM -> how often its runner was killed.
    """

    stage: Stage
    narrator: Narrator
    adhoc: AdHoc
    pool: Pool
    runners: Sequence[str]
    expected: list[Expectation] = field(default_factory=list)
    adhoc_decisions: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    kills: Counter[str] = field(default_factory=Counter)

    def live_migration(self) -> None:
        """A short freeze is approved: it happens now rather than in 15 minutes."""
        self.narrator.act("A live migration", "Memory is kept, the VM stands still for 5 seconds.")
        event = self._schedule(
            "freeze of 5 s",
            "Freeze",
            ["web_0"],
            rule="brief-freeze",
            eligibilities={"web_0": ("approve",)},
            approved_by="web_0",
            duration_seconds=5,
        )
        self._until_gone(event)

    def prepared(self) -> None:
        """A reboot is approved once it hurts nobody; what prepared for it is undone when it is over."""
        self.narrator.act(
            "A reboot that is prepared for",
            "Rule reboot has hooks: drain takes the VM out of the load balancer's pool and waits for its users, and",
            "only then is the reboot approved. When it is over, undrain puts the VM back.",
        )
        self.pool.connect("web_0", USERS)
        event = self._schedule(
            "reboot, drained",
            "Reboot",
            ["web_0"],
            rule="reboot",
            eligibilities={"web_0": ("preparing", "approve")},
            approved_by="web_0",
            within=AFTER_DRAIN,
            hooks={"web_0": [("drain", 1, "succeeded"), ("undrain", 1, "succeeded")]},
            notice_seconds=LONG_NOTICE_SECONDS,
        )
        self.stage.wait("web_0 to drain", _hook("hook-started", event, "web_0", "prepare"))
        self._users_leave()
        self._until_gone(event)

    def waiting(self) -> None:
        """Two events are held until NotBefore: one has no known duration, the preparation of the other failed.

        Meanwhile somebody asks the fleet ad hoc.
        """
        self.narrator.act(
            "A freeze of unknown duration",
            "DurationInSeconds is -1, which 'less than 9' alone would let pass. The policy holds it until NotBefore,",
            "and somebody who knows takes web_0 out of the pool by hand.",
        )
        held = self._schedule(
            "freeze, no duration",
            "Freeze",
            ["web_0"],
            rule="unknown-duration",
            eligibilities={"web_0": ("refused-by-policy",)},
            duration_seconds=-1,
        )
        self._until_decided(held, "web_0")
        self.narrator.say("operator", "$ rm pool/web_0", "bold")
        self.pool.take_out("web_0")
        failing = self._preparation_fails()
        self._ask_the_fleet()
        self.narrator.say("", "Nobody approves the two events that are held: they start at NotBefore.")
        self._until_gone(held)
        self.narrator.say("operator", "$ touch pool/web_0", "bold")
        self.pool.put_back("web_0")
        self._until_gone(failing)

    def _preparation_fails(self) -> Expectation:
        self.narrator.act(
            "A preparation that fails",
            "Now web_1 is to be rebooted, and is all there is. A drain that fails means hold; it is tried again.",
        )
        event = self._schedule(
            "reboot, drain fails",
            "Reboot",
            ["web_1"],
            rule="reboot",
            eligibilities={"web_1": ("preparing", "preparation-failed")},
            # A preparation that began is undone, however far it got.
            hooks={"web_1": [("drain", 1, "failed"), ("undrain", 1, "succeeded")]},
        )
        decided = _logged("web_1", "decision", event)
        self.stage.wait(
            "web_1 to hold", lambda line: decided(line) and line.data["eligibility"] == "preparation-failed"
        )
        self.narrator.pause(1.0)
        return event

    def _ask_the_fleet(self) -> None:
        self.narrator.act(
            "Meanwhile, a question to the whole fleet",
            "An ad-hoc command reads and decides on all VMs, and approves where no runner does it: on db_0.",
        )
        restart = self._schedule(
            "restart, ad hoc",
            "Reboot",
            ["db_0"],
            rule="administrator",
            eligibilities={"db_0": ("approve",)},
            approved_by="db_0",
            within=AFTER_ANSIBLE,
            source="User",
            notice_seconds=LONG_NOTICE_SECONDS,
        )
        self.narrator.say("ansible", f"$ {self.adhoc.command_line}", "bold")
        for vm, result in self.adhoc.run().items():
            for decision in result["decisions"]:
                self.adhoc_decisions[decision["event_id"], vm] = decision
            own = [event.event_id for event in self.expected if vm in event.resources]
            for text in result["msg"].split("; "):
                if any(event_id in text for event_id in own):
                    self.narrator.say("ansible", f"{vm}: {_GUID_END.sub('…', text)}", "cyan")
        self._until_gone(restart, watchers=())

    def administrator(self) -> None:
        """What an administrator asked for is approved at once and does not wait 15 minutes."""
        self.narrator.act(
            "An administrator restarts a VM", "Nobody likes to wait 15 minutes for a restart that they asked for."
        )
        event = self._schedule(
            "restart by hand",
            "Reboot",
            ["web_0"],
            rule="administrator",
            eligibilities={"web_0": ("approve",)},
            approved_by="web_0",
            source="User",
        )
        self._until_gone(event)

    def outage(self) -> None:
        """The service answers 410 for a while. The runner goes on, more slowly, and misses nothing."""
        self.narrator.act(
            "The service is away", "While its host is updated it answers 410, for minutes. The runner does not give up."
        )
        self.narrator.say("Azure", f"answers 410 to web_0, for {OUTAGE_SECONDS:g} s", "red")
        self.stage.emulator.inject_fault(410, for_seconds=OUTAGE_SECONDS * TIME_SCALE, vms="web_0")
        self.stage.wait("web_0 to notice", lambda line: line.source == "web_0" and line.data["line"] == "poll-failed")
        event = self._schedule(
            "freeze in an outage",
            "Freeze",
            ["web_0"],
            rule="brief-freeze",
            eligibilities={"web_0": ("approve",)},
            approved_by="web_0",
            within=AFTER_OUTAGE,
            duration_seconds=3,
        )
        self._until_gone(event)

    def redeploy(self) -> None:
        """One approval is for all VMs of an event, so one of them sends it."""
        self.narrator.act(
            "Two VMs move to another host", "An approval is for both of them, so one leads: the first in Resources."
        )
        event = self._schedule(
            "redeploy of two VMs",
            "Redeploy",
            ["web_0", "web_1"],
            rule="move",
            eligibilities={"web_0": ("approve",), "web_1": ("not-the-leader",)},
            approved_by="web_0",
            start_delay_seconds=4.0 * TIME_SCALE,  # the start need not be immediate (SE-33): time for web_1 to look
        )
        self._until_gone(event)

    def cancelled(self) -> None:
        """An event that leaves the list without having started has been cancelled."""
        self.narrator.act("Maintenance that does not take place", "It is held, and then it is gone.")
        event = self._schedule(
            "freeze, cancelled",
            "Freeze",
            ["web_1"],
            rule="otherwise",
            eligibilities={"web_1": ("refused-by-policy",)},
            status="Cancelled",
            duration_seconds=60,
        )
        self._until_decided(event, "web_1")
        time.sleep(1.5)  # for people: first it is held, then it is gone
        self.stage.emulator.cancel(event.event_id)
        self._until_gone(event)

    def killed(self) -> None:
        """A runner that is killed in the middle of a drain resumes it after a restart."""
        self.narrator.act(
            "The runner is killed in the middle of a drain",
            "Its journal says what had begun. The next runner ends what was left over, drains again, and tells the",
            "hook that it does: FOREWARN_ATTEMPT is 2. Nothing is approved before that has succeeded.",
        )
        self.pool.connect("web_0", USERS)
        event = self._schedule(
            "reboot, kill -9",
            "Reboot",
            ["web_0"],
            rule="reboot",
            eligibilities={"web_0": ("preparing", "approve")},
            approved_by="web_0",
            within=2 * AFTER_DRAIN,
            hooks={"web_0": [("drain", 1, None), ("drain", 2, "succeeded"), ("undrain", 1, "succeeded")]},
            notice_seconds=LONG_NOTICE_SECONDS,
        )
        self.stage.wait("web_0 to drain", _hook("hook-started", event, "web_0", "prepare"))
        self._until_out_of_pool("web_0")
        self.narrator.say("operator", f"$ kill -9 {self.stage.pid('web_0')}, the runner of web_0", "bold", "red")
        self.stage.kill("web_0")
        self.kills["web_0"] += 1
        self.narrator.pause(1.0)
        self.narrator.say("web_0", "$ forewarn run, with the same options", "bold")
        self.stage.run("web_0")
        self.stage.wait("web_0 to drain again", _hook("hook-started", event, "web_0", "prepare", 2))
        self._users_leave()
        self._until_gone(event)

    def _schedule(
        self,
        title: str,
        event_type: str,
        resources: Sequence[str],
        *,
        rule: str,
        eligibilities: Mapping[str, Sequence[str]],
        approved_by: str | None = None,
        within: float = SOON,
        status: str = "Finished",
        hooks: Mapping[str, Sequence[tuple[str, int, str | None]]] | None = None,
        **values: Any,
    ) -> Expectation:
        """Let Azure schedule an event, and note how it should go. ``values`` are the emulator's."""
        event_id = str(uuid.uuid4()).upper()
        started_by = None if status == "Cancelled" else "approval" if approved_by else "NotBefore"
        output = "hold" if ("refused-by-policy",) in eligibilities.values() else "approve"
        expectation = Expectation(
            title,
            event_id,
            resources,
            output,
            rule,
            eligibilities,
            approved_by,
            within,
            started_by,
            status,
            hooks or {},
        )
        self.expected.append(expectation)
        time.sleep(random.random())  # a moment that has nothing to do with the polls
        self.narrator.introduce(event_id, event_type, resources)
        self.narrator.say("Azure", f"schedules: {title} ({event_type} of {', '.join(resources)})", "cyan")
        self.stage.emulator.schedule(event_type, resources, event_id=event_id, **values)
        return expectation

    def _until_decided(self, event: Expectation, vm: str) -> None:
        self.stage.wait(f"{vm} to decide", _logged(vm, "decision", event))
        self.narrator.pause(1.0)

    def _until_out_of_pool(self, vm: str) -> None:
        """Wait until a drain has taken the VM out of the pool, and only waits for its users."""
        deadline = time.monotonic() + AFTER_DRAIN
        while vm in self.pool.members():
            if time.monotonic() >= deadline:
                raise StageError(f"waited {AFTER_DRAIN:g} s for {vm} to leave the pool")
            time.sleep(0.1)  # until the next look
        self.narrator.say("", f"{vm} is out of the pool, and still has {len(self.pool.users())} users", "dim")

    def _users_leave(self) -> None:
        """Let the present users leave, one after the other: a drain waits for all of them."""
        for user in self.pool.users():
            time.sleep(0.5)  # users take their time
            self.narrator.say("user", f"{user.name} leaves", "dim")
            user.unlink()

    def _until_gone(self, event: Expectation, watchers: Sequence[str] | None = None) -> None:
        """Wait until the event is over, and until the runners concerned have seen that and undone what they did."""
        self.stage.wait(f"the end of the {event.title}", _happened(event.status.lower(), event), 40.0)
        for vm in event.resources if watchers is None else watchers:
            self.stage.wait(f"{vm} to see it", _logged(vm, "event-gone", event))
            if vm in event.hooks:
                self.stage.wait(f"{vm} to recover", _hook("hook-ended", event, vm, "recover"))


def _logged(vm: str, name: str, event: Expectation) -> Callable[[Line], bool]:
    """Return a test for a line of a runner's log about an event."""
    return lambda line: line.source == vm and line.data["line"] == name and line.data["event_id"] == event.event_id


def _hook(name: str, event: Expectation, vm: str, phase: str, attempt: int = 1) -> Callable[[Line], bool]:
    """Return a test for a line of a runner's log about a hook of an event."""
    logged = _logged(vm, name, event)
    return lambda line: logged(line) and (line.data["phase"], line.data["attempt"]) == (phase, attempt)


def _happened(kind: str, event: Expectation) -> Callable[[Line], bool]:
    """Return a test for a line of the emulator about an event."""
    wanted = {"event": "transition", "kind": kind, "subject": event.event_id}
    return lambda line: line.source == EMULATOR and wanted.items() <= line.data.items()
