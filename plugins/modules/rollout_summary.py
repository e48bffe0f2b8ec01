#!/usr/bin/python
# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of the same name, which does all of it on the control node."""

from __future__ import annotations

DOCUMENTATION = r"""
module: rollout_summary
short_description: Show which policies a rollout has put in use, on how many hosts
version_added: 0.1.0
description:
  - Prints which policies are in use now, what they have changed in the words of C(forewarn policy diff), and on which
    hosts the rollout has failed, was cut short, or has not begun. Hosts with the same result are one entry.
  - Fails if the rollout is not done on a host, and if there is no host at all.
  - The playbook C(forewarn.azure.rollout) ends with it, and notes of each host what it reads.
author:
  - Forewarn maintainers (@forewarn)
seealso:
  - module: forewarn.azure.policy_change
extends_documentation_fragment:
  - forewarn.azure.attributes
  - ansible.builtin.action_common_attributes
  - ansible.builtin.action_common_attributes.flow
options:
  hosts:
    description:
      - All hosts of the rollout.
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
- name: Sum up the rollout
  forewarn.azure.rollout_summary:
    hosts: "{{ ansible_play_hosts_all }}"
  run_once: true
"""

RETURN = r"""
msg:
  description: On how many hosts it is done, and on which it is not, the first eight by name.
  returned: failed
  type: str
  sample: "60 hosts: 57 done, 2 failed, 1 not reached, 0 not begun. Not done: web_2, web_7, web_10"
"""
