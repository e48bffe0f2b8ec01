# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Describes the hooks of a match: what they do, how often, and when."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from ..policy.decision import HOOK_TIMEOUT_SECONDS, PHASES


def hook_text(hook: Mapping[str, Any]) -> str:
    """Describe a hook: its action, timeout and retries. Hooks that do something else have another text."""
    what = (
        shlex.join(hook["run"])
        if "run" in hook
        else f"{hook['action']} {hook['unit']}"
        if "unit" in hook
        else hook["http"]
    )
    retry = retry_text(hook)
    mark = "unit, " if "unit" in hook else ""  # a program may be called start
    what += "".join(f", bearer {kind} {name}" for kind, name in hook.get("bearer", {}).items())
    return f"{what} ({mark}{hook.get('timeout_seconds', HOOK_TIMEOUT_SECONDS):.15g} s{f', {retry}' if retry else ''})"


def hook_texts(match: Mapping[str, Any]) -> dict[str, list[str]]:
    """Describe the hooks of a match by phase, and after them when they run; phases without hooks are left out."""
    found = {phase: [hook_text(hook) for hook in match.get(phase, ())] for phase in PHASES}
    if found["prepare"] and "prepare_within_seconds" in match:
        found["prepare"].append(f"from {match['prepare_within_seconds']:.15g} s before NotBefore")
    if found["recover"] and match.get("recover_when") == "started":
        found["recover"].append("also where the event started without preparation")
    return {phase: texts for phase, texts in found.items() if texts}


def retry_text(hook: Mapping[str, Any]) -> str:
    """Describe a hook's retries; empty if it has none."""
    retry = hook.get("retry", {})
    if retry.get("attempts") == 1:
        return "once"
    parts = [f"at most {retry['attempts']} times"] if "attempts" in retry else []
    for key, words in (("delay_seconds", "again after"), ("max_delay_seconds", "pauses of at most")):
        if key in retry:
            parts.append(f"{words} {retry[key]:.15g} s")
    return ", ".join(parts)
