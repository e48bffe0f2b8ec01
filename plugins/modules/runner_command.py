#!/usr/bin/python
# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of the same name, which runs the module of the VM's system."""

from __future__ import annotations

DOCUMENTATION = r"""
module: runner_command
short_description: Run a command of the runner on a VM with Linux or Windows
version_added: 0.1.0
description:
  - Runs C(forewarn) with arguments, without a shell, by C(ansible.builtin.command) on Linux and by
    C(ansible.windows.win_command) on Windows. It returns what these return, and is skipped in check mode, as they are.
  - The role P(forewarn.azure.forewarn#role) and the playbooks of the collection use it.
author:
  - Forewarn maintainers (@forewarn)
requirements:
  - on the control node, the collection C(ansible.windows), for VMs with Windows
extends_documentation_fragment:
  - forewarn.azure.attributes
  - ansible.builtin.action_common_attributes
  - ansible.builtin.action_common_attributes.flow
attributes:
  check_mode:
    details: The command is skipped.
  platform:
    platforms: posix, windows
options:
  arguments:
    description:
      - The arguments.
      - On Windows without O(program), none of them may have a character that C(cmd.exe) reads, such as C(%) or C(&).
    type: list
    elements: str
    required: true
  program:
    description:
      - What runs the command, and its own arguments, such as an interpreter and the path of C(forewarn.pyz).
      - By default, the command that the role installs, C(/usr/local/bin/forewarn) or
        C(C:\Program Files\Forewarn\forewarn.cmd).
    type: list
    elements: str
    default: []
  stdin:
    description:
      - What the command reads from its standard input. With a secret, set C(no_log) for the task.
    type: str
"""

EXAMPLES = r"""
- name: Ask for the events of the last day
  forewarn.azure.runner_command:
    arguments: [history, --json, --since, 1d]
  register: answer
"""

RETURN = r"""
rc:
  description: The exit code.
  returned: always
  type: int
stdout:
  description: What the command wrote.
  returned: always
  type: str
stderr:
  description: What it wrote as errors.
  returned: always
  type: str
"""
