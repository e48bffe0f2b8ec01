# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judges what VMs of a group did to each other, from outside: by hooks, approvals and the service's events.

It knows nothing of stores, slots or barriers; docs/groups.md has the promises.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from typing import Any, NamedTuple

from tools.worlds.runner_world import EPOCH, Entry

# A preparation that begins with less time than its hook may take, and some seconds to stop it, cannot wait any longer.
HURRY_SECONDS = 15.0
NOT_PREPARED = object()


class ListedEvent(NamedTuple):
    """An event as the service had it."""

    event_id: str
    names: tuple[str, ...]
    rule: str
    gone_at: float


class Rule(NamedTuple):
    """What the policy says for an event of this Description. ``prepare_seconds``: the hook's timeout, None without."""

    ready: bool
    limited: bool
    prepare_seconds: float | None


class _Hook(NamedTuple):
    """What a VM has started, when, and for which content of the event: of that, only the duration changes."""

    event: str
    phase: str
    at: float
    content: object


class _Disturbance:
    """Which VMs are disturbed by our hand, and for which events."""

    def __init__(self) -> None:
        self.by_vm: dict[str, set[str]] = {}

    def begin(self, vm: str, event: str) -> None:
        self.by_vm.setdefault(vm, set()).add(event)

    def end(self, vm: str, event: str) -> None:
        self.by_vm.get(vm, set()).discard(event)

    @property
    def vms(self) -> list[str]:
        return sorted(vm for vm, events in self.by_vm.items() if events)


class Judge:
    """``events`` by EventId, ``rules`` by their names; ``deleted`` are the VMs that have vanished, and when."""

    def __init__(
        self, events: Mapping[str, ListedEvent], rules: Mapping[str, Rule], at_most: int, deleted: Mapping[str, float]
    ) -> None:
        self._events = events
        self._rules = rules
        self._at_most = at_most
        self._deleted = deleted
        self._disturbed = _Disturbance()
        self._prepared: dict[tuple[str, str], object] = {}  # VM and event: the content that it is prepared for
        self._hooks: dict[tuple[str, int], _Hook] = {}
        self._told: dict[tuple[str, str], Mapping[str, Any]] = {}  # VM and event: how the VM was told of it last
        # VM and event: the content that it was prepared for, before it had to prepare anew because NotBefore was near.
        self._hurried: dict[tuple[str, str], object] = {}
        self._forced: set[tuple[str, str]] = set()  # VM and event: prepared because there was no more time to wait
        self.broken: list[str] = []

    def judge(self, ledgers: Mapping[str, Iterable[Entry]]) -> list[str]:
        """Return which promises were broken, in words."""
        moments: list[tuple[float, int, int, str, Entry | None]] = []
        for vm, ledger in ledgers.items():
            moments += [(entry.at, 1, number, vm, entry) for number, entry in enumerate(ledger)]
        moments += [(event.gone_at, 0, 0, event.event_id, None) for event in self._events.values()]
        moments += [(at, 0, 0, vm, None) for vm, at in self._deleted.items()]
        for at, _order, _number, who, entry in sorted(moments, key=lambda each: each[:3]):
            if entry is None:
                self._over(who)
            elif entry.kind == "start" and entry.fields["uid"] > 0:
                self._started(at, who, entry.fields)
            elif entry.kind == "document":
                self._told.update(((who, each["id"]), each) for each in entry.fields["events"])
            elif entry.kind in ("end", "exit", "leftover", "stopped"):
                self._ended(at, who, entry.fields)
            elif entry.kind == "post" and entry.fields["result"] in ("taken", "lost"):
                for event_id in entry.fields["ids"]:
                    self._approved(at, who, self._events[event_id])
        return self.broken

    def _started(self, at: float, vm: str, fields: Mapping[str, object]) -> None:
        event, phase, uid = str(fields["event"]), str(fields["phase"]), fields["uid"]
        assert isinstance(uid, int)
        listed, told = self._events[event], self._told.get((vm, event), {})
        rule = self._rules[listed.rule]
        self._hooks[vm, uid] = _Hook(event, phase, at, told.get("duration"))
        not_before = told.get("not_before")
        left = inf if not_before is None else not_before - EPOCH - at
        enough = left > (rule.prepare_seconds or 0.0) + HURRY_SECONDS
        if phase == "prepare":
            before = self._prepared.pop((vm, event), NOT_PREPARED)
            if before is not NOT_PREPARED and not enough:
                self._hurried[vm, event] = before
        if phase == "prepare":  # what is over and not recovered yet is left to this event
            for other in [each for each in self._disturbed.by_vm.get(vm, ()) if self._events[each].gone_at <= at]:
                self._disturbed.end(vm, other)
        if phase == "prepare" and rule.limited and (vm, event) not in self._forced:
            if enough:
                self._disturb(at, vm, listed, "prepares")
            else:
                self._forced.add((vm, event))

    def _ended(self, at: float, vm: str, fields: Mapping[str, object]) -> None:
        uid = fields["uid"]
        assert isinstance(uid, int)
        hook = self._hooks.get((vm, uid), _Hook("", "", at, None))
        if fields.get("result") != "succeeded":
            return
        if hook.phase == "prepare":
            self._prepared[vm, hook.event] = hook.content
            self._hurried.pop((vm, hook.event), None)
        elif hook.phase == "recover":  # once for all events that are over
            for over in [each for each in self._disturbed.by_vm.get(vm, ()) if self._events[each].gone_at <= hook.at]:
                self._disturbed.end(vm, over)
            self._prepared.pop((vm, hook.event), None)

    def _over(self, who: str) -> None:
        """Let a VM be deleted, or an event be over: for those who have nothing to recover, or who are left prepared for
        another event that is still listed.
        """
        if who not in self._events:
            self._disturbed.by_vm.pop(who, None)
            return
        begun = {(vm, hook.event) for (vm, _uid), hook in self._hooks.items() if hook.phase == "prepare"}
        now = self._events[who].gone_at
        for vm in self._events[who].names:
            others = [event for name, event in begun if name == vm and self._events[event].gone_at > now]
            if (vm, who) not in begun or others:
                self._disturbed.end(vm, who)

    def _approved(self, at: float, vm: str, event: ListedEvent) -> None:
        rule = self._rules[event.rule]
        if rule.ready and len(event.names) > 1:
            content = self._told[vm, event.event_id]["duration"]
            for name in event.names:
                both = name, event.event_id
                said = self._prepared.get(both, NOT_PREPARED), self._hurried.get(both, NOT_PREPARED)
                if rule.prepare_seconds is not None and content not in said:
                    self.broken.append(f"{at:.3f}: {vm} approved {event.event_id}, and {name} was not prepared for it")
        if at >= event.gone_at:
            return
        if rule.limited:
            for name in event.names:
                self._disturb(at, name, event, f"is approved by {vm}")

    def _disturb(self, at: float, vm: str, event: ListedEvent, how: str) -> None:
        if vm in self._deleted and at >= self._deleted[vm]:
            return
        self._disturbed.begin(vm, event.event_id)
        if len(self._disturbed.vms) > self._at_most:
            vms = ", ".join(self._disturbed.vms)
            self.broken.append(f"{at:.3f}: {vm} {how} for {event.event_id}: now {vms}, of {self._at_most}")
