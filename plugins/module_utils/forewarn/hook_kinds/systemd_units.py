# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Units as systemd shows them, and the other units that a stop concerns (systemctl(1), systemd.unit(5))."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping

from .common.work import Work

SYSTEMCTL = ("systemctl", "--no-ask-password")
# What systemd stops with a unit. It knows PropagatesStopTo since 249.
_STOPPED_WITH = ("RequiredBy", "RequisiteOf", "BoundBy", "ConsistsOf", "PropagatesStopTo")
_SHOWN = (
    *("Id", "LoadState", "ActiveState", "SubState", "Result", "Job", "InvocationID", "DropInPaths", "Transient"),
    *("Type", "RemainAfterExit", "ActiveEnterTimestampMonotonic", "Triggers", "TriggeredBy", *_STOPPED_WITH),
)
# Units that systemctl cannot start again.
_NOT_STARTED = (".scope", ".device")


class Unit:
    """The properties of a unit by ``systemctl show``: ``state`` is its ActiveState, ``sub_state`` its SubState."""

    def __init__(self, shown: Mapping[str, str]) -> None:
        self._shown = shown
        self.name = shown["Id"]
        self.state, self.sub_state = shown["ActiveState"], shown["SubState"]
        self.load_state = shown["LoadState"]
        self.result = shown.get("Result", "")
        self.is_loaded = self.load_state == "loaded"
        # Between two runs of a service that Restart= brings back, systemd has had a state that looks final since 254.
        self.is_restarting = "auto-restart" in self.sub_state
        self.is_down = self.state in ("inactive", "failed") and not self.is_restarting
        self.is_queued = shown.get("Job", "") not in ("", "0")
        # It is activating while it runs, and inactive once it has done its work.
        self._is_once = shown.get("Type") == "oneshot" and shown.get("RemainAfterExit") == "no"
        self.is_running_once = self._is_once and self.state == "activating" and not self.is_restarting
        self.is_long_running = self.name.endswith(".service") and shown.get("Type") != "oneshot"
        self.invocation = shown.get("InvocationID", "")
        self.active_since = int(shown.get("ActiveEnterTimestampMonotonic") or 0) / 1e6  # as time.monotonic()
        self.drop_ins = self._names("DropInPaths")
        self.triggers = self._names("Triggers")
        self.triggered_by = self._names("TriggeredBy")
        self.stops = tuple(name for names in _STOPPED_WITH for name in self._names(names))
        self.can_be_started = not self.name.endswith(_NOT_STARTED) and shown.get("Transient") != "yes"

    def __str__(self) -> str:
        return f"{self.name} is {self.state} ({self.sub_state})"

    def has_done_its_work(self, before: str, active: Collection[str]) -> bool:
        """Return whether the unit has ended with success since its invocation ``before``, and need not run on.

        ``active`` are units that are active: one of them may trigger it when there is work again.
        """
        if not self.is_down or self.is_queued or self.result != "success" or self.invocation == before:
            return False
        # systemd forgets a unit that has ended, and its invocation, unless something such as its trigger refers to it.
        return self._is_once or (bool(self.invocation) and not {*self.triggered_by}.isdisjoint(active))

    def _names(self, key: str) -> tuple[str, ...]:
        return tuple(shlex.split(self._shown.get(key, "")))  # systemctl quotes a name that has a backslash


def read_units(work: Work, names: Collection[str]) -> dict[str, Unit]:
    """Return units by their own names, never an alias, all as of one time. Raises HookFailedError."""
    if not names:
        return {}
    output = work.run(*SYSTEMCTL, "show", f"--property={','.join(_SHOWN)}", "--", *names).output
    blocks = [dict(line.partition("=")[::2] for line in block.splitlines()) for block in output.split("\n\n")]
    return {unit.name: unit for unit in map(Unit, filter(None, blocks))}


def systemctl(work: Work, verb: str, names: Collection[str], *options: str) -> None:
    """Run start, stop or reset-failed for units, without waiting for the result. Raises HookFailedError."""
    if names:
        no_block = ("--no-block",) if verb in ("start", "stop") else ()
        work.run(*SYSTEMCTL, verb, *no_block, *options, "--", *names)


def read_related_units(work: Work, unit: Unit, with_triggers: bool) -> dict[str, Unit]:
    """Return a unit and the units that systemd stops with it, the nearest first.

    With ``with_triggers``, also return the units that trigger any of these.
    """
    found = {unit.name: unit}
    nearest = [unit]
    installed = _installed_triggers(work) if with_triggers else []
    while nearest:
        names = {name for one in nearest for name in (*one.stops, *(one.triggered_by if with_triggers else ()))}
        names.update(one.name for one in installed if not {*one.triggers}.isdisjoint(unit.name for unit in nearest))
        looked = read_units(work, sorted(names - {*found})).values()
        # A timer that has elapsed triggers nothing more; to start it again could.
        nearest = [one for one in looked if one.is_loaded and one.sub_state != "elapsed"]
        found.update((one.name, one) for one in nearest)
    return found


def triggers_among(units: Mapping[str, Unit]) -> list[Unit]:
    """Return the units that trigger another one of ``read_related_units``, each before the units that it triggers."""
    return [unit for unit in reversed(list(units.values())) if {*unit.triggers} & {*units}]


def _installed_triggers(work: Work) -> list[Unit]:
    """Return the units that can trigger others, also those not loaded yet, which somebody may start meanwhile."""
    types = "--type=socket,path,timer,automount"
    listed = work.run(*SYSTEMCTL, "list-unit-files", types, "--no-legend", "--no-pager", "--plain").output
    names = [line.split()[0] for line in listed.splitlines() if line.strip()]
    return list(read_units(work, [name for name in names if "@." not in name]).values())
