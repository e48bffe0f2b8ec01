#!/usr/bin/python
# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Ansible module: what runs on the VM. It reads and approves; deciding is the control node's part."""

from __future__ import annotations

DOCUMENTATION = r"""
module: scheduled_events
short_description: Read, decide and approve Azure Scheduled Events
version_added: 0.1.0
description:
  - Reads the Scheduled Events document from inside an Azure VM, and shows which freezes, reboots, redeployments,
    evictions or deletions are ahead, for which VMs and when.
  - With O(policies) the control node decides on each event. The VM only reads, and with O(apply) approves.
  - With O(approve) events are approved by their id, whatever the policies say.
  - The VM needs only Python 3.8 or newer.
author:
  - Forewarn maintainers (@forewarn)
extends_documentation_fragment:
  - forewarn.azure.attributes
  - ansible.builtin.action_common_attributes
  - ansible.builtin.action_common_attributes.flow
attributes:
  check_mode:
    details: Reads as usual and reports what would be approved. No approval is sent.
  diff_mode:
    support: full
    details: Shows which events were approved or, in check mode, would be.
  action:
    details: Policies are compiled and evaluated on the control node.
  async:
    support: partial
    details: Supported without O(policies), and not on Windows. Otherwise the task fails with an explanation.
options:
  endpoint:
    description:
      - Address of the service, without C(/metadata).
      - V(auto) reads the DHCP leases of the VM (option 245), which VMs outside a virtual network need, and uses the
        usual address if they name no other.
      - By default the environment variable E(FOREWARN_ENDPOINT) of the VM is used, or else
        V(http://169.254.169.254). In the latter case the task warns if the VM does not show the chassis asset tag of
        Azure, unless the environment variable E(FOREWARN_PLATFORM) of the VM is V(azure).
    type: str
  api_version:
    description:
      - Version of the service to request.
      - By default the version that the artifact in O(policies) was compiled for, or else V(2020-07-01).
    type: str
    choices: ["2017-03-01", "2017-08-01", "2017-11-01", "2019-01-01", "2019-04-01", "2019-08-01", "2020-07-01"]
  vm_name:
    description:
      - Resource name of this VM, as the events list it. Needed only if the instance metadata does not have it.
      - On scale sets it differs from the host name.
    type: str
  timeout:
    description:
      - How many seconds to wait for the first answer. The very first request enables the service for the deployment,
        which can take up to two minutes.
    type: int
    default: 120
  patience:
    description:
      - For how many seconds in total to retry after a transient fault, such as 404, 410, 429, 500 or a timeout. The
        service can answer with these for minutes while its host is updated.
      - With V(0) there is only one attempt.
    type: int
    default: 120
  approve:
    description:
      - Ids of events to approve, in upper or lower case. An approval starts the event for all of its resources, not
        only for this VM.
      - An id that is not listed is an error, and then nothing is approved. An event that has started is skipped.
      - While approvals are paused on the VM (RV(pause)), nothing is approved, and the task fails.
      - This is the operator's own decision. No policy is evaluated, and an event with RV(events[].problems) is approved
        too, with a warning.
    type: list
    elements: str
    default: []
  document_incarnation:
    description:
      - Approve only if the document still has this RV(document_incarnation). Otherwise nothing is approved, the task
        fails, and RV(superseded) is true.
      - A document without an incarnation never matches. Use O(events_digest) for such documents.
    type: str
  events_digest:
    description:
      - Approve only if the events still have this RV(events_digest), whatever the incarnation. Otherwise nothing is
        approved, the task fails, and RV(superseded) is true.
    type: str
  policies:
    description:
      - Policy files, or directories of them, on the control node. Relative paths are looked up as for other files,
        in a directory C(policies) first, then beside the playbook or role.
      - Alternatively one artifact, a C(*.json) file made by C(forewarn policy compile), which needs no library on the
        control node.
    type: list
    elements: path
    default: []
  params:
    description:
      - Values for the parameters that the policies declare. Durations and timestamps are strings, such as V(5m).
    type: dict
    default: {}
  apply:
    description:
      - Let each VM approve what O(policies) decided to approve, if it is that VM's turn, as
        RV(decisions[].eligibility) shows.
      - An event for which a policy has C(prepare) hooks is never approved this way, because only the runner on the VM
        runs hooks.
    type: bool
    default: false
notes:
  - YAML policies need the Python packages C(cel-python) and C(jsonschema) on the control node.
  - The task reports the findings of C(forewarn policy verify) in YAML policies as warnings, except notes.
  - Call it by its full name, or see the collection's C(docs/adhoc.md) for the settings that
    C(ansible -m scheduled_events) needs.
  - RV(events[].notice_seconds) and the policies' C(now) and C(notice) are based on RV(read_at), the VM's clock. A wrong
    clock on the control node does not matter. Nothing is kept between calls, so C(age) is always C(0s).
  - Requests never use the proxies of the environment.
  - The first request of a deployment enables the service. After a day without requests it is disabled again.
"""

EXAMPLES = r"""
- name: See what is ahead
  forewarn.azure.scheduled_events:
  register: ahead

- name: Approve one event by its id
  forewarn.azure.scheduled_events:
    approve:
      - C7061BAC-AFDC-4513-B24B-AA5F13A16123

- name: Let the policies decide, and only show their decisions
  forewarn.azure.scheduled_events:
    policies:
      - web-tier.yml
    params:
      tolerable_freeze: 5
  register: ahead

- name: Let the policies decide, and approve accordingly
  forewarn.azure.scheduled_events:
    policies:
      - policy.json
    apply: true

# Ad hoc, for a whole fleet:
#   ansible azure -m forewarn.azure.scheduled_events -o
#   ansible azure -m forewarn.azure.scheduled_events -a 'policies=~/policies/web-tier.yml'
"""

RETURN = r"""
ahead:
  description:
    - A summary of the events ahead of this VM, for an overview of many VMs. Ansible prints it first.
    - For each event its type, the time left and whether it affects this VM (V(here), V(elsewhere), or V(here?) if its
      name is not known), with O(policies) also the outcome.
    - V(unknown), or V(and what cannot be read) at its end, if RV(problems) are not empty.
  returned: when the document was read
  type: str
  sample: "Freeze in 14 min, here: approved"
msg:
  description: One line about what was found and done.
  returned: always
  type: str
  sample: "1 event: Freeze Scheduled C7061BAC-AFDC-4513-B24B-AA5F13A16123"
api_version:
  description: The version of the service that was requested.
  returned: always
  type: str
  sample: "2020-07-01"
read_at:
  description: When the document was read, by the clock of the VM.
  returned: when the document was read
  type: str
  sample: "2022-04-11T22:12:01.551700Z"
document_incarnation:
  description:
    - A number that changes with the document; compare it only for equality. A string in old versions of the service.
    - Null if the service answered with an empty body, which means that nothing is scheduled.
  returned: when the document was read
  type: raw
  sample: 2
events_digest:
  description: A string that changes with the content of any event. The time left does not change it.
  returned: when the document was read
  type: str
  sample: 4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945
events:
  description:
    - What is scheduled, in the order of the service. A value is null if the service did not send it, or sent it in
      an unreadable form.
  returned: when the document was read
  type: list
  elements: dict
  contains:
    event_id:
      description: Id of the event, spelled as the service spells it.
      type: str
      sample: C7061BAC-AFDC-4513-B24B-AA5F13A16123
    event_type:
      description: V(Freeze), V(Reboot), V(Redeploy), V(Preempt), V(Terminate), or a newer type.
      type: str
      sample: Freeze
    event_status:
      description: V(Scheduled) or V(Started).
      type: str
      sample: Scheduled
    resource_type:
      description: V(VirtualMachine).
      type: str
      sample: VirtualMachine
    resources:
      description: Resource names of all affected VMs. The first one leads.
      type: list
      elements: str
      sample: [WestNO_0, WestNO_1]
    not_before:
      description: The earliest start, in ISO 8601 and UTC. Null once started.
      type: str
      sample: "2022-04-11T22:26:58Z"
    notice_seconds:
      description: Seconds from RV(read_at) to RV(events[].not_before), 0 once started, null if unknown.
      type: float
      sample: 896.4
    duration_in_seconds:
      description: Expected interruption in seconds, -1 if unknown.
      type: int
      sample: 5
    event_source:
      description: V(Platform) or V(User).
      type: str
      sample: Platform
    description:
      description: The service's description, free text.
      type: str
      sample: Virtual machine is being paused because of a memory-preserving Live Migration operation.
    affects_me:
      description: Whether this VM is among the resources. Null if the name of this VM is not known.
      type: bool
      sample: true
    leader:
      description: Whether this VM is the first of the resources. Null if the name of this VM is not known.
      type: bool
      sample: true
    problems:
      description: Reasons why no policy can approve this event. Usually empty.
      type: list
      elements: str
      sample: []
vm:
  description: This VM, from its instance metadata. Unknown values are null.
  returned: when the document was read
  type: dict
  contains:
    name:
      description: The resource name.
      type: str
      sample: WestNO_0
    location:
      description: The region.
      type: str
      sample: norwayeast
    zone:
      description: The availability zone.
      type: str
      sample: "1"
    size:
      description: The VM size.
      type: str
      sample: Standard_D2s_v5
    scale_set:
      description: The scale set it belongs to.
      type: str
      sample: web
    fault_domain:
      description: The platform fault domain.
      type: str
      sample: "0"
    tags:
      description: The resource's tags.
      type: dict
      sample: {tier: web}
problems:
  description: What could not be read in the document. Usually empty.
  returned: when the document was read
  type: list
  elements: str
  sample: []
vm_problems:
  description: Why this VM's identity is not known, or only in part. Usually empty.
  returned: when the document was read
  type: list
  elements: str
  sample: []
pause:
  description:
    - Why nothing may be approved on this VM now, because C(forewarn pause) was run there; or why this user cannot tell.
      V(none) if nothing is paused.
    - It is not known of a VM with Windows, where no runner works.
  returned: when the document was read
  type: str
  sample: "approvals are paused until 2026-11-27 14:00:00 UTC, by root (sudo: alice): release 4.2"
approved:
  description: Ids of the events for which an approval was sent or, in check mode, would have been.
  returned: when the document was read
  type: list
  elements: str
  sample: [C7061BAC-AFDC-4513-B24B-AA5F13A16123]
superseded:
  description: Whether nothing was approved because the document no longer matches O(document_incarnation), or the
    events no longer match O(events_digest).
  returned: when true
  type: bool
  sample: true
fault:
  description: The fault of the service, for programs.
  returned: when the service or the network failed
  type: dict
  contains:
    kind:
      description: V(timeout), V(refused), V(connection), V(garbage), V(http), V(redirect) or V(api-version).
      type: str
      sample: http
    status:
      description: The HTTP status, or null.
      type: int
      sample: 403
    passing:
      description: Whether the fault is transient.
      type: bool
      sample: false
policy_paths:
  description: Paths on the control node of the policy files, directories or artifact that decided.
  returned: with O(policies), unless they have mistakes
  type: list
  elements: str
  sample: [/srv/policies/web-tier.yml]
findings:
  description:
    - Mistakes in the policy files, each with C(path), C(line), C(column), C(code), C(message) and C(suggestion).
  returned: when there are any
  type: list
  elements: dict
  sample:
    - path: /srv/policies/web-tier.yml
      line: 14
      column: 18
      code: unknown-field
      message: "'event' has no field 'EventTyp'"
      suggestion: "did you mean 'EventType'?"
decisions:
  description: What the policies decided, one entry for each of RV(events), in their order.
  returned: with O(policies), when the document was read
  type: list
  elements: dict
  contains:
    event_id:
      description: Id of the event.
      type: str
      sample: C7061BAC-AFDC-4513-B24B-AA5F13A16123
    event_type:
      description: Its type.
      type: str
      sample: Freeze
    output:
      description: V(approve) or V(hold).
      type: str
      sample: approve
    policy:
      description: The policy that decided. Null if none did, which means V(hold).
      type: str
      sample: web-tier
    rule:
      description: The rule that decided.
      type: str
      sample: brief-freeze
    reason:
      description: Why, in words.
      type: str
      sample: a freeze of 5 s goes unnoticed here
    evaluated:
      description: The parts of the rule's condition, as written, with their values for this event.
      type: dict
      sample: {event.DurationInSeconds: "5", params.tolerable_freeze: "9"}
    approver:
      description: Which VMs can send the approval, V(leader), V(any) or V(witness).
      type: str
      sample: leader
    eligibility:
      description: Whether this VM sends the approval.
      type: dict
      contains:
        code:
          description:
            - V(approve) if it does. Otherwise V(refused-by-policy), V(not-ours), V(not-the-leader), V(no-time-left),
              V(started), V(group-not-ready), V(no-slot), V(needs-runner) or V(paused).
          type: str
          sample: approve
        reason:
          description: Why, in words.
          type: str
          sample: a freeze of 5 s goes unnoticed here
    verdicts:
      description: Each policy's decision, with C(policy), C(output), C(rule), C(reason), C(where) and C(error).
      type: list
      elements: dict
      sample:
        - policy: web-tier
          output: approve
          rule: brief-freeze
          reason: a freeze of 5 s goes unnoticed here
          where: web-tier.yml:23:5
          error: null
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.adhoc.task import (
    ARGUMENTS,
    POLICY_ARGUMENTS,
    perform,
)


def main() -> None:
    """Check the options that concern the VM, and run."""
    module = AnsibleModule(argument_spec={**ARGUMENTS, **POLICY_ARGUMENTS}, supports_check_mode=True)
    if any(module.params[name] for name in POLICY_ARGUMENTS):  # these are for plugins/action/scheduled_events.py
        module.fail_json(
            msg="Nothing was decided: policies, params and apply are for the control node, whose part of this module, "
            "the action plugin, was not found. Call it by its full name, forewarn.azure.scheduled_events, with the "
            "collection installed or in ANSIBLE_COLLECTIONS_PATH; ANSIBLE_LIBRARY alone finds no action plugin."
        )
    result = perform(module.params, module.check_mode, module.warn)
    if result.pop("failed", False):
        module.fail_json(**result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
