# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests on decisions. The YAML file beside documents them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError


def approved(decision: Any) -> bool:
    """Return whether policies decided to approve an event. Anything but a decision is an error, not False."""
    output = decision.get("output") if isinstance(decision, dict) else None
    if output not in ("approve", "hold"):
        raise AnsibleFilterError(
            "forewarn.azure.approved is for one decision, of forewarn.azure.decide or scheduled_events."
        )
    return bool(output == "approve")


class TestModule:
    def tests(self) -> dict[str, Callable[..., bool]]:
        return {"approved": approved}
