#!/usr/bin/python
# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of the same name, which sends a script of its own to the VM."""

from __future__ import annotations

DOCUMENTATION = r"""
module: runner_install
short_description: Install files on a VM and run their service, sending only what differs
version_added: 0.1.0
description:
  - Made for the role P(forewarn.azure.forewarn#role), which sends very little to a VM if nothing changes.
  - All files are written to temporary names and checked, then each is put in place by one rename. They belong to root.
  - Then the service is enabled, and started, restarted or reloaded as needed.
author:
  - Forewarn maintainers (@forewarn)
requirements:
  - on the VM, systemd, Python 3.9 or newer, and root privileges
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
  - ansible.builtin.action_common_attributes.flow
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
    details: Shows the content of files with O(files[].content), and the digests of others.
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
    description: The Python to use on the VM.
    type: path
    default: /usr/bin/python3
  directories:
    description: Directories that must exist.
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
    description: Files that must exist, in the order in which they are put in place.
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
        description: Its content. Either this or O(files[].source).
        type: str
      source:
        description: Path of a file on the control node.
        type: path
      archive:
        description: Whether it is a ZIP archive. Archives are compared by the names and contents of their files, not by
          their compression.
        type: bool
        default: false
      backup:
        description: Whether to keep the replaced file beside it, under a name with the time.
        type: bool
        default: false
      unit:
        description: Whether to check it with C(systemd-analyze verify) first.
        type: bool
        default: false
  service:
    description: Service to enable and run.
    type: dict
    suboptions:
      name:
        description: Name of the unit.
        type: str
        required: true
      restart_for:
        description: Paths of O(files) whose change requires a restart.
        type: list
        elements: str
        default: []
      reload_for:
        description: Paths of O(files) whose change requires a reload.
        type: list
        elements: str
        default: []
  absent:
    description: Instead of the above, stop and disable the service, and remove these files and directories.
    type: list
    elements: str
    default: []
  restore:
    description: Instead of the above, restore these RV(backups) of an earlier task, and restart the service.
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
    description: Instead of the above, remove the oldest files that match each pattern.
    type: list
    elements: dict
    default: []
    suboptions:
      pattern:
        description: Pattern of the files.
        type: str
        required: true
      number:
        description: How many of them to keep.
        type: int
        required: true
      but:
        description: Files that are always kept, and not counted.
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
  description: Directories and files that were changed or, in check mode, would be.
  returned: with O(files)
  type: list
  elements: str
backups:
  description: Files that were replaced, with their backups, even if the task failed.
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
