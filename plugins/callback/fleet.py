# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shows what many hosts report about events as one table, instead of one document for each."""

from __future__ import annotations

DOCUMENTATION = r"""
name: fleet
type: stdout
short_description: Show the scheduled events of all hosts as one table
version_added: 0.1.0
description:
  - At the end of a run with M(forewarn.azure.scheduled_events), it prints each event once, with the VMs that it affects
    and what is decided about it, and then the hosts with trouble.
  - It prints neither results nor a recap. Of other tasks it shows what fails, one sentence each, and in an ad-hoc run
    one line for each host. Warnings that many hosts have in common are printed once.
  - C(ANSIBLE_STDOUT_CALLBACK=forewarn.azure.fleet) selects it. The command C(ansible) also needs
    C(ANSIBLE_LOAD_CALLBACK_PLUGINS=1).
author:
  - Forewarn maintainers (@forewarn)
requirements:
  - set as stdout in configuration
"""

import re
from typing import Any

from ansible.plugins.callback import CallbackBase
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.fleet.adhoc import adhoc_state
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.fleet.host_answers import no_connection, one_line
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.fleet.status import HostState, names, natural
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.fleet.table import (
    TROUBLE,
    WARNING,
    TableLine,
    table,
)
from ansible_collections.forewarn.azure.plugins.plugin_utils._fleet import show

_MODULE = "scheduled_events"
_ASKED_BY_US = "runner_report"  # of which the playbooks show all failures in their table
_MOST_NAMES = 5


class CallbackModule(CallbackBase):
    """Collects the results of hosts, the last of each, and shows them at the end."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "forewarn.azure.fleet"

    def __init__(self) -> None:
        super().__init__()
        self._states: dict[str, HostState] = {}
        self._warned: dict[str, list[str]] = {}
        self._adhoc = False

    def v2_playbook_on_start(self, playbook: Any) -> None:
        """Find out whether this is an ad-hoc run."""
        self._adhoc = playbook._file_name == "__adhoc_playbook__"

    def v2_runner_on_ok(self, result: Any) -> None:
        """Keep the events of a host."""
        if not self._add_result(result) and self._adhoc:
            word = "CHANGED" if result._result.get("changed") else "SUCCESS"
            self._say(result, word, one_line(result._result.get("msg") or ""))

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        """Keep why a host has failed, or say it."""
        if not self._add_result(result) and not (ignore_errors and _action(result) == _ASKED_BY_US):
            why = one_line(result._result.get("msg") or "no reason given")
            self._say(result, "FAILED, ignored" if ignore_errors else "FAILED", why, TROUBLE)

    def v2_runner_on_unreachable(self, result: Any) -> None:
        """Keep why a host was not reached, or say it."""
        if not self._add_result(result):
            self._say(result, "UNREACHABLE", no_connection(str(result._result.get("msg") or "")), TROUBLE)

    def v2_runner_on_skipped(self, result: Any) -> None:
        """Say nothing: nothing was done."""

    def v2_playbook_on_stats(self, stats: Any) -> None:  # noqa: ARG002 - Ansible passes it
        """Show the table."""
        for text, hosts in self._warned.items():
            show([TableLine(f"[WARNING]: {text} [{names(hosts, _MOST_NAMES)}]", WARNING)])
        if self._states:
            show(table(sorted(self._states.values(), key=lambda state: natural(state.host))))

    def _add_result(self, result: Any) -> bool:
        """Keep a result of our module, and the warnings of any; return whether it is of our module."""
        host = result._host.get_name()
        for warning in result._result.get("warnings") or ():
            # The warning about a discovered interpreter names its host: without it, all hosts have the same.
            text = re.sub(rf"\bhost '?{re.escape(host)}'?", "host", one_line(warning), flags=re.IGNORECASE)
            hosts = self._warned.setdefault(text, [])
            hosts += [] if host in hosts else [host]
        if _action(result) != _MODULE:
            return False
        self._states[host] = adhoc_state(host, result._result, bool(result._task.check_mode))
        return True

    def _say(self, result: Any, word: str, why: str, kind: str = "") -> None:
        show([TableLine(f"{result._host.get_name()} | {word}{f': {why}' if why else ''}", kind)])


def _action(result: Any) -> str:
    """Return the name of a task's module, without its collection."""
    return str(result._task.action).rpartition(".")[2]
