# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The control node's part of ``scheduled_events``: the VM reads and approves, policies are decided here.

Options and results are documented in the module of the same name.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from ansible import constants as C  # noqa: N812 - its usual name
from ansible.errors import AnsibleActionFail
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.plugins.action import ActionBase
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.compiler.paths import find_policies
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.errors import ForewarnError, InputError
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.events import (
    LATEST_API_VERSION,
    Document,
    Event,
    Vm,
    parse_time,
)
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.policy.approval import Standing, standing
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.policy.artifact import Artifact, load
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.policy.decision import Decision, Facts
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.policy.engine import PolicySet

MODULE = "forewarn.azure.scheduled_events"
NEEDS_RUNNER = "needs-runner"  # a standing's code, beside those of policy.approval
# A document changes rarely, but when one VM approves, those that decide at the same moment see it change.
ATTEMPTS = 3
SHOWN_EVENTS = 3  # in msg

_OPTIONS = {
    "policies": {"type": "list", "elements": "path", "default": []},
    "params": {"type": "dict", "default": {}},
    "apply": {"type": "bool", "default": False},
}


@dataclass(frozen=True)
class Reading:
    """What the VM read, as the values that a policy is decided on."""

    document: Document
    facts: Facts


class ActionModule(ActionBase):
    """Passes on to the module what is not about policies."""

    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Run the task."""
        super().run(tmp, task_vars)
        args = dict(self._task.args)
        options = _options({name: args.pop(name) for name in _OPTIONS if name in args})
        if not options["policies"]:
            for name in ("apply", "params"):
                if options[name]:
                    raise AnsibleActionFail(f"{name} is of use only with policies: name the policy files too.")
            return self._on_vm(args, task_vars)
        for name in ("approve", "document_incarnation"):
            if args.get(name):
                raise AnsibleActionFail(
                    f"{name} and policies exclude each other: either you decide, or the policies do (with apply: true)."
                )
        paths = [Path(self._find_needle("policies", path)).resolve() for path in options["policies"]]
        try:
            artifact = find_artifact(paths, args.get("api_version"))
            policy_set = PolicySet(artifact, _plain(options["params"], "params"))
        except ForewarnError as error:
            findings = [finding.as_dict() for finding in getattr(error, "findings", ())]
            return {"failed": True, "msg": str(error), **({"findings": findings} if findings else {})}
        args["api_version"] = artifact.api_version
        result = self._decide(policy_set, options["apply"], args, task_vars)
        return {**result, "policy_paths": [str(path) for path in paths]}

    def _decide(
        self, policy_set: PolicySet, apply: bool, args: dict[str, Any], task_vars: dict[str, Any] | None
    ) -> dict[str, Any]:
        for _attempt in range(ATTEMPTS):
            result = self._on_vm(args, task_vars)
            if result.get("failed"):
                return result
            reading = read(result)
            decisions = policy_set.decide(reading.document, reading.facts)
            standings = [stand(decision, reading.facts) for decision in decisions]
            wanted = [decision.event.event_id for decision, its in zip(decisions, standings, strict=True) if its.send]
            if apply and wanted:
                result = self._on_vm(
                    {**args, "approve": wanted, "document_incarnation": str(reading.document.incarnation)}, task_vars
                )
                if result.get("superseded"):
                    continue
            result["decisions"] = [describe(decision, its) for decision, its in zip(decisions, standings, strict=True)]
            if not result.get("failed"):
                result["msg"] = summary(decisions, standings, result["approved"], self._task.check_mode)
            return result
        result["msg"] = (
            f"The document changed {ATTEMPTS} times between deciding and approving. Nothing was approved. Run it again."
        )
        return result

    def _on_vm(self, args: Mapping[str, Any], task_vars: dict[str, Any] | None) -> dict[str, Any]:
        result: dict[str, Any] = self._execute_module(module_name=MODULE, module_args=dict(args), task_vars=task_vars)
        return result


def find_artifact(paths: Sequence[Path], api_version: str | None) -> Artifact:
    """Return what an artifact holds, or policy files compile to. Raises InputError."""
    artifacts = [path for path in paths if path.suffix == ".json"]
    if not artifacts:
        return compile_policies(paths, api_version or LATEST_API_VERSION)
    if len(paths) > 1:
        raise InputError(
            f"{artifacts[0]} is an artifact, which has all its policies in it.",
            "Give one artifact, or YAML files and directories.",
        )
    try:
        artifact = load(artifacts[0].read_bytes())
    except InputError as error:
        raise InputError(f"{artifacts[0]}: {error.message}", error.hint) from error
    if api_version not in (None, artifact.api_version):
        raise InputError(
            f"{artifacts[0]} was compiled for api-version {artifact.api_version}, api_version is {api_version}.",
            "Leave api_version out, or compile the policies again for it.",
        )
    return artifact


def compile_policies(paths: Sequence[Path], api_version: str) -> Artifact:
    """Compile policy files on this machine. Raises InputError, also where a library is missing.

    Each host of a run has a process of its own, so what one has compiled is kept for the others, in the run's private
    directory: compiling takes a quarter of a second.
    """
    kept = Path(C.DEFAULT_LOCAL_TMP) / f"forewarn-{_fingerprint(paths, api_version)}.json"
    with contextlib.suppress(FileNotFoundError):
        return load(kept.read_bytes())
    # Not at the top: an artifact needs none of the compiler.
    from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.compiler.policyfile import load_policies

    artifact = load_policies(paths, api_version)
    part = kept.with_suffix(f".{os.getpid()}")
    part.write_text(json.dumps(artifact.data), encoding="utf-8")
    part.replace(kept)
    return artifact


def _fingerprint(paths: Sequence[Path], api_version: str) -> str:
    """Return a text that changes when the policy files do, or how the artifact would call them."""
    states = [(str(file.path), file.name, file.path.stat()) for file in find_policies(paths)]
    key = [api_version, [(path, name, state.st_mtime_ns, state.st_size) for path, name, state in states]]
    return hashlib.sha256(json.dumps(key).encode()).hexdigest()


def read(result: Mapping[str, Any]) -> Reading:
    """Make of a result of the module what a policy is decided on. The VM's clock counts, not ours."""
    data = _plain(result, "the module's result")
    document = Document(
        incarnation=data["document_incarnation"],
        events=tuple(_event(item) for item in data["events"]),
        problems=tuple(data["problems"]),
        api_version=data["api_version"],
    )
    return Reading(document, Facts(now=parse_time(data["read_at"]), vm=Vm(**data["vm"])))


def _event(item: Mapping[str, Any]) -> Event:
    not_before: datetime | None = None if item["not_before"] is None else parse_time(item["not_before"])
    return Event(
        event_id=item["event_id"],
        event_type=item["event_type"],
        resource_type=item["resource_type"],
        resources=tuple(item["resources"]),
        event_status=item["event_status"],
        not_before=not_before,
        description=item["description"],
        event_source=item["event_source"],
        duration_in_seconds=item["duration_in_seconds"],
        problems=tuple(item["problems"]),
    )


def stand(decision: Decision, facts: Facts) -> Standing:
    """Tell whether the VM sends an approval. Unlike the runner, an ad-hoc task runs no hooks and waits for nobody."""
    its = standing(decision, facts.vm.name, facts.now)
    if its.send and decision.prepare:
        return Standing(
            NEEDS_RUNNER,
            f"rule {decision.rule} has hooks to run before the approval, which only the runner on the VM does",
        )
    return its


def describe(decision: Decision, its: Standing) -> dict[str, Any]:
    """Return a decision as the task's result has it."""
    return {
        "event_id": decision.event.event_id,
        "event_type": decision.event.event_type,
        "output": decision.output,
        "policy": decision.policy,
        "rule": decision.rule,
        "reason": decision.reason,
        "values": {value.expression: value.value for value in decision.values},
        "approver": decision.approver,
        "standing": {"code": its.code, "reason": its.reason},
        "verdicts": [
            {
                "policy": verdict.policy,
                "output": verdict.output,
                "rule": verdict.rule,
                "reason": verdict.reason,
                "where": verdict.where,
                "error": verdict.error,
            }
            for verdict in decision.verdicts
        ],
    }


def summary(
    decisions: Sequence[Decision], standings: Sequence[Standing], approved: Sequence[str], check_mode: bool
) -> str:
    """Say in one line what was decided and done."""
    if not decisions:
        return "nothing is scheduled"
    texts = []
    for decision, its in list(zip(decisions, standings, strict=True))[:SHOWN_EVENTS]:
        event = decision.event
        output = decision.output
        if event.event_id in approved:
            output = "would be approved" if check_mode else "approved"
        by = f" by {decision.policy}, rule {decision.rule}" if decision.policy else ""
        text = f"{event.event_type} {event.event_id}: {output}{by} ({decision.reason})"
        if decision.output == "approve" and not its.send:
            text += f", not sent ({its.reason})"
        texts.append(text)
    if len(decisions) > SHOWN_EVENTS:
        texts.append(f"and {len(decisions) - SHOWN_EVENTS} more")
    return "; ".join(texts)


def _options(given: dict[str, Any]) -> dict[str, Any]:
    validation = ArgumentSpecValidator(_OPTIONS).validate(given)
    if validation.error_messages:
        raise AnsibleActionFail("; ".join(validation.error_messages))
    options: dict[str, Any] = validation.validated_parameters
    return options


def _plain(value: Any, what: str) -> Any:
    """Return JSON values without Ansible's own subclasses of str and dict: the evaluator is strict about types."""
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError) as error:
        raise InputError(f"{what}: {error}.", "Write dates, times and durations as quoted texts.") from error
