# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the outcome of a class of events is what the engine decides."""

from __future__ import annotations

from typing import Any

from forewarn.analysis.symbolic.decide import JointDecision
from forewarn.policy.decision import Decision


def agrees(outcome: JointDecision, decision: Decision) -> bool:
    """Return whether a class's outcome is the engine's decision."""
    verdicts: Any = tuple((one.policy, one.output, one.rule) for one in decision.verdicts)
    return (
        outcome.rules == verdicts
        and (outcome.output, outcome.policy, outcome.rule) == (decision.output, decision.policy, decision.rule)
        and (outcome.approver, outcome.group) == (decision.approver, decision.group)
        and (outcome.prepare, outcome.recover, outcome.notify) == (decision.prepare, decision.recover, decision.notify)
    )
