# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an operator has on the control node of a lab: a policy, a play with the role, and a look at a host."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..hosts import Host
from ..lab import Lab
from .playbooks import PlaybookRun, Playbooks

ROLLOUT, SITE = "forewarn.azure.rollout", "site.yml"
ROLE_PLAY = "- {hosts: all, gather_facts: false, roles: [forewarn.azure.forewarn]}\n"
# A policy up to the actions of its last match.
POLICY_HEAD = """\
name: drains
description: Drains before anything but a brief freeze.
params:
  - {name: tolerable_freeze, type: int, default: 9}
rule:
  match:
    - id: brief
      condition: event.EventType == "Freeze" && event.DurationInSeconds in [5] && params.tolerable_freeze > 5
      output: approve
    - id: drain
      condition: event.EventType == "Reboot" && affects_me
"""
POLICY = (
    POLICY_HEAD
    + """\
      prepare: [{run: [/opt/forewarn/hooks/drain]}]
      recover: [{run: [/opt/forewarn/hooks/drain]}]
      output: approve
"""
)
HOOK = '#!/bin/sh\necho "$FOREWARN_PHASE $FOREWARN_EVENT_TYPE" >> /var/log/hooks/calls\n'


def control_node(lab: Lab, directory: Path, collections_path: Path) -> Playbooks:
    """Write a policy with its hook, and a play; return the playbooks."""
    for name, content in {
        "policies/drains.yml": POLICY,
        "hooks/drain": HOOK,
        SITE: ROLE_PLAY,
    }.items():
        path = directory / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
    return Playbooks(lab, directory, collections_path)


VARIABLES: Mapping[str, Any] = {
    "forewarn_serial": "100%",
    "forewarn_policies": ["policies"],
    "forewarn_hooks": ["hooks/drain"],
    "forewarn_hooks_write": ["/var/log/hooks"],
    "forewarn_health_seconds": 60,
}


def status(host: Host) -> dict[str, Any]:
    """Return what ``forewarn status --json`` says on a host."""
    found: dict[str, Any] = json.loads(host.ssh("forewarn status --json", check=False).stdout)
    return found


def is_well(host: Host) -> bool:
    """Return whether the runner works and has nothing to complain about, also after a restart."""
    host.ssh("systemctl restart forewarn")
    host.wait_for(lambda: status(host)["service"]["state"] == "ok")
    return not status(host)["problems"]


def refusal(played: PlaybookRun, host: str) -> str:
    """Return the last failure that a playbook has shown of a host. AssertionError if it is not plain text."""
    assert played.code != 0, played.text[-3000:]
    assert "\x1b" not in played.text
    messages = [line for line in played.text.splitlines() if line.startswith(f"fatal: [{host}]")]
    assert messages, played.text[-3000:]
    answer = json.loads(messages[-1].partition(" => ")[2])
    text = str(answer["msg"])
    assert not any(mark in text for mark in ("\x1b", "\r", "[0m")), text
    return text
