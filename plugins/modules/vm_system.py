#!/usr/bin/python
# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of the same name, which does all of it on the control node."""

from __future__ import annotations

DOCUMENTATION = r"""
module: vm_system
short_description: Find out whether a VM has Linux or Windows, and check what Windows needs on the control node
version_added: 0.1.0
description:
  - Says which system the VM has, by the shell that Ansible talks to there. The VM is not asked.
  - For a VM with Windows, it fails with a sentence if the collection C(ansible.windows) is not installed, or if
    C(become) has a method that Windows does not have.
  - The role P(forewarn.azure.forewarn#role) begins with it.
author:
  - Forewarn maintainers (@forewarn)
extends_documentation_fragment:
  - forewarn.azure.attributes
  - ansible.builtin.action_common_attributes
  - ansible.builtin.action_common_attributes.flow
attributes:
  platform:
    platforms: posix, windows
options:
  windows_python:
    description:
      - The Python that is to run the service on a VM with Windows, which is checked as far as the control node can.
      - Either a dictionary with C(zip) and C(sha256), of a zip file of python.org's embeddable distribution, which is
        looked up beside the playbook, then in the current directory; or the path of a C(python.exe) on the VM.
      - If it is omitted, no Python is checked. On a VM with Linux it is not looked at.
    type: raw
"""

EXAMPLES = r"""
- name: Find out which system the VM has
  forewarn.azure.vm_system:
  register: vm
"""

RETURN = r"""
system:
  description: C(linux) or C(windows).
  returned: success
  type: str
  sample: windows
python:
  description: The Python for the service on Windows.
  returned: success
  type: dict
  contains:
    path:
      description: Path of an installed one on the VM.
      type: str
    zip:
      description: Path of a zip file on the control node.
      type: str
    directory:
      description: Name of the directory on the VM that gets its content.
      type: str
    version:
      description: Its version, such as C(3.13).
      type: str
    architecture:
      description: For which processors it is, such as C(AMD64).
      type: str
"""
