# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Four VMs of a group: real runners in virtual time, and a store in memory."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

from forewarn.emulator.spec import EventSpec
from forewarn.runner.groups import barrier, documents, semaphore
from forewarn.runner.groups.semaphore import Semaphore
from tools.fixtures.policy_data import policy, policy_set
from tools.worlds.group_world import GROUP, GroupWorld
from tools.worlds.memory_store import LOST_ANSWER
from tools.worlds.runner_profiles import hook
from tools.worlds.runner_world import Hook

DRAINS = {"prepare": [hook("drain")], "recover": [hook("undrain")]}
ONE, TWO = {"at_most": 1}, {"at_most": 2}
RULES: dict[str, dict[str, Any]] = {
    "ready": {"group": "ready", **DRAINS},
    "both": {"group": "ready", "limit": TWO, **DRAINS},
    "one": {"limit": ONE, **DRAINS},
    "alone": {"limit": ONE},
    "at-once": {"group": "ready", "limit": TWO},
    "share": {"limit": {"percent": 50}, **DRAINS},
    "elsewhere": {"limit": {"at_most": 1, "group": '"db"'}, **DRAINS},
    "witness": {"approver": "witness", "condition": "!affects_me"},
    "watched": {"approver": "witness", "limit": ONE, "prepare": [hook("drain")]},
    "held": {"output": "hold", "limit": ONE, **DRAINS},
    "independent": {"group": "independent", **DRAINS},
}
VMS = ("a", "b", "c", "d")


def match(name: str, values: dict[str, Any]) -> dict[str, Any]:
    condition = f'event.Description == "{name}"'
    if "condition" in values:
        condition += f" && {values['condition']}"
    return {"id": name, "output": "approve", **values, "condition": condition}


POLICIES = policy_set(policy(*(match(name, values) for name, values in RULES.items())))


class Group(GroupWorld):
    """Four VMs. ``seconds`` is how long their hooks take, by VM; ``troubles`` what happens to their requests."""

    def __init__(self, directory: Path) -> None:
        self.seconds: dict[str, float] = {}
        self.results: dict[str, str] = {}
        self.troubles: dict[str, str] = {}
        super().__init__(VMS, POLICIES, directory, Random(1), self._plan, self._meets)

    def _meets(self, vm: str, what: str, _key: str) -> str | None:
        trouble = self.troubles.get(vm)
        return trouble if trouble != LOST_ANSWER or what == "swap" else None

    def _plan(self, vm: str, started: Hook) -> None:
        started.ends_at = started.started_at + self.seconds.get(vm, 2.0)
        started.result = self.results.get(vm, "succeeded")

    def create(self, group: str = GROUP) -> None:
        self.server.swap(documents.semaphore_key(group), semaphore.encode(Semaphore()), "")

    def begin(self, *names: str) -> None:
        for name in names or VMS:
            self.start(self.members[name])
        self.run(self.now + 2.0)

    def schedule(self, rule: str, *names: str, notice: float = 600.0, **values: Any) -> str:
        values = {"impact": 1.0, "gone_after": 5.0, **values}
        return self.model.schedule(EventSpec("Reboot", names, notice=notice, description=rule, **values))

    def pass_time(self, seconds: float) -> None:
        self.run(self.now + seconds)

    def approved_by(self, event: str) -> list[str]:
        return [approval.vm for approval in self.model.find(event).approvals]

    def semaphore(self, group: str = GROUP) -> Semaphore:
        return semaphore.decode(self.server.content()[documents.semaphore_key(group)])

    def holders(self, group: str = GROUP) -> list[str]:
        return sorted(self.semaphore(group).disturbed())

    def barriers(self) -> list[barrier.Barrier]:
        content = self.server.content()
        return [barrier.decode(content[key]) for key in sorted(content) if "/events/" in key]

    def why(self, vm: str) -> tuple[str, str]:
        """Return why a VM does not approve its only event: the code, and the reason."""
        made = self.members[vm].instance
        assert made is not None
        (record,) = made.runner.controller.reconciler.tracker.records
        assert record.decision is not None
        return record.decision["eligibility"], record.decision["eligibility_reason"]

    def lines(self, vm: str, name: str) -> list[dict[str, Any]]:
        made = self.members[vm].instance
        assert made is not None
        return [fields for _level, line, fields in made.log.lines if line == name]

    def hooks(self, vm: str) -> list[str]:
        return [entry.fields["name"] for entry in self.members[vm].world.ledger if entry.kind == "start"]
