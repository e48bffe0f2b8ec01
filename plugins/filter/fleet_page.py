# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter ``fleet_page``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.fleet.page import page

DOCUMENTATION = r"""
name: fleet_page
short_description: Show the state of a fleet's runners as one HTML page
version_added: 0.1.0
description:
  - The page is self-contained, without scripts or external requests. The playbook C(forewarn.azure.report) uses it.
author:
  - Forewarn maintainers (@forewarn)
positional: made_at, since
options:
  _input:
    description:
      - Registered results of M(forewarn.azure.runner_report) by host, with the option
        O(forewarn.azure.runner_report#module:since).
    type: dict
    required: true
  made_at:
    description: When these results were read.
    type: str
    required: true
  since:
    description: How far back the histories go.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Write the page
  ansible.builtin.copy:
    content: "{{ reports | forewarn.azure.fleet_page(now(utc=true, fmt='%Y-%m-%dT%H:%M:%SZ'), '7d') }}"
    dest: fleet.html
    mode: "0644"
"""

RETURN = r"""
_value:
  description: The page.
  type: str
"""


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"fleet_page": page}
