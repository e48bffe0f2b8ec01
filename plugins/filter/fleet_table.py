# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter ``fleet_table``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.fleet.status import table

DOCUMENTATION = r"""
name: fleet_table
short_description: Show the state of a fleet's runners as lines of a table
version_added: 0.1.0
description:
  - Hosts with trouble come first. The playbook C(forewarn.azure.status) uses it.
author:
  - Forewarn maintainers (@forewarn)
options:
  _input:
    description: Registered results of C(forewarn status --json), by host.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show the fleet
  ansible.builtin.debug:
    msg: "{{ {'web_0': status_of_web_0} | forewarn.azure.fleet_table }}"
"""

RETURN = r"""
_value:
  description: The lines.
  type: list
  elements: str
"""


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"fleet_table": table}
