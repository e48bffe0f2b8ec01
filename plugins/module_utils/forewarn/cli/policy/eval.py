# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn policy eval``: the value of one expression for an event, and the values of its parts."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from ...compiler.cel.expression import ExpressionError
from ...compiler.cel.types import ExpressionFinding
from ...compiler.evaluation import SOURCE, EvaluationResult, EventExpression
from ...compiler.findings import Finding, Report, SourceText, render
from ...compiler.policies import load_policies
from ...compiler.requirements import require_libraries
from ...compiler.wording import closest
from ...errors import InputError
from ...events import FIELD_SINCE, Document, Event, Vm
from ...policy.evaluation_error import EvaluationError
from ...policy.params import check_names, from_options, name_and_value
from ..output.console import Console, write_json
from .common import add_api_version, add_facts, given_vm, plural
from .event import add_times, chosen_events, document_of, given_facts, given_now, read_document

_NEXT_FIELD = re.compile(r",(?=\w+=)")
_DEFAULT_VM = "vm_0"
_NOTICE = timedelta(minutes=15)
_OF_EVENT = re.compile(r"\b(event|events|notice|age|affects_me|leader)\b")
_OF_VM = re.compile(r"\b(affects_me|leader|vm\.name)\b")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "expression",
        metavar="EXPRESSION",
        help="an expression of CEL, of any type, which may read what rules may: event, vm, now and so on",
    )
    events = parser.add_mutually_exclusive_group()
    events.add_argument(
        "--event",
        action="append",
        metavar="FIELD=VALUE,…",
        help="fields of an event, under the service's names; FIELD=null leaves one out. Repeatable. Defaults: "
        "an EventId, Scheduled, this VM as Resources, NotBefore 15 minutes ahead",
    )
    events.add_argument(
        "--document",
        metavar="FILE",
        help="an event or a document, as the service writes it or 'forewarn events --json'; '-': stdin",
    )
    parser.add_argument("--event-id", metavar="ID", help="evaluate for this event of the document alone")
    parser.add_argument(
        "--policy", type=Path, metavar="FILE", help="a policy, whose parameters and variables the expression may read"
    )
    add_facts(parser)
    add_times(parser)
    add_api_version(parser)
    parser.add_argument("--json", action="store_true", help="write one JSON object")


def run(args: argparse.Namespace) -> int:
    """Evaluate the expression for each event; return 1 if it has no value for one."""
    require_libraries()
    expression = _expression(args)
    vm = given_vm(args.vm, args.vm_name)
    now = given_now(args)
    document, events = _events(args, vm, now)
    facts = given_facts(args, vm, document or Document(None, ()), now)
    found: list[tuple[Event | None, EvaluationResult]] = [
        (event, expression.evaluate(document, event, facts)) for event in events
    ]
    if args.json:
        content = {"expression": args.expression, "type": str(expression.type), "now": facts.now.isoformat()}
        problems = [] if document is None else list(document.problems)
        evaluations = [_as_json(event, one, expression) for event, one in found]
        write_json("evaluation", {**content, "problems": problems, "evaluations": evaluations})
    else:
        _show(found, expression, document, vm)
    return int(any(one.error is not None for _event, one in found))


# Input


def _expression(args: argparse.Namespace) -> EventExpression:
    policy: Mapping[str, Any] | None = None
    given: Mapping[str, Any] = {}
    if args.policy is None and args.param:
        raise InputError("--param is for the parameters of a policy, and there is none.", "Name it: --policy FILE.")
    if args.policy is not None:
        artifact = load_policies([args.policy], args.api_version)
        policies = artifact.data["policies"]
        if len(policies) > 1:
            raise InputError(f"--policy {args.policy}: {plural(len(policies), 'policy')}.", "Name one of the files.")
        policy, given = policies[0], from_options(args.param, artifact.params)
        check_names(given, artifact.params)
    try:
        return EventExpression(args.expression, args.api_version, policy, given)
    except ExpressionError as error:
        lines = [line for finding in _placed(args.expression, error.findings) for line in render(finding)]
        raise InputError("\n".join(["the expression has mistakes:", *lines])) from error


def _events(args: argparse.Namespace, vm: Vm, now: datetime) -> tuple[Document | None, Sequence[Event | None]]:
    """Return the document and the events to evaluate for, None where the expression is to be evaluated without one."""
    if args.event is None and args.document is None:
        if args.event_id is not None:
            raise InputError("--event-id chooses an event of a document, and there is none.", "Add --document FILE.")
        return None, [None]
    if args.document is not None:
        document = read_document(args.document, args.api_version)
        return document, chosen_events(document, args.event_id, args.document)
    fields: dict[str, Any] = {
        "EventId": "00000000-0000-4000-8000-000000000001",
        "EventStatus": "Scheduled",
        "ResourceType": "VirtualMachine",
        "Resources": [vm.name or _DEFAULT_VM],
        "NotBefore": (now + _NOTICE).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        **_fields(args.event),
    }
    if fields["EventStatus"] == "Started" and not any("NotBefore=" in one for one in args.event):
        fields["NotBefore"] = ""
    event = {name: value for name, value in fields.items() if value is not None}
    document = document_of([event], "--event", args.api_version)
    doubts = [*document.problems, *(problem for one in document.events for problem in one.problems)]
    if doubts:
        raise InputError(f"--event: {'; '.join(doubts)}", "Give --document for an event that the runner cannot read.")
    return document, chosen_events(document, args.event_id, "--event")


def _fields(options: Sequence[str]) -> dict[str, Any]:
    """Return the fields of an event that ``--event`` gives. Raises InputError."""
    found: dict[str, Any] = {}
    for option in options:
        for part in _NEXT_FIELD.split(option):
            name, text = name_and_value("--event", part)
            if name not in FIELD_SINCE:
                meant = closest(name, list(FIELD_SINCE))
                hint = f"Did you mean {meant}?" if meant else f"The fields are {', '.join(FIELD_SINCE)}."
                raise InputError(f"--event {part}: an event has no field {name}.", hint)
            if name in found:
                raise InputError(f"--event {part}: {name} is given twice.", "Keep one of them.")
            found[name] = _value(name, text, part)
    return found


def _value(name: str, text: str, option: str) -> Any:
    if text == "null":
        return None
    if name == "Resources":
        return [one.strip() for one in text.split(",") if one.strip()]
    if name == "DurationInSeconds":
        try:
            return int(text)
        except ValueError as error:
            raise InputError(
                f"--event {option}: {name} is a whole number.", "-1 means that it is not known."
            ) from error
    return text


# Output


def _placed(source: str, findings: Sequence[ExpressionFinding]) -> list[Finding]:
    report = Report(SourceText(SOURCE, source))
    for one in findings:
        report.add(one.code, one.message, one.start, one.end, one.suggestion, one.severity)
    return report.findings


def _show(
    found: Sequence[tuple[Event | None, EvaluationResult]],
    expression: EventExpression,
    document: Document | None,
    vm: Vm,
) -> None:
    console, problems = Console(sys.stdout), Console(sys.stderr)
    for finding in _placed(expression.source, expression.warnings):
        for line in render(finding, problems):
            problems.line(line)
    for problem in () if document is None else document.problems:
        problems.warning(problem)
    for number, (event, evaluated) in enumerate(found):
        if len(found) > 1 and event is not None:
            if number:
                console.line()
            facts = " ".join(fact for fact in (event.event_type, event.event_status) if fact)
            console.line(console.style(f"event {event.event_id}", "bold") + console.style(f"  {facts}"))
        if evaluated.error is None:
            console.line(console.style(expression.to_text(evaluated.value), "bold"))
        else:
            _show_error(evaluated.error, _hint(evaluated.error, event, vm), console)
        for value in evaluated.values:
            console.line(console.style(f"  {value.expression} = {value.value}", "dim"))


def _show_error(error: EvaluationError, hint: str, console: Console) -> None:
    """Write why there is no value, and below it the part of the expression that has none."""
    console.line(console.style("no value:", "bold", "red") + " " + console.style(str(error)))
    if error.expression is not None:
        if "name" in error.expression:
            console.line(console.style(f"  in variables.{error.expression['name']}:"))
        report = Report(SourceText(SOURCE, error.expression["source"]))
        report.add("", "", error.start, error.end)
        for line in render(report.findings[0], console)[1:]:
            console.line(line)
    if hint:
        console.labelled("hint", hint)


def _hint(error: EvaluationError, event: Event | None, vm: Vm) -> str:
    """Return the option that would give the expression a value, if one is missing."""
    about = "" if error.expression is None else error.expression["source"][error.start : error.end]
    if event is None and _OF_EVENT.search(about):
        return "Give an event: --event EventType=Freeze, or --document FILE."
    if vm.name is None and _OF_VM.search(about):
        return "Say which VM this is: --vm-name NAME."
    return ""


def _as_json(event: Event | None, evaluated: EvaluationResult, expression: EventExpression) -> dict[str, Any]:
    error = evaluated.error
    content: dict[str, Any] = {"event": None if event is None else event.as_dict(), "value": None, "error": None}
    if error is None:
        content["value"] = expression.to_json(evaluated.value)
    else:
        place = error.expression or {}
        content["error"] = {
            "message": str(error),
            "expression": place.get("source"),
            "variable": place.get("name"),
            "start": error.start,
            "end": error.end,
        }
    return {**content, "values": [value._asdict() for value in evaluated.values]}
