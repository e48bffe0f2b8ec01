# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of a fleet as lines for a terminal: its events with the VMs that they affect, trouble, and policies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..pages import counted, printable
from .events import FleetEvent, HostEvent, decisions, differences, fleet_events, progress, source, when
from .status import HostState, grouped, names, natural, resources

HEADING, TROUBLE, WARNING, GOOD, PLAIN = "heading", "trouble", "warning", "good", ""
_WIDEST = 40  # of a column
_ALIKE = 4  # so many hosts with the same trouble share an entry
_MOST_NAMES = 20  # of hosts with the same policies


class TableLine(NamedTuple):
    """A line of the table, and what it is: one of the words above, for its colour."""

    text: str
    kind: str = PLAIN


def table(states: Sequence[HostState]) -> list[TableLine]:
    """Return the table of the hosts, in which every host with trouble and every affected VM is named."""
    events = fleet_events(states)
    sections = [list(_events(events)), list(_trouble(states)), list(_paused(states)), list(_policies(states))]
    lines = [line for section in sections if section for line in (*section, TableLine(""))]
    troubled = any(state.problems for state in states)
    lines.append(TableLine(summary(states, events), TROUBLE if troubled else GOOD))
    return [TableLine(printable(line.text, newline=r"\n").rstrip(), line.kind) for line in lines]


def summary(states: Sequence[HostState], events: Sequence[FleetEvent]) -> str:
    """Return a sentence on all hosts."""
    trouble = sum(state.level == "trouble" for state in states)
    affected = {str(name).lower() for event in events for report in event.reports for name in resources(report.event)}
    pending = f"{counted(len(events), 'event')} pending" + (f" for {counted(len(affected), 'VM')}" if events else "")
    return f"{counted(len(states), 'host')}, {trouble} with trouble; {pending}"


def trouble_text(states: Sequence[HostState], most: int = 5) -> str:
    """Return a sentence that names the hosts with trouble, or "" if there are none."""
    troubled = [state.host for state in states if state.problems]
    if not troubled:
        return ""
    return printable(f"{len(troubled)} of {counted(len(states), 'host')} with trouble: {names(troubled, most)}")


def _events(events: Sequence[FleetEvent]) -> Iterator[TableLine]:
    if events:
        yield TableLine("EVENTS", HEADING)
    for number, event in enumerate(events):
        if number:
            yield TableLine("")
        heading = [f"{event.kind} {when(event.event)}".rstrip(), source(event.event), event.event_id]
        yield TableLine(
            "  " + ", ".join(text for text in heading if text) + (" (drill)" if event.drill else ""), WARNING
        )
        for text, hosts in decisions(event):
            yield TableLine(f"    {text}{f' [{hosts}]' if hosts else ''}")
        for text, hosts in differences(event):
            yield TableLine(f"    hosts differ: {text} [{hosts}]", WARNING)
        yield from _affected(event)
        if event.neighbours:
            yield TableLine(f"    {counted(len(event.neighbours), 'other host')} not affected")


def _affected(event: FleetEvent) -> Iterator[TableLine]:
    rows = [(*_name_and_state(report), report) for report in event.affected]
    columns = [(name, state) for name, state, _report in rows] + [(name, "-") for name, _why in event.missing]
    widths = [min(_WIDEST, max((len(row[column]) for row in columns), default=0)) for column in (0, 1)]
    for name, state, report in rows:
        failed = bool(report.event.get("failure"))
        text = progress(report.event)
        yield TableLine(f"    {name:<{widths[0]}}  {state:<{widths[1]}}  {text}", TROUBLE if failed else PLAIN)
    for name, why in event.missing:
        yield TableLine(f"    {name:<{widths[0]}}  {'-':<{widths[1]}}  {why}", WARNING)


def _name_and_state(report: HostEvent) -> tuple[str, str]:
    state = str(report.event.get("state") or "-")
    return host_and_vm(report.state), f"{state}, dry run" if report.state.dry_run else state


def host_and_vm(state: HostState) -> str:
    """Return a host's name, with the name of its VM if that is another."""
    return state.host if state.vm.lower() in ("", state.host.lower()) else f"{state.host} ({state.vm})"


def _trouble(states: Sequence[HostState]) -> Iterator[TableLine]:
    alike = same_trouble(states)
    if alike:
        yield TableLine(f"TROUBLE on {counted(sum(len(hosts) for hosts, _problems in alike), 'host')}", HEADING)
    rows = []
    for hosts, problems in alike:
        if len(hosts) < _ALIKE:
            rows += [(host, problems, "") for host in hosts]
        else:
            rows.append((counted(len(hosts), "host"), problems, names(hosts)))
    width = min(_WIDEST, max((len(name) for name, _problems, _hosts in rows), default=0))
    for name, problems, named in rows:
        yield TableLine(f"  {name:<{width}}  {problems[0]}", TROUBLE)
        yield from (TableLine(f"  {'':<{width}}  {problem}", TROUBLE) for problem in problems[1:])
        if named:
            yield TableLine(f"  {'':<{width}}  {named}")


def _paused(states: Sequence[HostState]) -> Iterator[TableLine]:
    found = pauses(states)
    if found:
        yield TableLine(f"APPROVALS PAUSED on {counted(sum(len(hosts) for hosts, _text in found), 'host')}", HEADING)
    for hosts, text in found:
        yield TableLine(f"  {text}: {names(hosts, _MOST_NAMES)}", WARNING)


def pauses(states: Sequence[HostState]) -> list[tuple[Sequence[str], str]]:
    """Return the hosts on which approvals are paused, by who paused them and why, with a sentence on that."""
    alike = grouped(((state.pause.by, state.pause.reason), state) for state in states if state.pause is not None)
    found: list[tuple[Sequence[str], str]] = []
    for (by, reason), paused in alike.items():
        until = sorted({state.pause.until for state in paused if state.pause is not None})
        end = until[0] if len(until) == 1 else f"{until[0]} to {until[-1]}"
        who = f", by {by}: {reason}" if by else ""
        found.append(([state.host for state in paused], f"until {end}{who}"))
    return found


def same_trouble(states: Sequence[HostState]) -> list[tuple[Sequence[str], Sequence[str]]]:
    """Return the hosts with trouble and their problems; hosts with the same problems are together."""
    alike = grouped((tuple(state.problems), state.host) for state in states if state.problems)
    return [(hosts, problems) for problems, hosts in alike.items()]


def _policies(states: Sequence[HostState]) -> Iterator[TableLine]:
    groups = policies(states)
    if groups:
        yield TableLine("POLICIES", HEADING)
    widths = [max((len(group[column]) for group in groups), default=0) for column in (0, 1)]
    known = sum(len(hosts) for _policy, _version, hosts in groups)
    for policy, version, hosts in groups:
        few = 2 * len(hosts) <= known
        named = f": {names(hosts, _MOST_NAMES)}" if few else ""
        text = f"{policy:<{widths[0]}}  {version:<{widths[1]}}  {counted(len(hosts), 'host')}{named}"
        yield TableLine(f"  {text}", WARNING if few else PLAIN)
    builds = Counter(state.version for state in states if state.version)
    if len(builds) > 1:
        counts = ", ".join(f"{build} on {counted(hosts, 'host')}" for build, hosts in builds.most_common())
        yield TableLine(f"  {len(builds)} builds of the runner: {counts}", WARNING)


def policies(states: Sequence[HostState]) -> list[tuple[str, str, Sequence[str]]]:
    """Return the policies in use and the runner's version, with the hosts that have them, the most hosts first."""
    groups = grouped(((str(state.policy), _version(state)), state.host) for state in states if state.policy is not None)
    ordered = sorted(groups.items(), key=lambda group: (-len(group[1]), natural(group[0][0])))
    return [(policy, version, hosts) for (policy, version), hosts in ordered]


def _version(state: HostState) -> str:
    version = [f"forewarn {state.version}"] if state.version else []
    return ", ".join([*version, "dry run"] if state.dry_run else version)
