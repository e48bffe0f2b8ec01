# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An event source for ansible-rulebook: Azure Scheduled Events of one VM and, with policies, the decisions on them."""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import sys
import time
from collections.abc import Mapping
from datetime import datetime, timezone
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from pathlib import Path
from typing import Any

DOCUMENTATION = r"""
short_description: Azure Scheduled Events of one VM, as they appear, change and end
description:
  - Polls the Scheduled Events service of the VM that ansible-rulebook runs on, or an emulator.
  - Puts an event into the rulebook's queue when a scheduled event is new, changed or gone, when a policy changes its
    decision on it, and when the service stops or starts answering. It never approves anything.
  - Runs on Linux with Python 3.11 or newer, and needs libraries only for YAML policies.
options:
  endpoint:
    description: Address of the service, without C(/metadata), or V(auto) to read the DHCP leases of the VM.
    type: str
    default: the environment variable E(FOREWARN_ENDPOINT), or else http://169.254.169.254
  api_version:
    description: Version of the service to request.
    type: str
    default: that of the artifact in O(policies), or else 2020-07-01
  vm_name:
    description: Resource name of this VM, if the instance metadata does not have it.
    type: str
  interval:
    description: Seconds from one poll to the next, at least 1.
    type: float
    default: 1
  timeout:
    description: Seconds to wait for the first answer, which enables the service.
    type: int
    default: 120
  policies:
    description:
      - Policy files or directories of them, or one artifact made by C(forewarn policy compile).
      - YAML files need the Python packages cel-python and jsonschema beside ansible-rulebook. They are read once, at
        the start.
    type: list
    elements: path
    default: []
  params:
    description: Values for the parameters that the policies declare.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Azure Scheduled Events
  hosts: localhost
  sources:
    - forewarn.azure.scheduled_events:
        policies: [/etc/forewarn/policy.json]
  rules:
    - name: Report what policies hold
      condition: event.change == "new" and event.decision.output == "hold"
      action:
        debug:
          msg: "{{ event.scheduled_event.event_type }}: {{ event.decision.reason }}"
"""


def _load(name: str) -> Any:
    """Import a module of this collection. ansible-rulebook does not know collections; a separate package name avoids
    conflicts with anything else that is installed.
    """
    root = "forewarn_azure_plugins"
    if root not in sys.modules:
        spec = ModuleSpec(root, None, is_package=True)
        spec.submodule_search_locations = [str(Path(__file__).resolve().parents[4] / "plugins")]
        sys.modules[root] = module_from_spec(spec)
    return importlib.import_module(f"{root}.{name}")


class Source:
    """The state between two polls. Not thread-safe."""

    def __init__(self, args: Mapping[str, Any]) -> None:
        known = {"endpoint", "api_version", "vm_name", "interval", "timeout", "policies", "params"}
        unknown = sorted(args.keys() - known)
        if unknown:
            refuse = _load("module_utils.forewarn.errors").InputError
            raise refuse(f"there is no option {unknown[0]}.", f"There are {', '.join(sorted(known))}.")
        self._vm = _load("module_utils.forewarn.adhoc.task")
        self._decisions = _load("module_utils.forewarn.adhoc.decisions")
        self._make_facts = _load("module_utils.forewarn.policy.decision").Facts
        self._faults = _load("module_utils.forewarn.imds.errors")
        self.interval = max(1.0, float(args.get("interval") or 1))
        policies = [] if args.get("policies") is None else args["policies"]
        texts = [policies] if isinstance(policies, str) else policies
        paths = [path.expanduser() for path in _load("module_utils.forewarn.compiler.paths").paths_of(texts)]
        self._policy_set = self._compile(paths, args.get("api_version"), args.get("params") or {}) if paths else None
        client = _load("module_utils.forewarn.imds.client")
        endpoint = _load("module_utils.forewarn.imds.endpoint")
        azure = _load("module_utils.forewarn.imds.azure")
        url = endpoint.resolve_endpoint(args.get("endpoint"), os.environ)
        doubt = azure.platform_problem(args.get("endpoint"), url, os.environ)
        if doubt is not None:
            logging.getLogger(__name__).warning("%s. %s is asked anyway. %s", doubt, url, azure.HINT)
        self._client = client.Client(
            url,
            (self._policy_set and self._policy_set.api_version) or args.get("api_version") or client.LATEST_API_VERSION,
            first_read_timeout=float(args.get("timeout") or client.FIRST_READ_TIMEOUT_SECONDS),
        )
        self._retry = _load("module_utils.forewarn.imds.retry").RetryPolicy()
        self._vm_name = args.get("vm_name")
        self._identity: Any = None
        self._first_seen: dict[str, datetime] = {}
        self._shown: dict[str, dict[str, Any]] = {}  # by event key, the last item put into the queue
        self._fault: tuple[str, int | None] | None = None

    def _compile(self, paths: list[Path], api_version: str | None, params: Mapping[str, Any]) -> Any:
        if [path.suffix for path in paths] == [".json"]:
            artifact = _load("module_utils.forewarn.policy.artifact").load_file(paths[0])
        else:
            latest = _load("module_utils.forewarn.events").LATEST_API_VERSION
            artifact = _load("module_utils.forewarn.compiler.policies").load_policies(paths, api_version or latest)
        return _load("module_utils.forewarn.policy.engine").PolicySet(artifact, params)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def poll(self) -> tuple[list[dict[str, Any]], float]:
        """Poll once; return the news, and the seconds until the next poll."""
        try:
            document = self._client.read_once()
        except self._faults.Fault as fault:
            delay = self._retry.record_failure(fault) - time.monotonic()
            news = self._failed(fault)
            return news, max(self.interval, delay)
        self._retry.record_success()
        news = [{"change": "recovered"}] if self._fault else []
        self._fault = None
        return news + self._compare(document), self.interval

    def _failed(self, fault: Any) -> list[dict[str, Any]]:
        kind = (fault.kind, fault.status)
        if kind == self._fault:
            return []
        self._fault = kind
        passing = isinstance(fault, self._faults.PassingFault)
        return [
            {
                "change": "fault",
                "fault": {"kind": fault.kind, "status": fault.status, "passing": passing, "message": str(fault)},
            }
        ]

    def _compare(self, document: Any) -> list[dict[str, Any]]:
        now = datetime.now(timezone.utc)
        if self._identity is None or self._identity.name is None:  # asked again until there is a name
            self._identity = self._vm.identify(self._client, self._vm_name, 0.0)[0]
        self._first_seen = {event.key: self._first_seen.get(event.key, now) for event in document.events}
        facts = self._make_facts(now=now, vm=self._identity, first_seen=self._first_seen)
        decisions = self._policy_set.decide(document, facts) if self._policy_set else [None] * len(document.events)
        read_at = _load("module_utils.forewarn.events").format_time(now)
        news = []
        shown = {}
        for event, decision in zip(document.events, decisions, strict=True):
            item: dict[str, Any] = {"scheduled_event": self._vm.describe_event(event, self._identity.name, now)}
            if decision is not None:
                item["decision"] = self._decisions.describe(decision, self._decisions.assess(decision, facts))
            former = self._shown.get(event.key)
            shown[event.key] = item
            if former is None or _lasting(former) != _lasting(item):
                change = "new" if former is None else "changed"
                news.append({"change": change, **item, "vm_name": self._identity.name, "read_at": read_at})
        for key, item in self._shown.items():
            if key not in shown:
                news.append({"change": "gone", **item, "vm_name": self._identity.name, "read_at": read_at})
        self._shown = shown
        return news


def _lasting(item: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the part of an item whose change is news: neither the time left, nor a reason that contains it."""
    event = {name: value for name, value in item["scheduled_event"].items() if name != "notice_seconds"}
    decision = item.get("decision")
    if decision is None:
        return (event,)
    return (event, decision["output"], decision["policy"], decision["rule"], decision["eligibility"]["code"])


async def main(queue: asyncio.Queue[Any], args: dict[str, Any]) -> None:
    """Feed the rulebook's queue until it is cancelled. The client waits in a thread, not in the rulebook's loop."""
    source = await asyncio.to_thread(Source, args)
    try:
        while True:
            news, delay = await asyncio.to_thread(source.poll)
            for item in news:
                await queue.put(item)
            await asyncio.sleep(delay)  # until the next poll
    finally:
        source.close()
