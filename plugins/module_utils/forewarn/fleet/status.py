# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of each host of a fleet, read from what Ansible registered. fleet.table and fleet.page show it.

The texts come from many VMs and, through their events, from the service: none of them is trusted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, Mapping, NamedTuple, TypeVar

from .host_answers import one_line

Event = Mapping[str, Any]  # as forewarn status and forewarn history report it

Key = TypeVar("Key")
Value = TypeVar("Value")

SILENT = "silent"  # the condition of a runner of which Prometheus has no fresh metrics

_DIGITS = 12  # of a digest or a commit: enough to tell them apart
_NUMBERS = re.compile(r"([0-9]+)")


class PolicyInUse(NamedTuple):
    """The policies of a runner: their names, where they come from, and the first digits of their digest.

    ``serial`` is that of signed policies, None without one.
    """

    names: str
    ref: str
    commit: str
    digest: str
    serial: int | None = None

    def __str__(self) -> str:
        """Return all of it that is known, for people."""
        version = " ".join(text for text in (self.ref, f"({self.commit})" if self.commit else "") if text)
        serial = "" if self.serial is None else f"serial {self.serial}"
        return " ".join(text for text in (self.names, version, self.digest, serial) if text) or "-"


class PausedBy(NamedTuple):
    """A pause of approvals on a host that an operator has begun: until when (ISO 8601), by whom, and why.

    Who and why are "" where only metrics are known.
    """

    until: str
    by: str
    reason: str


class HostState(NamedTuple):
    """The state of a host; ``problems`` are sentences. ``vm`` is "" if unknown.

    ``runner`` and ``service`` are a word or two, ``health`` has sentences on both, by name. Without a report
    ``policy`` is None.
    """

    host: str
    vm: str
    events: Sequence[Event]
    problems: Sequence[str]
    runner: str = "unknown"
    service: str = "-"
    policy: PolicyInUse | None = None
    version: str = ""
    health: Mapping[str, str] = {}
    dry_run: bool = False
    pause: PausedBy | None = None

    @property
    def level(self) -> str:
        """Return ``trouble``, ``pending`` if an event affects the VM, or ``quiet``."""
        if self.problems:
            return "trouble"
        return "pending" if any(affects(event, self) for event in self.events) else "quiet"


def host_states(answers: Mapping[str, Mapping[str, Any]]) -> list[HostState]:
    """Read registered results of the module ``runner_report`` by host; return the states in natural order."""
    states = [_host_state(str(host), mapping(answer)) for host, answer in answers.items()]
    return sorted(states, key=lambda state: natural(state.host))


def _host_state(host: str, answer: Mapping[str, Any]) -> HostState:
    try:
        return state_of(host, json.loads(answer.get("stdout") or ""))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        said = one_line(answer.get("msg") or "") or ("no status: its report cannot be read" if answer else "")
        return HostState(host, "", [], [said or "not asked: Ansible has no result of this host"])


def state_of(host: str, report: Mapping[str, Any]) -> HostState:
    """Return the state of a host from the object that ``forewarn status --json`` writes.

    Raises KeyError, TypeError or AttributeError for something else.
    """
    runner, service = report["runner"], report["service"]
    condition, serving = str(runner["condition"]), str(service["state"])
    problems = [str(problem) for problem in listed(report["problems"])]
    # These are within the problems already, unless another version of the runner reports them.
    missing = [str(text) for text in listed(runner.get("missing"))]
    problems += [text for text in missing if not any(text in problem for problem in problems)]
    if not problems and condition != "running":
        problems.append(f"the runner is {runner.get('text') or condition}")
    pause = mapping(report.get("pause"))
    events = [event for event in listed(report["events"]) if isinstance(event, Mapping)]
    facts = {
        "runner": runner.get("text"),
        "service": service.get("text"),
        "group": _group(mapping(runner.get("group"))),
    }
    return HostState(
        host,
        str(runner.get("vm") or ""),
        events,
        list(dict.fromkeys(problems)),
        condition,
        serving,
        None if condition == SILENT else policy_in_use(runner),
        str(runner.get("version") or ""),
        {name: str(value) for name, value in facts.items() if value},
        bool(runner.get("dry_run")),
        # One that cannot be read is within the problems.
        _paused_by(pause) if pause.get("until") else None,
    )


def _paused_by(pause: Mapping[str, Any]) -> PausedBy:
    known = {"by", "reason"} & pause.keys()
    return PausedBy(*(str(pause.get(name) or ("?" if known else "")) for name in PausedBy._fields))


def _group(group: Mapping[str, Any]) -> str:
    """Return the group of a VM, with the slots that it holds and waits for, "" if it belongs to none."""
    if not group:
        return ""
    held, waiting = (group.get(name) for name in ("slots", "waiting"))
    return f"{group.get('name')}: holds slots for {held} events, waits for {waiting}"


def policy_in_use(runner: Mapping[str, Any]) -> PolicyInUse:
    """Return the policies of a runner: ``policies`` are names, ``policy`` a digest, ``source`` a commit,
    ``serial`` that of signed policies, if known.
    """
    serial = runner.get("serial")
    source = mapping(runner.get("source"))
    commit = str(source.get("commit") or "")[:_DIGITS]
    modified = ", modified" if source.get("modified") else ""
    return PolicyInUse(
        ", ".join(str(name) for name in listed(runner.get("policies"))),
        str(source.get("ref") or ""),
        commit + modified if commit else "",
        str(runner.get("policy") or "").rpartition(":")[2][:_DIGITS],
        serial if isinstance(serial, int) and not isinstance(serial, bool) else None,
    )


def affects(event: Event, state: HostState) -> bool:
    """Return whether an event is announced for a host's VM. Without its name the host's own counts."""
    name = (state.vm or state.host).lower()
    return any(str(resource).lower() == name for resource in resources(event))


def resources(event: Event) -> Sequence[Any]:
    """Return the names of the VMs that an event affects."""
    return listed(mapping(event.get("event")).get("Resources"))


def natural(name: str) -> tuple[object, ...]:
    """Return a key that sorts ``web_2`` before ``web_10``."""
    parts = _NUMBERS.split(name.lower())
    numbers = [(len(digits.lstrip("0")), digits.lstrip("0")) for digits in parts[1::2]]
    return (*(one for pair in zip(parts[::2], [*numbers, (0, "")], strict=True) for one in pair), name)


def names(found: Iterable[str], most: int = 0) -> str:
    """Return names in natural order, of more than ``most`` (0: all) only the first and the number of the others."""
    ordered = sorted(found, key=natural)
    if 0 < most < len(ordered):
        return f"{', '.join(ordered[:most])} and {len(ordered) - most} more"
    return ", ".join(ordered)


def grouped(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """Return the values of each key, in the order of their first pairs."""
    found: dict[Key, list[Value]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def mapping(value: object) -> Mapping[str, Any]:
    """Return an object as it is, and an empty one for anything else."""
    return value if isinstance(value, Mapping) else {}


def listed(value: object) -> Sequence[Any]:
    """Return a list as it is, and an empty one for anything else."""
    return value if isinstance(value, (list, tuple)) else ()
