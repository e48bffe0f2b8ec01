# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stand-ins for programs that recipes of hooks call: ``recipe_programs.py STATE PROGRAM ARGUMENT…``.

STATE is a JSON file: what the program changes, how it is to answer, and in ``calls`` what it was called with.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

State = dict[str, Any]


def kubectl(state: State, words: list[str]) -> None:
    """Know one node: whether it is cordoned, its annotation, its pods."""
    words = [word for word in words if not word.startswith("--request-timeout")]
    if words[0] == "get":
        if "conditions" in words[-1]:
            sys.stdout.write(state["ready"].pop(0) if len(state["ready"]) > 1 else state["ready"][0])
        else:
            sys.stdout.write(f"{'true' if state['cordoned'] else ''}/{state['annotation']}")
    elif words[0] == "annotate":
        state["annotation"] = words[-1].partition("=")[2]
    elif words[0] == "uncordon":
        state["cordoned"] = False
    elif words[0] == "drain":
        state["cordoned"] = True
        if state["stuck"]:
            _fail(state, "error: Cannot evict pod as it would violate the pod's disruption budget.")
        state["pods"] = 0


def nomad(state: State, words: list[str]) -> None:
    """Know this client. A drain is over when its state has been asked for once."""
    node, command = state["node"], words[1]
    if command == "status":
        sys.stdout.write(json.dumps(node))
        if node["Drain"] and state["drains"]:
            node["Drain"], node["LastDrain"]["Status"] = False, state["ends"]
    elif command == "drain" and "-enable" in words:
        meta = dict(words[at + 1].split("=", 1) for at, word in enumerate(words) if word == "-meta")
        node.update(Drain=True, SchedulingEligibility="ineligible", LastDrain={"Status": "draining", "Meta": meta})
    elif command == "drain":
        node.update(Drain=False, SchedulingEligibility="eligible")
        node["LastDrain"]["Status"] = "canceled"
    elif not node["Drain"]:
        node["SchedulingEligibility"] = "eligible"
    else:
        _fail(state, "Error updating scheduling eligibility: can not set node's scheduling eligibility to eligible")


def kafka_topics(state: State, words: list[str]) -> None:
    """Print the lines that are scripted for an option; the first list, until none is left."""
    answers = state[next(word for word in words if word.endswith("-partitions"))]
    sys.stdout.writelines(f"{line}\n" for line in (answers.pop(0) if len(answers) > 1 else answers[0]))


def kafka_leader_election(state: State, words: list[str]) -> None:
    """Do nothing but be called."""


def systemctl(state: State, words: list[str]) -> None:
    """Say whether the unit is active."""
    if not state["active"]:
        _fail(state, "", 3)


def sqlcmd(state: State, words: list[str]) -> None:
    """Answer a query by the column it asks for; the first answer, until one is left. A failover makes a secondary."""
    found = re.search(r"role_desc|COUNT\(|synchronization_health_desc|replica_server_name|FAILOVER", words[-1])
    if found and found.group() == "FAILOVER":
        state["role_desc"] = ["RESOLVING", "SECONDARY"]
        return
    answers = state[found.group() if found else "none"]
    answer = answers.pop(0) if len(answers) > 1 else answers[0]
    if answer is None:
        _fail(state, "Sqlcmd: Error: Login timeout expired.")
    sys.stdout.write(f"{answer}\n")


def appcmd(state: State, words: list[str]) -> None:
    """Know one site of IIS, and requests that are under way: the first list, until none is left."""
    verb, what = words[:2]
    name = next(word.partition(":")[2] for word in words if word.startswith("/site.name:"))
    if name != state["site"]:
        if verb != "list":
            sys.stdout.write(f'ERROR ( message:Cannot find SITE object with identifier "{name}". )\n')
        _fail(state, "")
    if what == "requests":
        urls = state["requests"].pop(0) if len(state["requests"]) > 1 else state["requests"][0]
        sys.stdout.writelines(f"{url}\n" for url in urls)
        if not urls:
            _fail(state, "")
    elif verb == "list":
        sys.stdout.write(f"{state['state']}\n")
    else:
        state["state"] = {"start": "Started", "stop": "Stopped"}[verb]
        sys.stdout.write(f'"{name}" successfully {verb}ed.\n')


def powershell(state: State, words: list[str]) -> None:
    """Know one node of a failover cluster. A drain goes on until its state has been asked for once."""
    script = words[words.index("-Command") + 1]
    if state["refuses"]:
        _fail(state, "Suspend-ClusterNode : Access is denied.")
    if "Suspend-ClusterNode" in script:
        state["node"] = ["Paused", "InProgress"]
    elif "Resume-ClusterNode" in script:
        state["node"] = ["Up"] if state["node"][0] == "Paused" else state["node"]
    else:
        sys.stdout.write(f"{' '.join(state['node'])}\n")
        if state["node"] == ["Down"]:
            state["node"] = ["Paused", "Completed"]  # the service of the cluster has started
        elif state["node"] == ["Paused", "InProgress"] and state["drains"]:
            state["node"][1] = "Completed"


def _fail(state: State, message: str, code: int = 1) -> None:
    _save(state)
    sys.stderr.write(f"{message}\n")
    sys.exit(code)


def _save(state: State) -> None:
    Path(sys.argv[1]).write_text(json.dumps(state), encoding="utf-8")


PROGRAMS = {
    "kubectl": kubectl,
    "nomad": nomad,
    "kafka-topics.sh": kafka_topics,
    "kafka-leader-election.sh": kafka_leader_election,
    "systemctl": systemctl,
    "sqlcmd": sqlcmd,
    "appcmd": appcmd,
    "powershell": powershell,
}


def main() -> None:
    state: State = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    state["calls"].append(sys.argv[2:])
    PROGRAMS[sys.argv[2]](state, sys.argv[3:])
    _save(state)


if __name__ == "__main__":
    main()
