# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn policy explain``: every rule tried on one event, with the values it read and its result."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Dict, Tuple

from ...analysis.event_space.domains import duration_text
from ...analysis.hook_wording import retry_text
from ...compiler.policies import load_policies
from ...events import Document
from ...policy.approval import Eligibility, eligibility
from ...policy.artifact import Artifact
from ...policy.decision import ABSTAIN, Decision, Facts, Value, Verdict
from ...policy.engine import PolicySet, PolicyTrace, RuleTrace
from ...policy.forms import every_variable
from ...policy.functions.timevalues import SECOND
from ...policy.params import from_options
from ...runner.hooks.commands import describe
from ..output.console import Console, attributes, write_result
from .common import add_api_version, add_facts, given_vm
from .event import add_times, chosen_events, given_facts, given_now, read_document

_Places = Dict[Tuple[str, str], str]

_STYLES = {"true": "green", "false": "dim", "error": "red", "not reached": "dim", "approve": "green", "hold": "yellow"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--policy", nargs="+", required=True, type=Path, metavar="PATH", help="policy files, or directories of them"
    )
    parser.add_argument(
        "--event",
        required=True,
        metavar="FILE",
        help="an event or a document, as the service writes it or 'forewarn events --json'; '-': stdin",
    )
    parser.add_argument("--event-id", metavar="ID", help="explain only this event of the document")
    add_facts(parser)
    add_times(parser)
    add_api_version(parser)
    parser.add_argument("--json", action="store_true", help="write one JSON object")


def run(args: argparse.Namespace) -> int:
    """Explain the decisions."""
    artifact = load_policies(args.policy, args.api_version)
    policies = PolicySet(artifact, from_options(args.param, artifact.params))
    document = read_document(args.event, args.api_version)
    vm = given_vm(args.vm, args.vm_name)
    now = given_now(args)
    facts = given_facts(args, vm, document, now)
    wanted = {event.key for event in chosen_events(document, args.event_id, args.event)}
    chosen = [
        (decision, policies.explain(decision.event, document, facts))
        for decision in policies.decide(document, facts)
        if decision.event.key in wanted
    ]
    imported = _imported(artifact)
    console = write_result(args.json, "explanation", _as_json(chosen, document, facts, imported))
    for problem in document.problems:
        console.warning(problem)
    for number, (decision, traces) in enumerate(chosen):
        if number:
            console.line()
        _show(console, decision, traces, eligibility(decision, vm.name, now), imported)
    return 0


def _imported(artifact: Artifact) -> _Places:
    """Return where imported variables and parameters are declared, by their policy and by how expressions name them."""
    found: dict[tuple[str, str], str] = {}
    for data in artifact.data["policies"]:
        for variable in every_variable(data["rule"]):
            expression = variable["expr"]
            if "file" in expression:
                found[data["name"], f"variables.{variable['name']}"] = f"{expression['file']}:{expression['line']}"
        for param in data["params"]:
            if "file" in param:
                found[data["name"], f"params.{param['name']}"] = param["file"]
    return found


# Output


def _show(
    console: Console, decision: Decision, traces: tuple[PolicyTrace, ...], answer: Eligibility, imported: _Places
) -> None:
    event = decision.event
    facts = (event.event_type, event.event_status, f"for {', '.join(event.resources)}" if event.resources else None)
    described = " ".join(fact for fact in facts if fact)
    console.line(console.style(f"event {event.event_id}", "bold") + console.style(f"  {described}"))
    for trace in traces:
        console.line()
        console.line(console.style(f"policy {trace.policy}", "bold"))
        width = max((len(rule.rule) for rule in trace.rules), default=0)
        for rule in trace.rules:
            _show_rule(console, rule, width, trace.policy, imported)
        verdict = trace.verdict
        said = console.style(verdict.output, "bold", *([_STYLES[verdict.output]] if verdict.output in _STYLES else []))
        console.line(f"  → {said}" + console.style(f"  {verdict.reason}"))
    console.line()
    output = console.style(decision.output, "bold", _STYLES[decision.output])
    by = f" by {decision.policy}/{decision.rule}" if decision.rule else ""
    console.line(f"{console.style('decision', 'bold')}  {output}{console.style(by)}")
    console.line(console.style(f"reason    {decision.reason}"))
    for verdict in decision.verdicts:
        if verdict.output != ABSTAIN:
            _show_hooks(console, verdict)
    for limit in decision.limits:
        whose = "its configured group" if limit.group is None else f"group {limit.group}"
        most = f"{limit.percent}%" if limit.percent is not None else f"{limit.at_most} VM{'s' * (limit.at_most != 1)}"
        console.line(console.style(f"limit     at most {most} of {whose} at once"))
    sends = f"not this VM now ({answer.code}): {answer.reason}"
    if answer.send:
        sends = "this VM, once it is prepared" if decision.prepare else "this VM, now"
    console.line(console.style(f"approval  {sends}"))


def _show_hooks(console: Console, verdict: Verdict) -> None:
    within = verdict.prepare_within_seconds
    begins = "" if within is None else f", from {duration_text(round(within * SECOND))} before NotBefore"
    started = ", also where it started without preparation" if verdict.recover_when == "started" else ""
    for name, hooks, when in (
        ("prepare", verdict.prepare, begins),
        ("recover", verdict.recover, started),
        ("notify", verdict.notify, ""),
    ):
        for hook in hooks:
            retry = retry_text(hook)
            console.line(console.style(f"{name:<10}{describe(hook)}{f', {retry}' if retry else ''}{when}"))
            for line in _body_lines(hook):
                console.line(console.style(f"{'':<12}{line}"))


def _body_lines(hook: Mapping[str, Any]) -> list[str]:
    """Return what a hook with a body sends, a line for each occasion on which that differs."""
    if "content" not in hook:
        return [hook["problem"]] if "problem" in hook else []
    found = hook["content"].get("occasions", {"body": hook["content"]})
    return [
        f"{name}: {json.dumps(one['json'], ensure_ascii=False) if 'json' in one else one['problem']}"
        for name, one in found.items()
    ]


def _show_rule(console: Console, rule: RuleTrace, width: int, policy: str, imported: _Places) -> None:
    result = console.style(f"{rule.result:<11}", _STYLES[rule.result])
    name = console.style(f"{rule.rule:<{width}}")
    console.line(f"  {result} {name}  " + console.style(rule.source or "always", "dim"))
    indent = " " * (width + 16)
    for value in rule.values:
        place = imported.get((policy, value.expression))
        origin = "" if place is None else console.style(f"  (from {place})", "dim")
        console.line(console.style(f"{indent}{value.expression} = {value.value}") + origin)
    if rule.error is not None:
        console.line(indent + console.style(f"error: {rule.error} ({rule.failed_in or rule.where})", "red"))


def _as_json(
    chosen: list[tuple[Decision, tuple[PolicyTrace, ...]]], document: Document, facts: Facts, imported: _Places
) -> dict[str, Any]:
    return {
        "now": facts.now.isoformat(),
        "problems": list(document.problems),
        "explanations": [
            {
                "event": decision.event.as_dict(),
                "policies": [_trace_json(trace, imported) for trace in traces],
                "decision": {
                    **attributes(decision, "output policy rule reason approver group"),
                    "limits": [limit._asdict() for limit in decision.limits],
                    **attributes(decision, "prepare recover notify"),
                },
                "approval": eligibility(decision, facts.vm.name, facts.now)._asdict(),
            }
            for decision, traces in chosen
        ],
    }


def _trace_json(trace: PolicyTrace, imported: _Places) -> dict[str, Any]:
    def valued(value: Value) -> dict[str, Any]:
        place = imported.get((trace.policy, value.expression))
        return {**value._asdict(), **({} if place is None else {"from": place})}

    return {
        "policy": trace.policy,
        **attributes(trace.verdict, "output rule reason prepare_within_seconds recover_when"),
        "limit": None if trace.verdict.limit is None else trace.verdict.limit._asdict(),
        "rules": [
            {
                "rule": rule.rule,
                "where": rule.where,
                "condition": rule.source,
                "result": rule.result,
                "values": [valued(value) for value in rule.values],
                "error": rule.error,
                **({} if rule.failed_in is None else {"failed_in": rule.failed_in}),
            }
            for rule in trace.rules
        ],
    }
