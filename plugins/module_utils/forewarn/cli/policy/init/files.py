# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files that ``forewarn policy init`` writes: a policy, its tests, and a workflow that checks both."""

from __future__ import annotations

import json
import re
from pathlib import Path

from ....compiler.yaml.schema import load
from .questions import APPROVE, HOLD, KINDS, LONGEST_FREEZE, NONE, Answers

_CI = Path(__file__).with_name("ci")
_GUIDE = "https://github.com/forewarn/forewarn.azure/blob/main/docs/guides/git-and-ci.md"
# CI system -> its file in the repository, and in this package.
CI_FILES = {
    "github": (".github/workflows/policies.yml", "github.yml"),
    "gitlab": (".gitlab-ci.yml", "gitlab-ci.yml"),
    "azure": ("azure-pipelines.yml", "azure-pipelines.yml"),
}
_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9/._-]*")
_WORDS = ("true", "false", "null", "yes", "no", "on", "off", "y", "n")
_HOOKS = {
    "probe": "probe: {wait: 20s}",
    "haproxy": 'haproxy: {socket: /run/haproxy/admin.sock, server: "web/${vm.name}"}',
    **dict.fromkeys(("patroni", "slurm", "rabbitmq", "galera", "pacemaker"), ""),
}
_ADVICE = {
    "probe": "Let the load balancer ask /readyz of the runner, at the role's forewarn_probe_listen.",
    "haproxy": "Write the path of HAProxy's stats socket, and the name of the backend instead of web.",
}


def policy_text(name: str, answers: Answers) -> str:
    """Return the policy. It passes ``policy check``, ``test`` and ``verify --strict``, whatever the answers are."""
    lines = [
        f"# yaml-language-server: $schema={load('policy.schema.json')['$id']}",
        "---",
        f"name: {_scalar(name)}",
        f"description: {_description(answers)}",
        "",
    ]
    if answers.freeze is not None:
        lines += [
            "params:",
            "  - name: tolerable_freeze",
            "    type: int",
            f"    default: {answers.freeze}",
            "    min: 0",
            f"    max: {LONGEST_FREEZE}",
            "    description: Freezes that are shorter, in seconds, are approved.",
            "",
        ]
    lines += ["rule:", "  match:", *_rules(answers), "", "invariants:", *_invariants(answers), ""]
    lines += ["suppress:", "  # What a rule cannot judge is held, and that is meant."]
    lines += _meant("not-mine", "where the name of this VM is not known, every event is held")
    if answers.freeze is not None:
        lines += _meant("brief-freeze", "a freeze without a duration is held")
    return "\n".join(lines) + "\n"


def _meant(rule: str, reason: str) -> list[str]:
    return [f'  - {{code: rule-can-fail, rule: {rule}, reason: "{reason}"}}']


def _scalar(text: str) -> str:
    """Return a text as YAML, in quotes unless every reader takes it for a text without them."""
    plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS
    return text if plain else json.dumps(text)


def _description(answers: Answers) -> str:
    freezes = "All freezes are held" if answers.freeze is None else "Short freezes are approved"
    if answers.prepare == NONE:
        reboots = "reboots are approved at once" if answers.reboot == APPROVE else "reboots are held"
    else:
        reboots = f"reboots are {'approved' if answers.reboot == APPROVE else 'held'}, and prepared for"
    return f"{freezes}, {reboots}."


def _rules(answers: Answers) -> list[str]:
    prepared = answers.prepare != NONE
    lines = [
        "    - id: under-way",
        '      condition: event.EventStatus == "Started"',
        "      output: hold",
        "      explanation: \"'under way'\"",
        "    - id: not-mine",
        '      condition: "!affects_me"',
        "      output: hold",
        "      explanation: \"'this VM is not affected'\"",
    ]
    if answers.freeze is not None:
        lines += [
            "    - id: brief-freeze",
            "      # A duration of -1 is not known.",
            "      condition: >-",
            '        event.EventType == "Freeze"',
            "        && event.DurationInSeconds >= 0",
            "        && event.DurationInSeconds < params.tolerable_freeze",
            "      output: approve",
            "      explanation: \"'a freeze of ' + string(event.DurationInSeconds) + ' s'\"",
        ]
    if prepared:
        lines += [
            "    - id: goes-away",
            "      # A Spot VM that is evicted has 30 s: prepare for as long as there is.",
            '      condition: event.EventType in ["Preempt", "Terminate"]',
            "      output: hold",
            "      explanation: \"'prepared until the VM goes'\"",
            *_hooks(answers.prepare),
        ]
    if prepared or answers.reboot == APPROVE:
        why = "'prepared before the ' + event.EventType" if prepared else "'approved at once: ' + event.EventType"
        lines += [
            "    - id: reboot",
            '      condition: event.EventType in ["Reboot", "Redeploy"]',
            f"      output: {answers.reboot}",
            f'      explanation: "{why}"',
        ]
        if prepared:
            lines += [
                "      # Failing hardware is announced up to a week ahead: nothing is begun before it needs to be.",
                "      prepare_within: 15m",
                *_hooks(answers.prepare),
            ]
    return [
        *lines,
        "    - id: anything-else",
        "      output: hold",
        "      explanation: \"'a ' + event.EventType + ' begins at its announced time'\"",
    ]


def _hooks(prepare: str) -> list[str]:
    """Return the hooks of a rule. A kind of hook knows how to recover by itself."""
    if prepare.startswith("/"):
        return [
            "      prepare:",
            f"        - {{run: [{_scalar(prepare)}, prepare], timeout: 5m}}",
            "      recover:",
            f"        - {{run: [{_scalar(prepare)}, recover], timeout: 5m}}",
        ]
    if prepare not in KINDS:
        return ["      prepare:", f"        - systemd: {{unit: {_scalar(prepare)}}}"]
    advice = [f"        # {_ADVICE[prepare]}"] if prepare in _ADVICE else []
    return ["      prepare:", *advice, f"        - {_HOOKS[prepare] or f'{prepare}: {{}}'}"]


def _invariants(answers: Answers) -> list[str]:
    lines = [
        "  - name: what has started is not approved",
        "    expression: '!(decision == approve && event.EventStatus == \"Started\")'",
        "  - name: what is evicted or deleted keeps all of its notice",
        '    expression: \'!(decision == approve && event.EventType in ["Preempt", "Terminate"])\'',
    ]
    if answers.freeze is None:
        lines += [
            "  - name: no freeze is approved",
            "    expression: '!(decision == approve && event.EventType == \"Freeze\")'",
        ]
    else:
        lines += [
            "  - name: a freeze of unknown length is not approved",
            "    expression: >-",
            '      !(decision == approve && event.EventType == "Freeze" && event.DurationInSeconds < 0)',
        ]
    if answers.reboot == HOLD and answers.freeze is None:
        lines += ["  - name: nothing is approved", "    expression: decision == hold"]
    elif answers.reboot == HOLD:
        lines += [
            "  - name: nothing but a freeze is approved",
            "    expression: '!(decision == approve && event.EventType != \"Freeze\")'",
        ]
    return lines


def tests_text(answers: Answers) -> str:
    """Return the tests of the policy. Each rule decides in one of them."""
    fallback = "anything-else"
    reboot = fallback if answers.prepare == NONE and answers.reboot == HOLD else "reboot"
    gone = fallback if answers.prepare == NONE else "goes-away"
    lines = [
        f"# yaml-language-server: $schema={load('policy-test.schema.json')['$id']}",
        "---",
        "input:  # what all tests have in common",
        "  vm: {name: vm_0}",
        "  event: {EventSource: Platform}",
        "section:",
        "  - name: freezes",
        "    tests:",
    ]
    if answers.freeze is None:
        lines += _test("a short one is held", "EventType: Freeze, DurationInSeconds: 5", HOLD, fallback)
    else:
        short, long = (f"EventType: Freeze, DurationInSeconds: {answers.freeze - less}" for less in (1, 0))
        lines += _test("a short one is approved", short, APPROVE, "brief-freeze")
        lines += _test("a longer one is held", long, HOLD, fallback)
    lines += [
        *_test("one of unknown length is held", "EventType: Freeze, DurationInSeconds: -1", HOLD, fallback),
        "  - name: reboots",
        "    tests:",
        *_test("a reboot of this VM", "EventType: Reboot", answers.reboot, reboot),
        *_test("a redeploy of this VM", "EventType: Redeploy", answers.reboot, reboot),
        *_test("a reboot of another VM", "EventType: Reboot, Resources: [vm_1]", HOLD, "not-mine"),
        *_test("one that has started", "EventType: Reboot, EventStatus: Started", HOLD, "under-way"),
        "  - name: the end of the VM",
        "    tests:",
        *_test("an eviction", "EventType: Preempt", HOLD, gone),
        *_test("a deletion", "EventType: Terminate", HOLD, gone),
    ]
    return "\n".join(lines) + "\n"


def _test(name: str, event: str, output: str, rule: str) -> list[str]:
    return [
        f"      - name: {name}",
        "        input:",
        f"          event: {{{event}}}",
        f"        output: {output}",
        f"        rule: {rule}",
    ]


def workflow_text(system: str, directory: str) -> str:
    """Return the workflow of a CI system for the policies in a directory of the repository, as POSIX writes it."""
    _path, name = CI_FILES[system]
    body = (_CI / name).read_text(encoding="utf-8").partition("---\n")[2]
    return f"# Written by forewarn policy init. {_GUIDE} explains each step.\n---\n" + body.replace(
        "@DIRECTORY@", directory
    )
