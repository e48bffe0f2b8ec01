#!/usr/bin/python
# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of the same name, which does all of it on the control node."""

from __future__ import annotations

DOCUMENTATION = r"""
module: fleet_summary
short_description: Show the pending events of a fleet, and the hosts with trouble
version_added: 0.1.0
description:
  - Prints one table for all hosts. Each pending event has the VMs that it affects and their state, then come the hosts
    with trouble, and which policies are in use.
  - Fails if a host has trouble or has not answered, and if there is no host at all.
  - The playbooks C(forewarn.azure.status) and C(forewarn.azure.report) use it.
author:
  - Forewarn maintainers (@forewarn)
seealso:
  - module: forewarn.azure.runner_report
extends_documentation_fragment:
  - forewarn.azure.attributes
  - ansible.builtin.action_common_attributes
  - ansible.builtin.action_common_attributes.flow
attributes:
  bypass_host_loop:
    support: full
options:
  reports:
    description:
      - Registered results of M(forewarn.azure.runner_report), by host.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show the fleet
  forewarn.azure.fleet_summary:
    reports: "{{ dict(ansible_play_hosts_all | zip(ansible_play_hosts_all | map('extract', hostvars, 'report'))) }}"
"""

RETURN = r"""
msg:
  description: Which hosts have trouble, the first five by name.
  returned: failed
  type: str
  sample: "2 of 60 hosts with trouble: web_2, web_10"
"""
