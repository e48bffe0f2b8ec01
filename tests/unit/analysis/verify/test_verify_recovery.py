# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``policy verify`` finds VMs that stay prepared, and recover hooks that do not run; the engine confirms each."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from forewarn.analysis.verify.finding import ProofFinding
from forewarn.analysis.verify.verify import verify
from forewarn.compiler.policies import load_policies
from forewarn.events import parse_time
from tools.fixtures.policy_files import HEAD, SHIPPED, verified

PREPARE = "prepare: [{run: [/bin/drain]}]"
RECOVER = "recover: [{run: [/bin/undrain]}]"
STARTED = "event.EventStatus == 'Started'"
CODES = ("prepared-not-recovered", "prepares-early", "recover-never-runs", "started-not-recovered")


def found(directory: Path, *matches: str, other: str = "") -> dict[str, ProofFinding]:
    """Return the findings of this file's kinds by their code; ``other`` is a second policy."""
    text = HEAD + "".join(f"    - {match}\n" for match in matches)
    findings = [one for one in verified(directory, text, *filter(None, [other])) if one.code in CODES]
    assert len({(one.code, one.rule) for one in findings}) == len(findings)
    return {one.code: one for one in findings}


def notice_of(finding: ProofFinding) -> timedelta:
    assert finding.case is not None
    return parse_time(finding.case["event"]["NotBefore"]) - parse_time(finding.case["now"])


class TestPreparedNotRecovered:
    def test_cancelled_preempt_leaves_the_vm_prepared(self, tmp_path: Path) -> None:
        finding = found(
            tmp_path,
            f"{{id: preempt, condition: event.EventType == 'Preempt', output: hold, {PREPARE}}}",
            f"{{id: rest, output: approve, {PREPARE}, {RECOVER}}}",
        )["prepared-not-recovered"]
        assert (finding.rule, finding.severity, finding.certain) == ("preempt", "warning", True)
        assert finding.message.endswith("nothing undoes what was prepared for a Preempt")
        assert finding.case is not None
        assert finding.case["event"]["EventType"] == "Preempt"
        assert finding.case["event"]["EventStatus"] == "Scheduled"
        assert finding.case["decision"]["rule"] == "preempt"

    @pytest.mark.parametrize(
        "match",
        [
            f"{{output: hold, {PREPARE}, {RECOVER}, prepare_within: 5m}}",
            "{output: hold}",
            f"{{condition: {STARTED}, output: hold, {PREPARE}}}",  # which prepares for nothing
            f"{{output: hold, {PREPARE}, {RECOVER}, recover_when: started, prepare_within: 5m}}",
        ],
    )
    def test_no_finding(self, match: str, tmp_path: Path) -> None:
        assert "prepared-not-recovered" not in found(tmp_path, match)

    def test_with_a_reason_it_is_suppressed(self, tmp_path: Path) -> None:
        text = HEAD + f"    - {{id: a, output: approve, group: independent, {PREPARE}}}\n"
        text += "suppress: [{code: prepared-not-recovered, rule: a, reason: a checkpoint undoes nothing}]\n"
        (finding,) = verified(tmp_path, text)
        assert finding.suppressed == "a checkpoint undoes nothing"

    def test_each_policy_must_undo_its_own_preparation(self, tmp_path: Path) -> None:
        other = f"name: q\nrule:\n  match:\n    - {{id: b, output: approve, {PREPARE}, {RECOVER}}}\n"
        finding = found(tmp_path, f"{{id: a, output: approve, {PREPARE}}}", other=other)["prepared-not-recovered"]
        assert (finding.policy, finding.rule, finding.alone) == ("p", "a", True)


class TestPreparesEarly:
    @pytest.mark.parametrize(
        "match",
        [
            f"{{id: a, output: hold, {PREPARE}, {RECOVER}}}",
            f"{{id: a, condition: event.EventType == 'Redeploy', output: hold, {PREPARE}, {RECOVER}}}",
            f"{{id: a, condition: \"notice > duration('5m')\", output: hold, {PREPARE}, {RECOVER}}}",
            f"{{id: a, condition: \"notice >= duration('2h')\", output: hold, {PREPARE}, {RECOVER}}}",
            f"{{id: a, condition: event.EventSource == 'Platform', output: hold, {PREPARE}, {RECOVER}}}",
        ],
    )
    def test_what_is_held_stays_prepared_for_a_week(self, match: str, tmp_path: Path) -> None:
        finding = found(tmp_path, match)["prepares-early"]
        assert (finding.rule, finding.severity, finding.certain) == ("a", "warning", True)
        assert "it is held" in finding.message
        assert "prepare_within" in finding.suggestion
        assert notice_of(finding) == timedelta(days=7)
        assert finding.case is not None
        assert finding.case["decision"] == {**finding.case["decision"], "output": "hold", "rule": "a"}
        assert finding.case["event"]["EventType"] in ("Freeze", "Reboot", "Redeploy")

    def test_notice_limit_of_two_hours_is_early(self, tmp_path: Path) -> None:
        condition = "\"notice > duration('5m') && notice <= duration('2h')\""
        finding = found(tmp_path, f"{{id: a, condition: {condition}, output: hold, {PREPARE}}}")["prepares-early"]
        assert timedelta(hours=1) < notice_of(finding) <= timedelta(hours=2)

    def test_an_event_of_several_vms_is_not_approved(self, tmp_path: Path) -> None:
        finding = found(tmp_path, f"{{id: a, output: approve, {PREPARE}, {RECOVER}}}")["prepares-early"]
        assert "an event of several VMs is not approved" in finding.message
        assert notice_of(finding) == timedelta(days=7)
        assert finding.case is not None
        assert len(finding.case["event"]["Resources"]) == 2

    @pytest.mark.parametrize("further", [", prepare_within: 15m", ", prepare_within: 48h"])
    @pytest.mark.parametrize("output", ["approve", "hold"])
    def test_prepare_within_bounds_it(self, output: str, further: str, tmp_path: Path) -> None:
        assert not found(tmp_path, f"{{output: {output}, {PREPARE}, {RECOVER}{further}}}")

    @pytest.mark.parametrize(
        "match",
        [
            f"{{output: approve, group: independent, {PREPARE}, {RECOVER}}}",
            f"{{condition: size(event.Resources) == 1, output: approve, {PREPARE}, {RECOVER}}}",
            f"{{condition: \"notice <= duration('1h')\", output: hold, {PREPARE}, {RECOVER}}}",
            f"{{condition: event.NotBefore - now < duration('1h'), output: hold, {PREPARE}, {RECOVER}}}",
            f"{{condition: event.EventType == 'Preempt', output: hold, {PREPARE}, {RECOVER}}}",
            f"{{condition: event.EventType == 'Terminate', output: hold, {PREPARE}, {RECOVER}}}",
            f"{{condition: event.EventSource == 'User', output: hold, {PREPARE}, {RECOVER}}}",
            "{output: hold}",
        ],
    )
    def test_no_finding(self, match: str, tmp_path: Path) -> None:
        assert "prepares-early" not in found(tmp_path, match)

    def test_another_policy_s_hold_keeps_the_vm_prepared(self, tmp_path: Path) -> None:
        approve = f"{{id: a, condition: size(event.Resources) == 1, output: approve, {PREPARE}, {RECOVER}}}"
        assert not found(tmp_path, approve)
        brake = "name: brake\nrule:\n  match:\n    - {id: all, output: hold}\n"
        finding = found(tmp_path, approve, other=brake)["prepares-early"]
        assert finding.case is not None
        assert (finding.policy, finding.rule, finding.case["decision"]["policy"]) == ("p", "a", "brake")

    def test_notice_compared_with_other_times(self, tmp_path: Path) -> None:
        """Representatives of such intervals are in an order that must not change."""
        condition = "notice > age && notice > duration('2h')"
        finding = found(tmp_path, f'{{id: a, condition: "{condition}", output: hold, {PREPARE}, {RECOVER}}}')
        assert notice_of(finding["prepares-early"]) > timedelta(hours=2)
        finding = found(tmp_path, f"{{id: a, condition: notice > age, output: hold, {PREPARE}, {RECOVER}}}")
        assert notice_of(finding["prepares-early"]) == timedelta(days=7)
        assert finding["prepares-early"].certain


class TestRecoverNeverRuns:
    def test_nothing_is_prepared_for_what_has_started(self, tmp_path: Path) -> None:
        match = f"{{id: started, condition: {STARTED}, output: hold, {PREPARE}, {RECOVER}}}"
        finding = found(tmp_path, match, "{output: hold}")["recover-never-runs"]
        assert (finding.rule, finding.severity) == ("started", "warning")
        assert "recover_when: started" in finding.suggestion
        assert finding.case is not None
        assert finding.case["event"]["EventStatus"] == "Started"
        assert finding.case["decision"]["rule"] == "started"

    @pytest.mark.parametrize(
        "match",
        [
            f"{{condition: {STARTED}, output: hold, {PREPARE}, {RECOVER}, recover_when: started}}",
            f"{{condition: {STARTED}, output: hold, {RECOVER}, recover_when: started}}",
            f"{{condition: affects_me, output: hold, {PREPARE}, {RECOVER}, prepare_within: 5m}}",
        ],
    )
    def test_no_finding(self, match: str, tmp_path: Path) -> None:
        assert not found(tmp_path, match, "{output: hold}")

    def test_it_is_about_all_events(self, tmp_path: Path) -> None:
        both = f"{{id: both, condition: affects_me, output: hold, {PREPARE}, {RECOVER}, prepare_within: 5m}}"
        late = f"{{id: late, condition: {STARTED}, output: hold, {PREPARE}, {RECOVER}}}"
        assert not found(tmp_path, both, "{output: hold}")
        assert list(found(tmp_path, late, "{output: hold}")) == ["recover-never-runs"]


class TestStartedNotRecovered:
    UNDER_WAY = f"{{id: under-way, condition: {STARTED}, output: hold}}"

    def test_a_rule_that_a_started_event_never_reaches(self, tmp_path: Path) -> None:
        match = f"{{id: drain, output: approve, {PREPARE}, {RECOVER}, prepare_within: 5m, recover_when: started}}"
        finding = found(tmp_path, self.UNDER_WAY, match)["started-not-recovered"]
        assert (finding.rule, finding.severity) == ("drain", "warning")
        assert "decides no started event" in finding.message
        assert finding.case is not None
        assert finding.case["event"]["EventStatus"] == "Started"
        assert finding.case["decision"]["rule"] == "under-way"

    @pytest.mark.parametrize(
        "matches",
        [
            [f"{{id: all, output: hold, {RECOVER}, recover_when: started}}"],
            [
                f"{{id: under-way, condition: {STARTED}, output: hold, {RECOVER}, recover_when: started}}",
                f"{{id: drain, output: hold, {PREPARE}, {RECOVER}, prepare_within: 5m, recover_when: started}}",
            ],
            [
                f"{{id: under-way, condition: {STARTED} && !affects_me, output: hold}}",
                f"{{id: drain, output: hold, {PREPARE}, {RECOVER}, prepare_within: 5m, recover_when: started}}",
            ],
        ],
    )
    def test_no_finding(self, matches: list[str], tmp_path: Path) -> None:
        assert not found(tmp_path, *matches)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_policies_have_none_that_is_not_explained(path: Path) -> None:
    findings = verify(load_policies([path])).findings
    assert [(one.code, one.rule) for one in findings if one.code in CODES and one.suppressed is None] == []
    assert not [one for one in findings if one.code == "unused-suppression"]


def test_suppression_needed_by_one_policy_is_used(tmp_path: Path) -> None:
    witness = HEAD + "    - {id: a, output: approve, approver: witness}\n"
    witness += "suppress: [{code: follower-approves, rule: a, reason: they have hung}]\n"
    brake = "name: brake\nrule:\n  match:\n    - {output: hold}\n"
    assert [one.code for one in verified(tmp_path, witness, brake)] == []
    leader = witness.replace("approver: witness", "approver: leader")
    assert [one.code for one in verified(tmp_path, leader, brake)] == ["unused-suppression"]
