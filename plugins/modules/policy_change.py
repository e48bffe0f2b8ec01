#!/usr/bin/python
# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of the same name, which reads what is in use on a VM without a module."""

from __future__ import annotations

DOCUMENTATION = r"""
module: policy_change
short_description: Compare the policies that a rollout would bring with those in use on a VM
version_added: 0.1.0
description:
  - Reads which policies the VM has in use, and finds out what would change for events, as C(forewarn policy diff) does.
  - Policies are compared once for all VMs that have the same ones in use, and the results are kept for later runs.
  - It says with RV(refusal) if something has to be said by name first. The role P(forewarn.azure.forewarn#role) fails
    then. It does not fail by itself, and a VM whose policies cannot be read has a warning.
author:
  - Forewarn maintainers (@forewarn)
requirements:
  - on the control node, z3-solver to compare policies; without it, a warning says that they are not compared
extends_documentation_fragment:
  - forewarn.azure.attributes
  - ansible.builtin.action_common_attributes
  - ansible.builtin.action_common_attributes.flow
options:
  artifact:
    description:
      - Path of the compiled policies on the control node, as M(forewarn.azure.runner_build) returns it.
      - If it is empty, the policies are compared that a rollout would go back to, which is never refused.
    type: str
    default: ""
  config:
    description:
      - The configuration of the runner that the rollout would write.
    type: dict
    default: {}
  config_file:
    description:
      - Path of the configuration in use, on the VM.
    type: str
    default: /etc/forewarn/config.json
  own_policies:
    description:
      - Whether the policies are those of the role because none were named. These do not replace others.
    type: bool
    default: false
  live_unsaid:
    description:
      - Whether the runner is to be live because nothing else was said. It does not replace a dry run then.
    type: bool
    default: false
  accept_less:
    description:
      - Whether the policies, and the settings of the runner, may do less than what is in use.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Compare with what is in use
  forewarn.azure.policy_change:
    artifact: "{{ built.artifact }}"
    config: {artifact: "{{ built.name }}", params: {}}
  register: change
"""

RETURN = r"""
asked:
  description: Whether the VM could be asked. It does not count as unreachable where it could not.
  returned: always
  type: bool
before:
  description:
    - The policies in use, their digest and where they came from, as C(forewarn status --json) names them. Null if there
      are none, or if they cannot be read.
  returned: always
  type: dict
  sample: {"policies": ["web"], "policy": "sha256:4558…", "source": {"ref": "v14", "commit": "8b1d2c3e4f50"}}
after:
  description: The same of the policies that the rollout would bring.
  returned: always
  type: dict
changes:
  description: What changes for events, one line each, in the words of C(forewarn policy diff).
  returned: always
  type: list
  elements: str
params:
  description: Names of the parameters that have another value, or none any longer.
  returned: always
  type: list
  elements: str
dropped:
  description: Variables of settings that are in use, and that the rollout does not set.
  returned: always
  type: list
  elements: str
doubt:
  description: Why there may be other changes. Empty if there are none.
  returned: always
  type: str
refusal:
  description: What has to be said by name before this is rolled out. Empty if there is nothing.
  returned: always
  type: str
host:
  description: Name of the VM in the inventory.
  returned: always
  type: str
"""
