#!/usr/bin/python
# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of the same name, which does all of it on the control node."""

from __future__ import annotations

DOCUMENTATION = r"""
module: runner_build
short_description: Build what a VM needs to run Forewarn, on the control node
version_added: 0.1.0
description:
  - Builds C(forewarn.pyz), compiles policies, runs the policies' own tests, and checks the parameters and the group of
    each host.
  - It runs only on the control node and contacts no VM. The role P(forewarn.azure.forewarn#role) begins with it.
  - Hosts of one run with the same options share the results, so a branch that moves meanwhile does not split a fleet.
  - Compiled and proven policies are cached in Ansible's home directory, for the next run with the same files.
author:
  - Forewarn maintainers (@forewarn)
requirements:
  - on the control node, cel-python, jsonschema and PyYAML for the Python that runs Ansible; none of them for a compiled
    policy
  - on the control node, z3-solver to prove policies; without it, a warning says that they are not proven
  - on the control node, git, if O(git) is used
extends_documentation_fragment:
  - forewarn.azure.attributes
  - ansible.builtin.action_common_attributes
  - ansible.builtin.action_common_attributes.flow
attributes:
  check_mode:
    details: Does the same, because it changes nothing outside the run's temporary directory.
options:
  policies:
    description:
      - Policy files, or directories of them, on the control node. Relative paths are looked up beside the playbook,
        then in the current directory.
      - With O(git), paths in the repository; by default the whole repository.
      - Or one artifact that C(forewarn policy compile) wrote. Its tests cannot be run.
    type: list
    elements: str
    default: []
  git:
    description:
      - Address of a git repository with policies, as C(git fetch) accepts it. It must not prompt for a password.
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
  hooks:
    description:
      - Programs of hooks, and directories with them, that go to the VM with the policies. They are looked up as
        O(policies) are.
    type: list
    elements: str
    default: []
  reference:
    description:
      - A policy file, a directory of them, or an artifact, on the control node. The policies must approve nothing that
        this reference holds, as C(forewarn policy implies) proves it for all values of the parameters.
      - It is looked up as O(policies) are without O(git), so a repository of policies does not decide about it.
      - If empty, nothing is compared.
    type: str
    default: ""
  gate:
    description:
      - What happens if a test fails, C(forewarn policy verify) reports an error, or it is not proven that O(reference)
        approves whatever the policies approve. With V(warn) it is a warning.
      - A mistake in a policy file is always an error.
    type: str
    choices: [error, warn]
    default: error
  signing_key:
    description:
      - Key on the control node that signs the policies, as C(ssh-keygen -f) takes it. It is looked up as O(policies)
        are without O(git).
      - If empty, the policies are not signed.
    type: str
    default: ""
  signers:
    description:
      - Lines of who may sign policies for this host. It is only checked that the policies are signed if there are any.
    type: list
    elements: str
    default: []
  group:
    description:
      - Name of the group that this host belongs to. It goes together with O(group_store).
      - Like O(group_members) and O(group_store), it is only checked, as the runner would. So are limits in the
        policies, which need all three.
    type: str
    default: ""
  group_members:
    description:
      - Names of the VMs of the group.
    type: list
    elements: str
    default: []
  group_store:
    description:
      - Settings of the store in which the VMs of the group meet.
    type: dict
    default: {}
  dry_run:
    description:
      - Whether the runner is to approve nothing. Then limits need no store.
    type: bool
    default: false
  target:
    description:
      - The system of the VM, as C(forewarn policy check --target) has it. Hooks that cannot run there are an error.
      - The compiled policies are the same for each of them.
    type: str
    choices: [any, linux, windows]
    default: any
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
signature:
  description: Path of their signature on the control node, empty if they are not signed.
  returned: success
  type: str
serial:
  description: The serial of signed policies.
  returned: success
  type: int
digest:
  description: Digest of the compiled policies.
  returned: success
  type: str
  sample: sha256:4558453758da1f546c9735445ba0306af25d93689c97ef26c11ffb71b93e8b13
name:
  description: File name of the compiled policies on a VM, with their digest and, if there is one, their commit.
  returned: success
  type: str
  sample: policy-4558453758da1f54-8b1d2c3e4f50.json
policy_names:
  description: Names of the policies.
  returned: success
  type: list
  elements: str
hooks:
  description: Kinds of hooks that the policies have.
  returned: success
  type: list
  elements: str
  sample: [http, run]
hooks_need:
  description: What the hooks of the policies need from the sandbox, in the words of C(forewarn_hooks_need).
  returned: success
  type: list
  elements: str
  sample: [network]
hooks_write:
  description: Paths that the kinds of hooks of the policies write to.
  returned: success
  type: list
  elements: str
  sample: []
text:
  description: The policies as their authors wrote them.
  returned: success
  type: str
hook_files:
  description: The files of O(hooks).
  returned: success
  type: list
  elements: dict
  contains:
    path:
      description: Path below the directory of hooks on a VM.
      type: str
    source:
      description: Path on the control node.
      type: str
    mode:
      description: Its mode, in octal.
      type: str
    sha256:
      description: SHA-256 of its content.
      type: str
hooks_sha256:
  description: Digest of all files of O(hooks).
  returned: success
  type: str
source:
  description: Where the policies come from. It is kept in the artifact, and shown by C(forewarn status).
  returned: success
  type: dict
  contains:
    repository:
      description: Address of the repository, without user and password.
      type: str
    ref:
      description: Branch or tag.
      type: str
    commit:
      description: The commit.
      type: str
    paths:
      description: Paths of the policies, in the repository or on the control node.
      type: list
      elements: str
    modified:
      description: Whether the files differ from those of the commit.
      type: bool
commit:
  description: The commit. Null if the policies are in no repository.
  returned: success
  type: str
version:
  description: Version of the runner, with a digest of its sources as build metadata, such as C(1.2.3+0123456789ab).
  returned: success
  type: str
"""
