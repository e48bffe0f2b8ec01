# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A rollout summed up as lines for a terminal: hosts with the same result are one entry, however many they are."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..pages import counted, printable
from .host_answers import no_connection, one_line
from .status import PolicyInUse, grouped, listed, mapping, names, policy_in_use
from .table import GOOD, HEADING, PLAIN, TROUBLE, WARNING, TableLine

DONE, FAILED, NOT_REACHED, NOT_BEGUN = "done", "failed", "not reached", "not begun"
_MOST_NAMES = 8  # of hosts in one entry
# Settings of the runner that others rely on; the role has a variable forewarn_NAME for each.
_RELIED_ON = ("group", "metrics_file", "metrics_listen", "probe_listen", "sink_url")


class HostRollout(NamedTuple):
    """What became of one host: a word above, and why if that is trouble.

    ``before`` and ``now`` are its policies, None if there are none or they are not known; ``changes`` has a line for
    each change between the two.
    """

    host: str
    outcome: str
    why: str = ""
    before: PolicyInUse | None = None
    now: PolicyInUse | None = None
    changes: tuple[str, ...] = ()


def host_rollout(host: str, variables: Mapping[str, Any], rehearsed: bool) -> HostRollout:
    """Read what the playbook has noted of a host. ``rehearsed``: in check mode, in which nothing was changed."""
    outcome, compared, status, asked = (
        mapping(variables.get(f"__forewarn_{name}")) for name in ("outcome", "compared", "status", "asked")
    )
    state = str(outcome.get("state") or "")
    if not state:
        return HostRollout(host, NOT_BEGUN)
    if state == FAILED:
        return HostRollout(host, FAILED, one_line(outcome.get("why") or ""))
    if state != DONE:
        silent = asked.get("unreachable")
        why = no_connection(str(asked.get("msg"))) if silent else "it answered no longer: its rollout was cut short"
        return HostRollout(host, NOT_REACHED, why)
    now = mapping(compared.get("after")) if rehearsed else _reported(status) or mapping(compared.get("after"))
    changes = [str(line) for line in listed(compared.get("changes"))]
    for title, of in (("other values of parameters", "params"), ("no longer set", "dropped")):
        changes += [f"{title}: {', '.join(map(str, listed(compared[of])))}"] if listed(compared.get(of)) else []
    changes += [f"perhaps other changes: {one_line(compared['doubt'])}"] if compared.get("doubt") else []
    before, after = (policy_in_use(each) if each else None for each in (mapping(compared.get("before")), now))
    return HostRollout(host, DONE, "", before, after, tuple(changes))


def _reported(status: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the runner in what ``forewarn status --json`` has written, empty if there is none."""
    try:
        return mapping(mapping(json.loads(str(status.get("stdout")))).get("runner"))
    except (ValueError, RecursionError):
        return {}


def settings_dropped(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return the variables of settings that a configuration has, and the one that is to replace it does not."""
    return [f"forewarn_{name}" for name in _RELIED_ON if old.get(name) and not new.get(name)]


def rollout_lines(rollouts: Sequence[HostRollout], rehearsed: bool) -> list[TableLine]:
    """Return the lines for a terminal."""
    lines = [*_policies(rollouts, rehearsed), *_trouble(rollouts), TableLine("")]
    troubled = bool(trouble_text(rollouts))
    lines.append(TableLine(summary(rollouts), TROUBLE if troubled else GOOD))
    return [TableLine(printable(line.text, newline=r"\n").rstrip(), line.kind) for line in lines]


def summary(rollouts: Sequence[HostRollout]) -> str:
    """Return a sentence on all hosts."""
    numbers = {word: sum(one.outcome == word for one in rollouts) for word in (DONE, FAILED, NOT_REACHED, NOT_BEGUN)}
    return f"{counted(len(rollouts), 'host')}: {', '.join(f'{number} {word}' for word, number in numbers.items())}"


def trouble_text(rollouts: Sequence[HostRollout]) -> str:
    """Return a sentence that names hosts on which it is not done, or "" if there are none."""
    left = [one.host for one in rollouts if one.outcome != DONE]
    return printable(f"{summary(rollouts)}. Not done: {names(left, _MOST_NAMES)}") if left else ""


def _policies(rollouts: Sequence[HostRollout], rehearsed: bool) -> Iterator[TableLine]:
    groups = grouped((one._replace(host=""), one.host) for one in rollouts if one.outcome == DONE)
    if groups:
        yield TableLine("POLICIES, if this were no rehearsal" if rehearsed else "POLICIES", HEADING)
    width = max((len(_description(one.now)) for one in groups), default=0)
    for one, hosts in sorted(groups.items(), key=lambda group: -len(group[1])):
        on = f"{counted(len(hosts), 'host')}: {names(hosts, _MOST_NAMES)}"
        yield TableLine(f"  {_description(one.now):<{width}}  {on}")
        if one.before == one.now and not one.changes:
            yield TableLine("    as before")
        else:
            yield TableLine(f"    before: {_description(one.before)}")
        yield from (TableLine(f"    {line}", WARNING) for line in one.changes)


def _description(policy: PolicyInUse | None) -> str:
    return "none that is known" if policy is None else str(policy)


def _trouble(rollouts: Sequence[HostRollout]) -> Iterator[TableLine]:
    for outcome in (FAILED, NOT_REACHED, NOT_BEGUN):
        alike = grouped((one.why, one.host) for one in rollouts if one.outcome == outcome)
        if alike:
            number = counted(sum(map(len, alike.values())), "host")
            yield TableLine(f"{outcome.upper()}: {number}", HEADING)
        for why, hosts in alike.items():
            yield TableLine(f"  {names(hosts, _MOST_NAMES)}", PLAIN if outcome == NOT_BEGUN else TROUBLE)
            if why:
                yield TableLine(f"    {why}", TROUBLE)
