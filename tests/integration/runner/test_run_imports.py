# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A runner imports what its policies and its configuration use, and nothing else: it starts fast and stays small."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from forewarn.emulator.client import EmulatorClient
from tools.sites.runner_process import Start, compiled

# Rules that use no extension of CEL, on a VM without a group, a sink, probes, metrics or hooks that are of a kind.
THREE_RULES = """
name: three
rule:
  match:
    - {id: brief, condition: event.EventType == "Freeze" && event.DurationInSeconds < 9, output: approve}
    - {id: mine, condition: affects_me && event.EventSource == "User", output: approve}
    - {id: rest, output: hold}
"""
IMPORTED = {
    "": "cli errors events hook_kinds imds policy system texts",
    "cli": "output service_options",
    "cli.output": "console",
    "cli.run": "artifact config group options service setup",
    "hook_kinds": "common",
    "hook_kinds.common": "declaration",
    "imds": "azure client endpoint errors identity limiter retry transport",
    "policy": (
        "approval artifact builder decision engine environment evaluation_error forms functions hook_body "
        "hook_program params pause program structure trace view"
    ),
    "policy.functions": "dynamic lists regex standard timevalues",
    "runner": (
        "approval_gate approvals assembly clocks controller decision_reporter drills event_record exchange groups "
        "hooks impact journal loop operator_pause options poll_schedule poller reconciler requester "
        "shadow state telemetry tracker"
    ),
    "runner.drills": "drill runner store",
    "runner.groups": "obligations",
    "runner.hooks": (
        "commands credentials dry_run_reporter executor needs needs_watch notifications open_records plan "
        "output preparation recovery recovery_requests run running_hooks scheduler"
    ),
    "runner.journal": "integrity lost_records null retention schema writer",
    "runner.state": "accepted_policy directories dry_runs inbox machine_lock",
    "system": (
        "account clock common console credentials early_signals files firmware locks log_destination paths posix "
        "processes programs service_manager services signals trust"
    ),
    "system.common": "lock_held service_status stop_request untrusted",
    "system.posix": (
        "account clock console credentials early_signals files firmware leftovers locks log_destination paths "
        "process_groups processes programs service_manager services signals trust"
    ),
    "runner.telemetry": "event_metrics health heartbeat log log_writer metrics readiness recorder system_log",
}


def imported(trace: str) -> dict[str, set[str]]:
    """Return the modules of forewarn that a trace of ``-X importtime`` names, by their packages."""
    found: dict[str, set[str]] = {}
    for module in re.findall(r"\| +forewarn\.([a-z0-9_.]+)$", trace, re.MULTILINE):
        package, _, name = module.rpartition(".")
        found.setdefault(package, set()).add(name)
    return found


def test_three_rules_import_no_optional_module(
    start: Start, emulator: EmulatorClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")
    runner = start("--artifact", str(compiled(tmp_path, THREE_RULES)), quick=False)
    emulator.schedule("Freeze", ["web_0"], duration_seconds=5)
    runner.wait_for("approved")
    code, trace = runner.stop()
    assert code == 0
    assert imported(trace) == {package: set(names.split()) for package, names in IMPORTED.items()}
    others = set(re.findall(r"\| +([a-z0-9_.]+)$", trace, re.MULTILINE))
    assert others.isdisjoint({"dataclasses", "inspect", "logging", "subprocess", "http.server", "urllib.request"})
