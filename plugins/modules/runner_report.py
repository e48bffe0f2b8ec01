#!/usr/bin/python
# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of the same name, which runs commands on the VM without a module."""

from __future__ import annotations

DOCUMENTATION = r"""
module: runner_report
short_description: Ask the runner on a VM for its status and its history
version_added: 0.1.0
description:
  - Runs C(forewarn status --json) on the VM, and with O(since) also C(forewarn history --json). No module is sent to
    the VM for that.
  - A host without a report fails with one sentence. This includes a host that cannot be reached, so that every host of
    a fleet has a result, and hosts with the same cause have the same sentence.
  - The playbooks C(forewarn.azure.status) and C(forewarn.azure.report) use it. It needs the rights to read the runner's
    state, usually C(become).
author:
  - Forewarn maintainers (@forewarn)
seealso:
  - module: forewarn.azure.fleet_summary
extends_documentation_fragment:
  - forewarn.azure.attributes
  - ansible.builtin.action_common_attributes
  - ansible.builtin.action_common_attributes.flow
options:
  since:
    description:
      - How far back the history goes, as C(forewarn history --since) takes it, for example V(7d). Without it, only the
        status is read.
    type: str
"""

EXAMPLES = r"""
- name: Ask for its status
  forewarn.azure.runner_report:
  register: report
  ignore_errors: true
"""

RETURN = r"""
stdout:
  description: What C(forewarn status --json) wrote, one JSON object.
  returned: success
  type: str
history:
  description: What C(forewarn history --json) wrote. Empty if it was not asked for or could not be read.
  returned: success
  type: str
msg:
  description: Why there is no report.
  returned: failed
  type: str
  sample: "not reached: No route to host (ssh, port 22)"
"""
