# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The control node's part of the task: decides on what a VM has read, and describes the decisions."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any

from ..errors import InputError
from ..events import Document, Event, Vm, parse_document, parse_time
from ..policy.approval import PAUSED, SEND, Eligibility, eligibility
from ..policy.decision import Decision, Facts
from ..policy.engine import PolicySet
from .task import EVENT_FIELDS, SHOWN_EVENTS, ahead, nothing_text, unread_text

# A document rarely changes, but when one VM approves, others that decide at the same moment see it change.
ATTEMPTS = 3
_VERDICT_FIELDS = ("policy", "output", "rule", "reason", "where", "error")  # in the result
NEEDS_RUNNER = "needs-runner"  # a code of eligibility, besides those of policy.approval


@dataclass(frozen=True)
class VmReading:
    """What the VM read, as the values that policies decide on."""

    document: Document
    facts: Facts


def decide_and_approve(
    policy_set: PolicySet, ask: Callable[[Mapping[str, Any]], dict[str, Any]], apply: bool, check_mode: bool
) -> dict[str, Any]:
    """Return the result of a task with policies; ``apply`` also sends the approvals.

    ``ask`` runs the task on the VM with more options, and returns its result. If the document changes before the
    approval arrives, it is decided on again.
    """
    for _attempt in range(ATTEMPTS):
        result = ask({})
        if result.get("failed"):
            return result
        reading = read(json.loads(json.dumps(result)))  # without Ansible's own subclasses of str and dict
        decisions = policy_set.decide(reading.document, reading.facts)
        eligibilities = [assess(decision, reading.facts, result.get("pause")) for decision in decisions]
        wanted = [decision.event.event_id for decision, its in zip(decisions, eligibilities, strict=True) if its.send]
        if apply and wanted:
            # The incarnation should change with the document, but some services send none.
            basis = {"events_digest": str(result["events_digest"])}
            if reading.document.incarnation is not None:
                basis["document_incarnation"] = str(reading.document.incarnation)
            result = ask({"approve": wanted, **basis})
            if result.get("superseded"):
                continue
        result["decisions"] = [describe(decision, its) for decision, its in zip(decisions, eligibilities, strict=True)]
        if not result.get("failed"):
            done = (decisions, eligibilities, result["approved"], check_mode)
            result["msg"] = summary(*done, problems=reading.document.problems)
            result["ahead"] = ahead(result["events"], outcomes(*done), reading.document.problems)
        return result
    result["msg"] = (
        f"The document changed {ATTEMPTS} times between deciding and approving. Nothing was approved. Run it again."
    )
    return result


def read(data: Mapping[str, Any]) -> VmReading:
    """Return the reading in a result of the module, given in plain values. The VM's clock counts, not ours."""
    document = Document(
        incarnation=data["document_incarnation"],
        events=tuple(_event(item) for item in data["events"]),
        problems=tuple(data["problems"]),
        api_version=data["api_version"],
    )
    return VmReading(document, Facts(now=parse_time(data["read_at"]), vm=Vm(**data["vm"])))


def reading_of(document: Any, api_version: str, vm: Any = None, now: str | None = None) -> VmReading:
    """Return the reading in a document of the service (text or parsed) or in a result of the module (plain values).

    ``vm`` (a name or a mapping) and ``now`` (ISO 8601) replace those of the result. Raises InputError, DocumentError.
    """
    if isinstance(document, dict) and "events" in document:
        missing = sorted({"api_version", "document_incarnation", "problems", "read_at", "vm"} - document.keys())
        if missing:
            raise InputError(
                f"this has events, but no {missing[0]}.",
                "Give a document of the service, or the whole result of forewarn.azure.scheduled_events.",
            )
        reading = read(document)
    else:
        text = document if isinstance(document, str) else json.dumps(document)
        facts = Facts(now=datetime.now(timezone.utc))
        reading = VmReading(parse_document(text, api_version), facts)
    if now is not None:
        reading = replace(reading, facts=reading.facts._replace(now=_time(str(now))))
    return reading if vm is None else replace(reading, facts=reading.facts._replace(vm=_vm(vm)))


def _vm(vm: Any) -> Vm:
    fields = {"name": vm} if isinstance(vm, str) else vm
    if not isinstance(fields, dict) or not fields.keys() <= set(Vm._fields):
        raise InputError(f"vm is neither a name nor a mapping of {', '.join(sorted(Vm._fields))}.")
    for name, value in fields.items():
        if name == "tags" and value is not None:
            if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
                raise InputError("vm: tags is not a mapping of texts to texts.")
        elif value is not None and not isinstance(value, str):
            raise InputError(f"vm: {name} is not text.")
    return Vm(**fields)


def _time(text: str) -> datetime:
    try:
        return parse_time(text)
    except ValueError as error:
        raise InputError(f"now: {text!r} is not a time.", "Write it like 2026-01-31T15:04:05Z.") from error


def _event(item: Mapping[str, Any]) -> Event:
    not_before: datetime | None = None if item["not_before"] is None else parse_time(item["not_before"])
    return Event(
        **{name: item[name] for name in EVENT_FIELDS},
        resources=tuple(item["resources"]),
        not_before=not_before,
        problems=tuple(item["problems"]),
    )


def assess(decision: Decision, facts: Facts, pause: str | None = None) -> Eligibility:
    """Return whether the VM sends an approval. Unlike the runner, an ad-hoc task runs no hooks and does not wait.

    ``pause`` is why an operator lets the VM approve nothing now.
    """
    its = eligibility(decision, facts.vm.name, facts.now)
    if its.send and decision.prepare:
        return Eligibility(
            NEEDS_RUNNER,
            f"rule {decision.rule} has hooks to run before the approval, which only the runner on the VM does",
        )
    return its if pause is None or not its.send else Eligibility(PAUSED, pause)


def describe(decision: Decision, its: Eligibility) -> dict[str, Any]:
    """Return a decision in the form of the task's result."""
    return {
        "event_id": decision.event.event_id,
        "event_type": decision.event.event_type,
        "output": decision.output,
        "policy": decision.policy,
        "rule": decision.rule,
        "reason": decision.reason,
        "evaluated": {value.expression: value.value for value in decision.values},
        "approver": decision.approver,
        "eligibility": {"code": its.code, "reason": its.reason},
        "verdicts": [{name: getattr(verdict, name) for name in _VERDICT_FIELDS} for verdict in decision.verdicts],
    }


def summary(
    decisions: Sequence[Decision],
    eligibilities: Sequence[Eligibility],
    approved: Sequence[str],
    check_mode: bool,
    problems: Sequence[str] = (),
) -> str:
    """Summarize in one line what was decided and done. ``problems`` are those of the document."""
    if not decisions:
        return nothing_text(problems)
    texts = []
    for decision, its in list(zip(decisions, eligibilities, strict=True))[:SHOWN_EVENTS]:
        event = decision.event
        output = decision.output
        if event.event_id in approved:
            output = "would be approved" if check_mode else "approved"
        by = f" by {decision.policy}" if decision.policy else ""
        if by and not decision.reason.startswith(f"rule {decision.rule} "):
            by += f", rule {decision.rule}"
        text = f"{event.event_type} {event.event_id}: {output}{by} ({decision.reason})"
        if decision.output == "approve" and not its.send:
            text += f", not sent ({its.reason})"
        texts.append(text)
    if len(decisions) > SHOWN_EVENTS:
        texts.append(f"and {len(decisions) - SHOWN_EVENTS} more")
    if problems:
        texts.append(unread_text(problems))
    return "; ".join(texts)


def outcomes(
    decisions: Sequence[Decision], eligibilities: Sequence[Eligibility], approved: Sequence[str], check_mode: bool
) -> list[str]:
    """Return for each event, in a word or two, what was decided and done, without the reason."""
    texts = []
    for decision, its in zip(decisions, eligibilities, strict=True):
        if decision.event.event_id in approved:
            texts.append("would be approved" if check_mode else "approved")
        elif decision.output == "approve" and its.code != SEND:
            texts.append(f"approve, {its.code}")
        else:
            texts.append(decision.output)
    return texts
