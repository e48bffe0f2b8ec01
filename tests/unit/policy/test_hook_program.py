# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hooks with expressions, as decisions have them: with values, or with the problem that they have none."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from forewarn.events import Document, Vm
from forewarn.policy.decision import Decision, Facts
from forewarn.policy.engine import PolicySet
from tools.fixtures.events import GUID, event
from tools.fixtures.policy_files import HEAD, loaded

OWN, FIXED = 'haproxy: {socket: "lb:9999", server: "web/${vm.name}"}', 'haproxy: {socket: "lb:9999", server: web/a}'
OTHER = 'haproxy: {socket: "lb:9999", server: "api/${vm.name}"}'


def decided(directory: Path, hooks: Mapping[str, list[str]], vm_name: str | None) -> Decision:
    """Return the decision of a policy with these hooks."""
    phases = "".join(f"      {phase}: [{', '.join(f'{{{hook}}}' for hook in each)}]\n" for phase, each in hooks.items())
    policies = PolicySet(loaded(directory, f"{HEAD}    - id: all\n      output: approve\n{phases}"), {})
    facts = Facts(datetime(2026, 1, 31, 12, tzinfo=timezone.utc), Vm(name=vm_name))
    (decision,) = policies.decide(Document(1, (event(GUID),)), facts)
    return decision


def servers(hooks: tuple[Mapping[str, Any], ...]) -> list[tuple[Any, bool]]:
    """Return the source or value of each hook's server, and whether the hook can run."""
    return [(hook["options"]["server"], "problem" not in hook) for hook in hooks]


def test_recovery_of_what_cannot_prepare_is_left_out(tmp_path: Path) -> None:
    """A hook that can prepare is recovered all the same; recover follows from prepare, the last first."""
    hooks = {"prepare": [OWN, FIXED]}
    (verdict,) = decided(tmp_path, hooks, "b").verdicts
    assert servers(verdict.prepare) == [("web/b", True), ("web/a", True)]
    assert servers(verdict.recover) == [("web/a", True), ("web/b", True)]
    (verdict,) = decided(tmp_path, hooks, None).verdicts
    assert [able for _server, able in servers(verdict.prepare)] == [False, True]
    assert servers(verdict.recover) == [("web/a", True)]


def test_recovery_of_its_own_stays_with_its_problem(tmp_path: Path) -> None:
    """A policy that recovers otherwise than it prepares means it: a person has to know that this cannot run."""
    (verdict,) = decided(tmp_path, {"prepare": [OWN], "recover": [OTHER, FIXED]}, None).verdicts
    assert [able for _server, able in servers(verdict.recover)] == [False, True]


def test_body_of_each_phase_has_its_value(tmp_path: Path) -> None:
    """Where it has none, a hook of prepare cannot run; one of notify reports it when it is due."""
    body = 'http: "https://a.example/", body: "{\\"vm\\": vm.name}"'
    hooks = {"prepare": [body], "notify": [body]}
    (verdict,) = decided(tmp_path, hooks, "a").verdicts
    assert verdict.prepare[0]["content"] == {"json": {"vm": "a"}}
    assert verdict.notify[0]["content"] == {"json": {"vm": "a"}}
    (verdict,) = decided(tmp_path, hooks, None).verdicts
    assert "the body has no value" in verdict.prepare[0]["problem"]
    assert "content" not in verdict.prepare[0]
    assert "the body has no value" in verdict.notify[0]["content"]["problem"]
    assert "problem" not in verdict.notify[0]
