#!/usr/bin/python
# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of the same name, which does all of it on the control node."""

from __future__ import annotations

DOCUMENTATION = r"""
module: known_variables
short_description: Refuse variables that this collection does not know
version_added: 0.1.0
description:
  - Fails if there is a variable whose name begins with C(forewarn_) and that neither the role nor a playbook of this
    collection has, or whose name is one letter off such a variable. It says which one was meant.
  - It looks at names only, on the control node. The role P(forewarn.azure.forewarn#role) and all playbooks of the
    collection begin with it.
author:
  - Forewarn maintainers (@forewarn)
extends_documentation_fragment:
  - forewarn.azure.attributes
  - ansible.builtin.action_common_attributes
  - ansible.builtin.action_common_attributes.flow
options:
  hosts:
    description:
      - Hosts whose variables are looked at too. By default, only those of the host on which the task runs.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Refuse variables that are misspelled
  forewarn.azure.known_variables:
    hosts: "{{ ansible_play_hosts_all }}"
  run_once: true
"""

RETURN = r"""
msg:
  description: Each variable that is not known, with the one that was meant.
  returned: failed
  type: str
  sample: |-
    forewarn_polices is no variable of forewarn.azure. Did you mean forewarn_policies?
    Nothing was changed.
"""
