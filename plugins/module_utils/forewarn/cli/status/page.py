# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of ``forewarn status`` for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .. import failing_recoveries
from ..output.console import one_line
from ..output.page import Page, announced_text, iso, resources_text
from ..run import next_start
from ..runner_state import list_of, number_of, text_of
from .report import RUNNING, name_of, unread_text

UNKEPT_NAMED = 3  # at most, by the heartbeat
_DIGITS = 12  # of a commit: enough to tell commits apart
_WIDEST = 28  # columns of a cell whose text comes from the service
_HEADER = ("TYPE", "STATE", "STARTS", "LASTS", "SOURCE")
_STATE_STYLES = {
    "held": "yellow",
    "preparing": "cyan",
    "prepared": "green",
    "failed": "bold red",
    "approved": "green",
    "started": "bold",
    "recovering": "cyan",
}


def show(page: Page, report: Mapping[str, Any]) -> None:
    """Write the report."""
    _show_runner(page, report)
    page.line()
    events, unkept = report["events"], report["unkept"]
    if unkept["number"]:
        number = f"{unkept['number']} {'event' if unkept['number'] == 1 else 'events'}"
        text = f"{number} not in the journal, and held where there are hooks: {unkept['events']}"
        page.line(text + (", …" if unkept["number"] > UNKEPT_NAMED else ""), "bold", "red")
    if not report["journal"]["read"]:
        page.line("The pending events are not known: the journal cannot be read.", "bold", "red")
    unread = report["document"]
    if unread["problems"]:
        text = unread_text(unread["problems"], unread["first"] or "the reason is not known")
        page.line(f"There may be more than is shown: {text}", "bold", "red")
    if not (events or unkept["number"] or unread["problems"]) and report["journal"]["read"]:
        page.line("Nothing is pending.")
    elif events:
        if report["runner"]["condition"] != RUNNING:
            page.line("As the runner left it:", "yellow")
        _show_events(page, events)
    if report["failing_recoveries"]:
        page.line()
        page.line("Failing recoveries:", "bold", "red")
        failing_recoveries.show(page, report["failing_recoveries"])
    lost = [doubt["text"] for doubt in report["damaged"]]
    failed = [f"{name_of(event)}: {event['failure']}" for event in report["failed_recoveries"]]
    for title, texts in (
        ("Lost, and held until somebody has dealt with it:", lost),
        ("Not recovered, in the last 24 hours:", failed),
    ):
        if texts:
            page.line()
            page.line(title, "bold", "red")
        for text in texts:
            page.hanging("  ", text)


def _show_runner(page: Page, report: Mapping[str, Any]) -> None:
    runner, service = report["runner"], report["service"]
    running = runner["condition"] == RUNNING
    about = [f"process {runner['pid']}" if running and runner["pid"] else "", f"forewarn {runner['version']}"]
    about += [f"on {runner['vm']}" if runner["vm"] else ""]
    known = ", ".join(text for text in about if text) if runner["version"] else ""
    page.hanging(_label("runner"), runner["text"], *(("green",) if running else ("bold", "red")))
    if known:
        page.hanging(_label(""), known)
    if runner["dry_run"]:
        page.hanging(_label(""), "a dry run: it approves nothing and runs no hooks", "yellow")
    style = "green" if service["state"] == "ok" and running else "red"
    page.hanging(_label("service"), service["text"] if running else f"not asked; {service['answered']}", style)
    if runner["policy"]:
        texts = [", ".join(runner["policies"]), runner["policy"], _source_text(runner["source"] or {})]
        for number, text in enumerate(text for text in texts if text):
            page.hanging(_label("" if number else "policy"), text)
    if runner["serial"] is not None:
        since = "" if runner["serial_since"] is None else f", here since {runner['serial_since']}"
        page.hanging(_label(""), f"serial {runner['serial']}{since}")
    if running and runner["policy_problem"]:
        text = f"not those of the configuration, but those that were in use last: {runner['policy_problem']}"
        page.hanging(_label(""), text, "bold", "red")
    if running and runner["policy_source"]:
        said, styles = _policy_source_text(runner["policy_source"])
        page.hanging(_label("source"), said, *styles)
    if report["pause"] is not None:
        colour = ("bold", "red") if report["pause"]["problem"] else ("yellow",)
        page.hanging(_label("paused"), report["pause"]["text"], *colour)
    for text in runner["missing"]:
        page.hanging(_label("hooks"), f"one lacks what it needs: {text}", "bold", "red")
    if report["on_disk"] is not None:
        for text in next_start.problems(runner, report["on_disk"], running=running):
            page.hanging(_label("on disk"), text, "bold", "red")
    if running and runner["reload_problem"]:
        text = f"the last reload was refused, and the runner keeps its configuration: {runner['reload_problem']}"
        page.hanging(_label("reload"), text, "yellow")
    if running and runner["group"]:
        said, styles = _group_text(runner["group"])
        page.hanging(_label("group"), said, *styles)
    if running and runner["sink"]:
        said, styles = _sink_text(runner["sink"])
        page.hanging(_label("sink"), said, *styles)
    trouble = report["journal"]["trouble"]
    if trouble:
        page.hanging(_label("journal"), trouble, "bold", "red")


def _group_text(group: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """Return what this VM holds in the store of its group, with its style."""
    slots, waiting, ended = (int(number_of(group, name) or 0) for name in ("slots", "waiting", "taking_back"))
    text = f"{text_of(group, 'name')}, {text_of(group, 'store')}"
    text += f": a slot for {slots} {'event' if slots == 1 else 'events'}" if slots else ""
    text += f"; {waiting} {'waits' if waiting == 1 else 'wait'} for a slot" if waiting else ""
    text += f"; for {ended} it has still to be given back" if ended else ""
    problem = text_of(group, "problem")
    return (f"{text}: {problem}", ("bold", "red")) if problem else (text, ())


def _policy_source_text(source: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """Return what the policy source has, with its style."""
    checked, share, problem = number_of(source, "checked_at"), number_of(source, "share"), text_of(source, "problem")
    text = f"{text_of(source, 'url')}, " + ("not asked yet" if checked is None else f"asked at {iso(checked)}")
    text += f"; serial {number_of(source, 'serial')}" if number_of(source, "serial") else ""
    text += f", for {share:g} % of the VMs" if share is not None else ""
    return (f"{text}: {problem}", ("bold", "red")) if problem else (text, ())


def _sink_text(sink: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """Return how far a sink is, with its style."""
    behind, lost, rejected = (int(number_of(sink, name) or 0) for name in ("behind", "lost", "rejected"))
    text = f"{text_of(sink, 'url')}, {f'{behind} entries behind' if behind else 'has everything'}"
    text += f"; {lost} were lost before they were sent" if lost else ""
    text += f"; {rejected} were rejected" if rejected else ""
    problem = text_of(sink, "problem")
    return (f"{text}: {problem}", ("yellow",)) if problem else (text, ("yellow",) if lost or rejected else ())


def _source_text(source: Mapping[str, Any]) -> str:
    """Return where policies came from, or ""."""
    ref, commit, repository = (text_of(source, name) for name in ("ref", "commit", "repository"))
    known = [ref, f"commit {commit[:_DIGITS]}" if commit else "", f"of {repository}" if repository else ""]
    changes = "with changes that are not in it" if source.get("modified") is True else ""
    text = " ".join(part for part in known if part)
    return ", ".join(part for part in (text, changes) if part)


def _label(name: str) -> str:
    return f"{name:<9}"


def _show_events(page: Page, events: Sequence[Mapping[str, Any]]) -> None:
    """Write a row for each event, and below it what does not fit into columns."""
    rows = [_row(event) for event in events]
    margin = " " * (max(len(row[0]) for row in (_HEADER, *rows)) + 2)

    def write_more(number: int) -> None:
        event = events[number]
        if event["drill"]:
            page.hanging(margin, "a drill: nothing is approved", "yellow")
        page.hanging(f"{margin}waits for  ", event["waits_for"], *(("red",) if event["failure"] else ()))
        if event["would"]:
            page.hanging(f"{margin}would      ", "; ".join(event["would"]), "yellow")
        page.hanging(f"{margin}affects    ", resources_text(list_of(event["event"], "Resources")))
        page.hanging(f"{margin}id         ", event["event_id"])

    page.console.table(_HEADER, rows, {**{row[0]: "bold" for row in rows}, **_STATE_STYLES}, write_more)


def _row(event: Mapping[str, Any]) -> tuple[str, ...]:
    fields = event["event"]
    return (
        one_line(text_of(fields, "EventType") or "?")[:_WIDEST],
        one_line(event["state"])[:_WIDEST],
        event["starts"],
        announced_text(number_of(fields, "DurationInSeconds")),
        one_line(text_of(fields, "EventSource") or "-")[:_WIDEST],
    )
