#!/usr/bin/python
# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of the same name, which sends a script of its own to the VM."""

from __future__ import annotations

DOCUMENTATION = r"""
module: runner_install
short_description: Bring files to a VM and run their service, sending only what differs
version_added: 0.1.0
description:
  - Made for the role P(forewarn.azure.runner#role), which sends next to nothing to a VM with it where nothing changes.
  - All files are written beside their places and checked before the first is put in place, each by one rename. They
    belong to root.
  - Then the service is enabled, and started, restarted or reloaded, whichever is needed.
author:
  - Forewarn maintainers (@forewarn)
requirements:
  - on the VM, systemd, Python 3.9 or newer, and the rights of root
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
  - ansible.builtin.action_common_attributes.flow
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
    details: Shows the text of files with O(files[].content), and the digests of others.
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
  python:
    description: The Python on the VM that does the work.
    type: path
    default: /usr/bin/python3
  directories:
    description: Directories that are to exist.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: Its path.
        type: path
        required: true
      mode:
        description: Its mode, in octal.
        type: str
        required: true
  files:
    description: Files that are to exist, in the order in which they are put in place.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: Its path on the VM.
        type: path
        required: true
      mode:
        description: Its mode, in octal.
        type: str
        required: true
      content:
        description: Its text. Either this or O(files[].source).
        type: str
      source:
        description: Path of a file on the control node.
        type: path
      archive:
        description: Whether it is a ZIP archive, which differs where the names or contents of its files do, not where
          only their compression does.
        type: bool
        default: false
      backup:
        description: Whether the file that it replaces is kept beside it, under a name with the time.
        type: bool
        default: false
      unit:
        description: Whether C(systemd-analyze verify) has to accept it first.
        type: bool
        default: false
  service:
    description: Service that is to be enabled and to run.
    type: dict
    suboptions:
      name:
        description: Name of the unit.
        type: str
        required: true
      restart_for:
        description: Paths of O(files) whose change takes a restart.
        type: list
        elements: str
        default: []
      reload_for:
        description: Paths of O(files) whose change takes a reload.
        type: list
        elements: str
        default: []
  absent:
    description: Instead of all that, stop and disable the service, and remove these files and directories.
    type: list
    elements: str
    default: []
  restore:
    description: Instead of all that, put these RV(backups) of an earlier task back, and restart the service.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: Path of the file.
        type: path
        required: true
      backup:
        description: Path of its backup.
        type: path
        required: true
      mode:
        description: Its mode, as a number.
        type: int
        required: true
  keep:
    description: Instead of all that, remove the oldest files of each pattern.
    type: list
    elements: dict
    default: []
    suboptions:
      pattern:
        description: Which files.
        type: str
        required: true
      number:
        description: How many of them stay.
        type: int
        required: true
      but:
        description: Files that stay in any case, and are not counted.
        type: list
        elements: str
        default: []
"""

EXAMPLES = r"""
- name: Configure the runner
  forewarn.azure.runner_install:
    files:
      - path: /etc/forewarn/config.json
        mode: "0640"
        content: "{{ my_config | to_nice_json }}"
        backup: true
    service:
      name: forewarn.service
      reload_for: [/etc/forewarn/config.json]
  become: true
"""

RETURN = r"""
touched:
  description: Directories and files that were not as they are to be.
  returned: with O(files)
  type: list
  elements: str
backups:
  description: What was replaced and kept, also if the task has failed.
  returned: with O(files)
  type: list
  elements: dict
  contains:
    path:
      description: Path of the file.
      type: str
    backup:
      description: Path of its backup.
      type: str
    mode:
      description: Its mode, as a number.
      type: int
service_was:
  description: What was done to the service.
  returned: unless in check mode
  type: str
  sample: restarted
removed:
  description: Files that were removed.
  returned: with O(keep) or O(absent)
  type: list
  elements: str
"""
