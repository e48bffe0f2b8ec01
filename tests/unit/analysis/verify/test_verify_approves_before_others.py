# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A VM that approves what others still prepare for is found, and shown by the engine's decisions on both VMs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from forewarn.analysis.verify.finding import ProofFinding
from forewarn.cli.main import main
from forewarn.events import Vm, parse_document, parse_time
from forewarn.policy.decision import Decision, Facts
from forewarn.policy.engine import PolicySet
from tools.fixtures.policy_files import HEAD, loaded, verified

CODE = "approves-before-others"
DRAIN = "output: approve, group: ready, prepare: [{run: [/bin/drain]}], recover: [{run: [/bin/undrain]}]"
STARTED = "    - {id: started, condition: event.EventStatus == 'Started', output: hold}\n"
LAST = f"    - {{id: drain, {DRAIN}}}\n"
APPROVES = "output: approve"
SYNC = "output: approve, group: independent, prepare: [{run: [/bin/sync]}], recover: [{run: [/bin/undrain]}]"


def text(*rules: str, head: str = HEAD) -> str:
    return head + STARTED + "".join(f"    - {{{rule}}}\n" for rule in rules) + LAST


def found(directory: Path, *texts: str) -> list[ProofFinding]:
    return [one for one in verified(directory, *texts) if one.code == CODE]


def decided(policies: PolicySet, case: Mapping[str, Any], vm: Mapping[str, Any]) -> Decision:
    document = parse_document(json.dumps({"DocumentIncarnation": 1, "Events": [case["event"]]}))
    first_seen = {document.events[0].key: parse_time(case["first_seen"])}
    return policies.decide(document, Facts(parse_time(case["now"]), Vm(**vm), first_seen))[0]


ROLE = "id: replica, condition: 'has(vm.tags.role) && vm.tags.role == \"replica\"'"


@pytest.mark.parametrize(
    ("rule", "shows"),
    [
        (f"{ROLE}, {APPROVES}", True),
        (f"{ROLE}, {APPROVES}, group: ready", False),
        (f"{ROLE}, {SYNC}", True),
        (f"{ROLE}, {SYNC.replace('independent', 'hold')}", False),  # nothing is approved by such a VM
        (f"{ROLE}, {SYNC.replace('independent', 'ready')}", False),
        (f"{ROLE}, output: hold", False),
        (f"id: lead, condition: leader, {APPROVES}", True),
        (f"id: lead, condition: '!leader && affects_me', {APPROVES}", True),
        (f"id: me, condition: affects_me, {APPROVES}", False),  # as do the others
        (f"id: elsewhere, condition: '!affects_me', {APPROVES}", False),
        (f"id: elsewhere, condition: '!affects_me', {APPROVES}, approver: witness", True),
        (f"id: mine, condition: \"event.Resources.exists(r, r == vm.name + '_0')\", {APPROVES}", True),
        (f"id: brief, condition: event.EventType == 'Freeze', {APPROVES}", False),  # the same event is so for all
        (f"id: alone, condition: leader && size(event.Resources) == 1, {APPROVES}", False),
        (f"id: zone, condition: vm.zone == '1' && event.EventType == 'Reboot', {APPROVES}", True),
        (f"id: late, condition: age > duration('5m'), {APPROVES}", False),  # both see it at the same time
    ],
)
def test_a_vm_that_approves_while_another_prepares(tmp_path: Path, rule: str, shows: bool) -> None:
    findings = found(tmp_path, text(rule))
    assert bool(findings) == shows
    for one in findings:
        assert (one.severity, one.certain, one.line) == ("warning", True, 5)
        assert "by rule drain, with 'group: ready'" in one.message
        case = one.case
        assert case is not None
        other = case["other_vm"]
        policies = PolicySet(loaded(tmp_path, text(rule)))
        here, there = (decided(policies, case, vm) for vm in (case["vm"], other["vm"]))
        assert (here.output, here.rule) == ("approve", one.rule)
        assert here.group == "independent" or not here.prepare
        assert (there.output, there.rule, there.group) == ("approve", "drain", "ready")
        assert (other["decision"]["output"], other["decision"]["rule"]) == ("approve", "drain")
        names = [name.lower() for name in case["event"]["Resources"]]
        assert other["vm"]["name"].lower() in names
        assert other["vm"]["name"].lower() != case["vm"]["name"].lower()
        assert case["vm"]["name"].lower() in names or here.approver == "witness"
        assert len(names) > 1


def test_hosts_may_have_other_parameters(tmp_path: Path) -> None:
    head = "name: p\nparams: [{name: most, type: int, default: 9, min: 5, max: 60}]\nrule:\n  match:\n"
    brief = f"id: brief, condition: event.DurationInSeconds >= 0 && event.DurationInSeconds < params.most, {APPROVES}"
    (finding,) = found(tmp_path, text(brief, head=head))
    assert finding.case is not None
    here, there = finding.case["params"]["most"], finding.case["other_vm"]["params"]["most"]
    assert there <= finding.case["event"]["DurationInSeconds"] < here
    assert not [one for one in verified(tmp_path, text(brief, head=head), params={"most": 9}) if one.code == CODE]


def test_policies_together(tmp_path: Path) -> None:
    """A policy that says ready waits, whichever policy approves; a hold of another approves nothing."""
    ready = f"name: q\nrule:\n  match:\n    - {{id: drain, condition: '!leader', {DRAIN}}}\n"
    plain = "name: p\nrule:\n  match:\n    - {id: all, output: approve, group: independent}\n"
    (finding,) = found(tmp_path, plain, ready)
    assert (finding.policy, finding.rule) == ("p", "all")
    waits = "name: r\nrule:\n  match:\n    - {id: lead, condition: leader, output: approve, group: ready}\n"
    assert not found(tmp_path, plain, ready, waits)
    held = "name: r\nrule:\n  match:\n    - {id: lead, condition: leader, output: hold}\n"
    assert not found(tmp_path, plain, ready, held)


def test_what_is_not_understood_is_but_a_note(tmp_path: Path) -> None:
    odd = "id: odd, condition: 'event.Resources.filter(r, r != vm.name).size() % 2 == 1 && vm.zone == \"1\"'"
    (finding,) = found(tmp_path, text(f"{odd}, {APPROVES}"))
    assert finding.certain or finding.message.startswith("perhaps: ")


def test_without_preparation_that_waits_nothing_is_asked(tmp_path: Path) -> None:
    rule = f"    - {{id: lead, condition: leader, {APPROVES}, group: ready}}\n    - {{id: all, {APPROVES}}}\n"
    assert not found(tmp_path, HEAD + STARTED + rule)


def test_the_report_has_a_command_for_each_vm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "p.yml"
    path.write_text(text(f"{ROLE}, {APPROVES}"))
    main(["policy", "verify", str(path)])
    shown = capsys.readouterr().out.split(CODE)[1].split("\n\n")[0]
    assert "  repeat: echo " in shown
    assert "  on another VM: echo " in shown
    suppressed = f"suppress:\n  - {{code: {CODE}, rule: replica, reason: replicas have nothing to lose}}\n"
    path.write_text(path.read_text() + suppressed)
    assert [one.suppressed for one in found(tmp_path, path.read_text())] == ["replicas have nothing to lose"]
