# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a VM gets for the kinds of hooks that its policies use: their modules, and an open sandbox, no more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from forewarn.compiler.policies import load_policies
from forewarn.fleet.hooks import kinds_of, sandbox_of
from forewarn.policy.engine import PolicySet

POLICIES = Path(__file__).resolve().parents[3] / "policies"


@pytest.mark.parametrize(
    ("policy", "kinds", "sandbox"),
    [
        ("observe-only", [], ([], [])),
        ("web-tier", ["probe"], ([], [])),
        ("postgres-patroni", ["patroni"], (["network"], [])),
        ("spot-worker", ["checkpoint"], ([], [])),
    ],
)
def test_shipped_policies(policy: str, kinds: list[str], sandbox: tuple[list[str], list[str]]) -> None:
    artifact = load_policies([POLICIES / f"{policy}.yml"])
    assert kinds_of(artifact.data) == kinds
    assert sandbox_of(PolicySet(artifact).every_hook()) == sandbox


def test_sandbox_is_the_union_of_all_needs() -> None:
    parts = {"parts": ["/run/", {"source": "vm.name"}]}
    hooks: list[dict[str, Any]] = [
        {"run": ["/bin/true"]},
        {"kind": "haproxy", "options": {"socket": "/run/haproxy/admin.sock", "server": "web/a"}},
        {"kind": "haproxy", "options": {"socket": "lb:9999", "server": "web/a"}},
        {"kind": "systemd", "options": {"unit": "app.service"}},
        {"kind": "checkpoint", "options": {"file": parts, "unit": "app.service"}},
    ]
    assert sandbox_of(hooks) == (["network"], ["/run/systemd/system"])
