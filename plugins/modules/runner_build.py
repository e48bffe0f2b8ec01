#!/usr/bin/python
# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of the same name, which does all of it on the control node."""

from __future__ import annotations

DOCUMENTATION = r"""
module: runner_build
short_description: Build on the control node what a VM needs to run Forewarn
version_added: 0.1.0
description:
  - Builds C(forewarn.pyz), compiles policies, runs the policies' own tests, and checks the parameters of each host.
  - It works on the control node alone and touches no VM. The role P(forewarn.azure.runner#role) begins with it.
  - Hosts of one run that want the same share what was built, so a branch that moves meanwhile does not split a fleet.
  - What was compiled and proven is kept below Ansible's home directory, for the next run with the same files.
author:
  - Forewarn maintainers (@forewarn)
requirements:
  - on the control node, cel-python, jsonschema and PyYAML for the Python that runs Ansible; none of them for a policy
    that is compiled already
  - on the control node, git, where O(git) is used
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
  - ansible.builtin.action_common_attributes.flow
attributes:
  check_mode:
    support: full
    details: Does the same, as it changes nothing outside the run's own temporary directory.
  diff_mode:
    support: none
  platform:
    support: full
    platforms: posix
  action:
    support: full
  async:
    support: none
  bypass_host_loop:
    support: none
options:
  policies:
    description:
      - Policy files, or directories of them, on the control node. Relative ones are looked for beside the playbook,
        then where the run was started.
      - With O(git), paths in the repository; all of it if there are none.
      - Or one artifact that C(forewarn policy compile) wrote. Its tests cannot be run.
    type: list
    elements: str
    default: []
  git:
    description:
      - Address of a git repository with policies, as C(git fetch) takes it. It must not ask for a password.
    type: str
    default: ""
  ref:
    description:
      - Branch, tag or commit of O(git).
    type: str
    default: HEAD
  api_version:
    description:
      - Version of the service that policies are compiled for.
    type: str
    default: "2020-07-01"
  params:
    description:
      - Values of the parameters that the policies declare, for this host.
    type: dict
    default: {}
  gate:
    description:
      - What a failing test, or an objection of C(forewarn policy verify), is. With V(warn) it is a warning.
      - A mistake in a policy file is an error in any case.
    type: str
    choices: [error, warn]
    default: error
"""

EXAMPLES = r"""
- name: Check policies before anything is rolled out
  forewarn.azure.runner_build:
    policies: ["{{ inventory_dir }}/policies"]
    params:
      tolerable_freeze: 5
"""

RETURN = r"""
pyz:
  description: Path of the runner on the control node, for the rest of the run.
  returned: success
  type: str
pyz_sha256:
  description: Its SHA-256.
  returned: success
  type: str
artifact:
  description: Path of the compiled policies on the control node, for the rest of the run.
  returned: success
  type: str
digest:
  description: Digest of the compiled policies.
  returned: success
  type: str
  sample: sha256:4558453758da1f546c9735445ba0306af25d93689c97ef26c11ffb71b93e8b13
name:
  description: Name for the compiled policies on a VM.
  returned: success
  type: str
  sample: policy-4558453758da1f54.json
policy_names:
  description: Names of the policies.
  returned: success
  type: list
  elements: str
hooks:
  description: Which kinds of hooks the policies have.
  returned: success
  type: list
  elements: str
  sample: [http, run]
commit:
  description: The commit that was checked out. Null without O(git).
  returned: success
  type: str
version:
  description: Version of the runner.
  returned: success
  type: str
"""
