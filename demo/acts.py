# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What happens in the demo, act by act, and what is to become of each event."""

from __future__ import annotations

import random
import re
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible_command import AdHoc
from narration import Narrator
from stage import EMULATOR, Line, Stage

# How fast emulated time runs: a minute in a second. The runner knows nothing of it and polls once a real second.
TIME_SCALE = 60.0
OUTAGE_SECONDS = 5.0  # real ones
# Real seconds from an event's appearance to its approval: one poll interval, and something for a busy machine.
SOON = 5.0
AFTER_OUTAGE = OUTAGE_SECONDS + 8.0  # the longest pause between two attempts by then, and a poll
AFTER_ANSIBLE = 20.0
_GUID_END = re.compile(r"(?<=\b[0-9A-F]{8})(?:-[0-9A-F]{4}){3}-[0-9A-F]{12}")


@dataclass(frozen=True)
class Expectation:
    """How an event is to go. ``standings``: what each VM concludes for itself; ``within``: real seconds."""

    title: str
    event_id: str
    resources: Sequence[str]
    output: str
    rule: str
    standings: Mapping[str, str]
    approved_by: str | None = None
    within: float = SOON
    started_by: str | None = "approval"
    status: str = "Finished"


@dataclass
class Acts:
    """Plays the acts on a stage. ``adhoc_decisions``: event, VM -> what the ad-hoc command said."""

    stage: Stage
    narrator: Narrator
    adhoc: AdHoc
    expected: list[Expectation] = field(default_factory=list)
    adhoc_decisions: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)

    def live_migration(self) -> None:
        """A short freeze is approved: it happens now rather than in 15 minutes."""
        self.narrator.act("A live migration", "Memory is kept, the VM stands still for 5 seconds.")
        event = self._schedule(
            "freeze of 5 s",
            "Freeze",
            ["web_0"],
            rule="brief-freeze",
            standings={"web_0": "approve"},
            approved_by="web_0",
            duration_seconds=5,
        )
        self._until_gone(event)

    def unknown_duration(self) -> None:
        """A freeze of unknown duration is held until NotBefore. Meanwhile somebody asks the fleet ad hoc."""
        self.narrator.act(
            "A freeze of unknown duration, and a question to the whole fleet",
            "DurationInSeconds is -1, which 'less than 9' alone would let pass. The policy holds it until NotBefore.",
        )
        held = self._schedule(
            "freeze, unknown duration",
            "Freeze",
            ["web_0"],
            rule="unknown-duration",
            standings={"web_0": "refused-by-policy"},
            duration_seconds=-1,
        )
        self._until_decided(held, "web_0")
        restart = self._schedule(
            "restart, no runner there",
            "Reboot",
            ["db_0"],
            rule="administrator",
            standings={"db_0": "approve"},
            approved_by="db_0",
            within=AFTER_ANSIBLE,
            source="User",
        )
        self.narrator.say("ansible", f"$ {self.adhoc.command_line}", "bold")
        for vm, result in self.adhoc.run().items():
            self.narrator.say("ansible", f"{vm}: {_GUID_END.sub('…', result['msg'])}", "cyan")
            for decision in result["decisions"]:
                self.adhoc_decisions[decision["event_id"], vm] = decision
        self._until_gone(restart, watchers=())
        self._until_gone(held)

    def administrator(self) -> None:
        """What somebody asked for is approved at once, and need not wait for 15 minutes."""
        self.narrator.act(
            "An administrator restarts a VM", "Nobody likes to wait 15 minutes for a restart of one's own."
        )
        event = self._schedule(
            "administrator's restart",
            "Reboot",
            ["web_0"],
            rule="administrator",
            standings={"web_0": "approve"},
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
            "freeze during an outage",
            "Freeze",
            ["web_0"],
            rule="brief-freeze",
            standings={"web_0": "approve"},
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
            standings={"web_0": "approve", "web_1": "not-the-leader"},
            approved_by="web_0",
            start_delay_seconds=1.5 * TIME_SCALE,  # the start need not be immediate (SE-33): time for web_1 to look
        )
        self._until_gone(event)

    def cancelled(self) -> None:
        """An event that leaves the list without having started has been cancelled."""
        self.narrator.act("Maintenance that does not take place", "It is held, and then it is gone.")
        event = self._schedule(
            "cancelled reboot",
            "Reboot",
            ["web_1"],
            rule="otherwise",
            standings={"web_1": "refused-by-policy"},
            status="Cancelled",
        )
        self._until_decided(event, "web_1")
        time.sleep(1.5)
        self.stage.emulator.cancel(event.event_id)
        self._until_gone(event)

    def _schedule(
        self,
        title: str,
        event_type: str,
        resources: Sequence[str],
        *,
        rule: str,
        standings: Mapping[str, str],
        approved_by: str | None = None,
        within: float = SOON,
        status: str = "Finished",
        **values: Any,
    ) -> Expectation:
        """Let Azure schedule an event, and note how it is to go. ``values`` are the emulator's."""
        event_id = str(uuid.uuid4()).upper()
        started_by = None if status == "Cancelled" else "approval" if approved_by else "NotBefore"
        output = "hold" if "refused-by-policy" in standings.values() else "approve"
        expectation = Expectation(
            title, event_id, resources, output, rule, standings, approved_by, within, started_by, status
        )
        self.expected.append(expectation)
        time.sleep(random.random())  # a moment that has nothing to do with the polls
        self.narrator.introduce(event_id, resources)
        self.narrator.say("Azure", f"schedules: {title} ({event_type} of {', '.join(resources)})", "cyan")
        self.stage.emulator.schedule(event_type, resources, event_id=event_id, **values)
        return expectation

    def _until_decided(self, event: Expectation, vm: str) -> None:
        self.stage.wait(f"{vm} to decide", _logged(vm, "decision", event))
        self.narrator.pause(1.0)

    def _until_gone(self, event: Expectation, watchers: Sequence[str] | None = None) -> None:
        """Wait until the event is over, and until the runners concerned have seen that."""
        self.stage.wait(f"the end of the {event.title}", _happened(event.status.lower(), event), 40.0)
        for vm in event.resources if watchers is None else watchers:
            self.stage.wait(f"{vm} to see it", _logged(vm, "event-gone", event))


def _logged(vm: str, name: str, event: Expectation) -> Callable[[Line], bool]:
    """Return a test for a line of a runner's log about an event."""
    return lambda line: line.source == vm and line.data["line"] == name and line.data["event_id"] == event.event_id


def _happened(kind: str, event: Expectation) -> Callable[[Line], bool]:
    """Return a test for what the emulator says of an event."""
    wanted = {"event": "transition", "kind": kind, "subject": event.event_id}
    return lambda line: line.source == EMULATOR and wanted.items() <= line.data.items()
