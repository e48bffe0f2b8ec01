# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A shadow reports where it would decide differently, once, and disturbs nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

import pytest
from forewarn.events import Document, Event
from forewarn.policy.decision import APPROVE, HOLD, Decision, Facts, Limit, Verdict
from forewarn.policy.engine import PolicySet
from forewarn.runner.shadow import Shadow

FACTS = Facts(datetime(2026, 5, 4, 12, 0, 0, tzinfo=timezone.utc))
A, B = Event("A", "Freeze"), Event("B", "Reboot")
DRAIN, UNDRAIN = {"run": ["/bin/drain", "--wait"], "timeout_seconds": 60}, {"run": ["/bin/undrain"]}
STOP = {"unit": "web.service", "action": "stop"}


def verdict(output: str = APPROVE, rule: str | None = "r", policy: str = "p", **values: Any) -> Verdict:
    return Verdict(policy, output, rule, "", "p.yml:1:1", **values)


def decision(event: Event, output: str, *verdicts: Verdict, reason: str = "so", **values: Any) -> Decision:
    """Join verdicts as the engine does, as far as it matters here."""
    hooks = {
        name: tuple(hook for one in verdicts if one.output != "abstain" for hook in getattr(one, name))
        for name in ("prepare", "recover", "notify")
    }
    rule: dict[str, Any] = {"policy": "p", "rule": "r"}
    return Decision(event, output, **{**rule, "reason": reason, "verdicts": verdicts, **hooks, **values})


class FakePolicies(PolicySet):
    """Policies whose decisions a test sets."""

    time_dependent = False
    recovers_started = False
    digest = api_version = ""

    def __init__(self, *decisions: Decision) -> None:
        self.decisions: Sequence[Decision] = decisions
        self.on_decide: Callable[[], None] = lambda: None
        self.asked: list[tuple[Document, Facts]] = []

    def decide(self, document: Document, facts: Facts) -> tuple[Decision, ...]:
        self.asked.append((document, facts))
        self.on_decide()
        return tuple(self.decisions)

    def every_hook(self) -> Iterator[Mapping[str, Any]]:
        return iter(())


def differ(live: Decision, other: Decision) -> str | None:
    """Return what is reported of one event."""
    found = Shadow(FakePolicies(other)).compare(Document(1, (live.event,)), FACTS, [live])
    assert len(found) <= 1
    if not found:
        return None
    assert found[0][:3] == (live.event, live, other)
    return found[0].what


def test_the_shadow_is_asked_the_same(tmp_path: object) -> None:
    policies = FakePolicies()
    document = Document(7, (A,))
    Shadow(policies).compare(document, FACTS, [])
    assert policies.asked == [(document, FACTS)]
    assert not Shadow(policies).time_dependent
    policies.time_dependent = True
    assert Shadow(policies).time_dependent


def test_another_output_is_reported_with_both_rules() -> None:
    live = decision(A, APPROVE, verdict(), policy="web", rule="brief-freeze", reason="a freeze of 5 s")
    other = decision(A, HOLD, verdict(HOLD), policy="new", rule="careful", reason="not on Fridays")
    assert differ(live, other) == (
        "live approves (rule brief-freeze of web: a freeze of 5 s), shadow holds (rule careful of new: not on Fridays)"
    )
    nobody = decision(A, HOLD, policy=None, rule=None, reason="no rule of any policy applies to this event")
    assert differ(nobody, live) == (
        "live holds (no rule of any policy applies to this event), "
        "shadow approves (rule brief-freeze of web: a freeze of 5 s)"
    )


def test_what_comes_to_the_same_is_no_disagreement() -> None:
    live = decision(A, APPROVE, verdict(prepare=(DRAIN,), recover=(UNDRAIN,)))
    assert differ(live, live) is None
    # by another rule of another policy, for another reason
    other = decision(A, APPROVE, verdict(prepare=(DRAIN,), recover=(UNDRAIN,)), policy="q", rule="s", reason="else")
    assert differ(live, other) is None
    # with a policy beside it that abstains
    idle = verdict("abstain", None, prepare=(STOP,))
    assert differ(live, decision(A, APPROVE, idle, verdict(prepare=(DRAIN,), recover=(UNDRAIN,)))) is None
    # hooks that only notify
    assert differ(live, decision(A, APPROVE, verdict(prepare=(DRAIN,), recover=(UNDRAIN,), notify=(STOP,)))) is None
    # of a single hook nothing runs side by side
    assert differ(live, decision(A, APPROVE, verdict(prepare=(DRAIN,), recover=(UNDRAIN,), parallel=True))) is None
    # nothing is recovered that was not prepared
    assert differ(decision(A, APPROVE, verdict()), decision(A, APPROVE, verdict(recover=(UNDRAIN,)))) is None


def test_who_approves_is_nothing_where_nobody_does() -> None:
    assert differ(decision(A, HOLD, verdict(HOLD)), decision(A, HOLD, verdict(HOLD), approver="any")) is None
    limited = decision(A, HOLD, verdict(HOLD), limits=(Limit(None, 1, None),))
    assert differ(decision(A, HOLD, verdict(HOLD)), limited) is None
    draining = verdict(HOLD, prepare=(DRAIN,))
    assert differ(decision(A, HOLD, draining), decision(A, HOLD, draining, approver="witness")) == (
        "both hold, live by rule r of p, shadow by rule r of p, but live with approver leader, shadow with witness"
    )


@pytest.mark.parametrize(
    ("values", "difference"),
    [
        ({"approver": "any"}, "live with approver leader, shadow with any"),
        ({"group": "independent"}, "live with group hold, shadow with independent"),
        ({"group": "ready"}, "live with group hold, shadow with ready"),
        ({"limits": (Limit(None, 1, None),)}, "live with no limit, shadow with limit 1"),
        (
            {"limits": (Limit("web", None, 25), Limit(None, 2, None))},
            "live with no limit, shadow with limit 25% of web, 2",
        ),
        (
            {"approver": "any", "group": "independent"},
            "live with approver leader, shadow with any; live with group hold, shadow with independent",
        ),
    ],
)
def test_another_approver_group_or_limit_is_reported(values: dict[str, Any], difference: str) -> None:
    live = decision(A, APPROVE, verdict())
    assert differ(live, decision(A, APPROVE, verdict(), rule="s", **values)) == (
        f"both approve, live by rule r of p, shadow by rule s of p, but {difference}"
    )


@pytest.mark.parametrize(
    ("values", "difference"),
    [
        (
            {},
            "live prepares run /bin/drain --wait, shadow nothing; live recovers by run /bin/undrain, shadow by nothing",
        ),
        (
            {"prepare": (DRAIN, STOP), "recover": (UNDRAIN,)},
            "live prepares run /bin/drain --wait, shadow run /bin/drain --wait, stop web.service",
        ),
        (
            {"prepare": (DRAIN,) * 5, "recover": (UNDRAIN,)},
            "live prepares run /bin/drain --wait, shadow run /bin/drain --wait, run /bin/drain --wait, "
            "run /bin/drain --wait and 2 more",
        ),
        (
            {"prepare": (DRAIN,), "recover": (UNDRAIN,), "on_failure": "approve"},
            "live prepares run /bin/drain --wait, shadow run /bin/drain --wait (on_failure approve)",
        ),
        (
            {"prepare": (DRAIN,), "recover": (UNDRAIN,), "prepare_within_seconds": 900.0},
            "live prepares run /bin/drain --wait, shadow run /bin/drain --wait (within 15 min of NotBefore)",
        ),
        (
            {"prepare": (DRAIN,), "recover": (UNDRAIN,), "recover_when": "started"},
            "live recovers by run /bin/undrain, shadow by run /bin/undrain also after a start without preparation",
        ),
        (
            {"prepare": ({**DRAIN, "timeout_seconds": 90},), "recover": (UNDRAIN,)},
            "both prepare run /bin/drain --wait, but with different settings",
        ),
        (
            {"prepare": (DRAIN,), "recover": ({**UNDRAIN, "timeout_seconds": 90},)},
            "both recover by run /bin/undrain, but with different settings",
        ),
        (
            {"prepare": (DRAIN,), "recover": (UNDRAIN, STOP)},
            "live recovers by run /bin/undrain, shadow by run /bin/undrain, stop web.service",
        ),
    ],
)
def test_other_hooks_are_reported(values: dict[str, Any], difference: str) -> None:
    live = decision(A, APPROVE, verdict(prepare=(DRAIN,), recover=(UNDRAIN,)))
    assert differ(live, decision(A, APPROVE, verdict(**values))) == (
        f"both approve, live by rule r of p, shadow by rule r of p, but {difference}"
    )


def test_parallel_or_reordered_hooks_are_a_difference() -> None:
    live = decision(A, APPROVE, verdict(prepare=(DRAIN, STOP)))
    assert differ(live, decision(A, APPROVE, verdict(prepare=(STOP, DRAIN)))) is not None
    difference = differ(live, decision(A, APPROVE, verdict(prepare=(DRAIN, STOP), parallel=True)))
    assert "shadow run /bin/drain --wait (parallel), stop web.service (parallel)" in str(difference)


def test_secrets_of_a_hook_are_not_reported() -> None:
    hook = {"http": "https://user:secret@hooks.example.com/x?token=secret", "timeout_seconds": 5}
    difference = differ(decision(A, APPROVE, verdict()), decision(A, APPROVE, verdict(prepare=(hook,))))
    assert "hooks.example.com" in str(difference)
    assert "secret" not in str(difference)


# Once


def test_each_difference_is_reported_once_per_event() -> None:
    approve, hold = decision(A, APPROVE, verdict()), decision(A, HOLD, verdict(HOLD))
    alone = decision(A, APPROVE, verdict(), approver="any")
    policies = FakePolicies(hold)
    shadow = Shadow(policies)

    def difference(live: Decision, other: Decision) -> int:
        policies.decisions = [other]
        return len(shadow.compare(Document(1, (live.event,)), FACTS, [live]))

    assert difference(approve, hold) == 1
    assert difference(approve, hold) == 0
    assert difference(hold, approve) == 1
    assert difference(approve, alone) == 1
    assert [difference(approve, hold), difference(hold, approve), difference(approve, alone)] == [0, 0, 0]
    # Ids come in either case (SE-11).
    assert difference(approve._replace(event=Event("a", "Freeze")), hold) == 0
    assert difference(approve._replace(event=B), hold) == 1
    shadow.forget(A.key)
    assert difference(approve, hold) == 1
    assert difference(approve._replace(event=B), hold) == 0
    shadow.forget("unheard-of")


def test_of_several_events_those_that_differ_are_reported() -> None:
    live = [decision(A, APPROVE, verdict()), decision(B, APPROVE, verdict())]
    other = [decision(A, APPROVE, verdict()), decision(B, HOLD, verdict(HOLD))]
    found = Shadow(FakePolicies(*other)).compare(Document(1, (A, B)), FACTS, live)
    assert [disagreement.event for disagreement in found] == [B]


# A shadow that fails


@pytest.mark.parametrize("failure", [RecursionError, MemoryError, ZeroDivisionError, KeyError])
def test_failed_shadow_is_reported_once_per_event(failure: type[Exception]) -> None:
    def fail() -> None:
        raise failure("with a secret")

    policies = FakePolicies()
    policies.on_decide = fail
    shadow = Shadow(policies)
    live = [decision(A, APPROVE, verdict(), reason="brief"), decision(B, HOLD, verdict(HOLD), reason="long")]
    found = shadow.compare(Document(1, (A, B)), FACTS, live)
    name = failure.__name__
    assert [disagreement.what for disagreement in found] == [
        f"live approves (rule r of p: brief), the shadow could not decide: {name}",
        f"live holds (rule r of p: long), the shadow could not decide: {name}",
    ]
    assert [disagreement.other.output for disagreement in found] == [HOLD, HOLD]
    assert [disagreement.live for disagreement in found] == live
    assert shadow.compare(Document(1, (A, B)), FACTS, live) == []
    policies.on_decide = lambda: None
    policies.decisions = live
    assert shadow.compare(Document(1, (A, B)), FACTS, live) == []


def test_a_recursion_without_end_is_survived() -> None:
    def fall() -> None:
        fall()

    policies = FakePolicies()
    policies.on_decide = fall
    live = [decision(A, APPROVE, verdict())]
    assert len(Shadow(policies).compare(Document(1, (A,)), FACTS, live)) == 1


def test_hooks_that_are_none_are_a_failure_too() -> None:
    other = decision(A, APPROVE, verdict(prepare=({"run": 5},)))
    live = [decision(A, APPROVE, verdict())]
    found = Shadow(FakePolicies(other)).compare(Document(1, (A,)), FACTS, live)
    assert [disagreement.what for disagreement in found] == [
        "live approves (rule r of p: so), the shadow could not decide: TypeError"
    ]


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit])
def test_what_is_no_fault_goes_through(interruption: type[BaseException]) -> None:
    def stop() -> None:
        raise interruption

    policies = FakePolicies()
    policies.on_decide = stop
    with pytest.raises(interruption):
        Shadow(policies).compare(Document(1, (A,)), FACTS, [decision(A, APPROVE, verdict())])
