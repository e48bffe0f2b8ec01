# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decides when to ask the policy source, and handles the result.

A child process (``fetch``) does everything slow. The main thread starts it and reads its report; newer policies are an
offer, which the loop loads as it does a reload.
"""

from __future__ import annotations

import json
import os
import re
from typing import Any, Callable, NamedTuple

from ...errors import InputError
from ...system import programs
from ...texts import redacted_url
from ..clocks import Clocks
from ..hooks import commands
from ..hooks.executor import Executor, HookResult
from ..state import accepted_policy
from ..state.accepted_policy import SignedPolicy
from ..telemetry.recorder import Recorder
from .report import FAILED, REFUSED, RESULTS, UNCHANGED, UPDATED, SourceReport
from .settings import SourceSettings

CHILD_SECONDS = 60.0
QUESTION_SECONDS = 45.0  # for all requests of a child
FIRST_SECONDS = 10.0  # within which the first question comes
JITTER = 0.1  # of the interval, so that VMs which start together do not ask together
_TOKEN = "policy-source"  # noqa: S105 - not a secret
_CHILD_MODULE = "forewarn.runner.policy_source.fetch"


class SourceOptions(NamedTuple):
    """What the child needs: the settings, who may sign, and where secrets, tokens and temporary files are."""

    settings: SourceSettings
    signers: str
    revoked_signers: str | None
    endpoint: str
    credentials_directory: str | None
    scratch: str | None


class PolicySource:
    """Asks for newer policies. For the main thread alone; nothing here raises.

    ``random`` returns a number from 0 to 1.
    """

    def __init__(
        self,
        options: SourceOptions,
        directory: str,
        executor: Executor,
        recorder: Recorder,
        clocks: Clocks,
        facts: dict[str, Any],
        random: Callable[[], float] = lambda: os.urandom(1)[0] / 255,
    ) -> None:
        self.vm_name: str | None = None
        self._options = options
        self._directory = directory
        self._executor = executor
        _journal, self._log, self._metrics = recorder
        self._clocks = clocks
        self._facts = facts
        self._random = random
        self._due = clocks.monotonic() + FIRST_SECONDS * random()
        self._asking = False
        self._ask_again = False  # what the child in flight reports is of before
        self._asked_as: str | None = None  # the VM's name at the last question
        self._latest = SourceReport(UNCHANGED)  # of what is at the address now
        self._etag = ""
        self._offered = self._refused_offer = False
        self._problem: str | None = None
        self._refused_serial: int | None = None  # of policies that are older than those in use
        self._checked: float | None = None
        for result in RESULTS:
            self._metrics.count("forewarn_policy_source_checks_total", 0.0, result=result)

    def start_if_due(self) -> None:
        """Ask if that is due. Call it at each tick."""
        if not self._asking and self._clocks.monotonic() >= self._due:
            self._start()
        self._update_facts()

    def collect_results(self) -> None:
        """Handle the report of a child that has ended. Call it when the executor has woken the main thread."""
        for _token, result in self._executor.take_results():
            self._asking = False
            interval = self._options.settings.interval
            self._due = self._clocks.monotonic() + interval * (1.0 + JITTER * (2.0 * self._random() - 1.0))
            self._handle(_report_of(result))
            if self._ask_again:
                self.ask_again()
            self._update_facts()

    def take_offer(self) -> SignedPolicy | None:
        """Return newer policies that are to be loaded, once. The caller says by ``report_loaded`` what came of it."""
        if not self._offered:
            return None
        self._offered = False
        try:
            return accepted_policy.read_offer(self._directory)
        except InputError as error:
            self.report_loaded(error.message)
            return None

    def report_loaded(self, problem: str | None) -> None:
        """Report that the offer is in use, or with ``problem`` why it is not."""
        if problem is None:
            self._succeeded(UPDATED)
        else:
            self._refused_offer = True
            self._failed(REFUSED, problem)
        self._update_facts()

    def ask_again(self) -> None:
        """Look at all that the source has, soon: the configuration, or what this VM accepts, may have changed."""
        self._etag = ""
        self._due = self._clocks.monotonic()
        self._ask_again = self._asking

    def close(self) -> None:
        """End the request in flight."""
        self._executor.close()

    def _start(self) -> None:
        again = self._latest.again
        if self.vm_name != self._asked_as or (again is not None and again <= self._clocks.wall()):
            self._etag = ""  # another wave may be for this VM
        self._asked_as = self.vm_name
        self._asking = True
        try:
            command = self._command()
        except (InputError, commands.HookError) as error:
            self._asking = False
            self._due = self._clocks.monotonic() + self._options.settings.interval
            self._failed(FAILED, error.message)
            return
        self._executor.start(_TOKEN, command)

    def _command(self) -> commands.Command:
        """Return the child. Raises InputError or HookError."""
        options, settings = self._options, self._options.settings
        request = {
            "url": settings.url,
            "proxy": settings.proxy,
            "ca_file": settings.ca_file,
            "sas_file": None if settings.sas is None else settings.sas.path(options.credentials_directory),
            "identity": settings.identity,
            "endpoint": options.endpoint,
            "signers": options.signers,
            "revoked_signers": options.revoked_signers,
            "scratch": options.scratch,
            "state": self._directory,
            "vm": self.vm_name,
            "etag": self._etag,
            "seconds": QUESTION_SECONDS,
        }
        argv = commands.python(_CHILD_MODULE)
        return commands.Command(
            argv, programs.BASE_ENVIRONMENT, json.dumps(request).encode("ascii") + b"\n", CHILD_SECONDS
        )

    def _handle(self, report: SourceReport) -> None:
        if report.result in (FAILED, REFUSED):
            self._refused_serial = report.serial
            self._failed(report.result, report.reason or "no reason is known")
            return
        same = bool(self._etag) and report.etag == self._etag
        self._etag = report.etag
        if not same:
            self._latest, self._refused_offer = report, False
        if report.result == UPDATED:
            self._offered = True  # it counts once the loop has loaded it
        elif not self._refused_offer:  # otherwise it is still there
            self._succeeded(UNCHANGED)

    def _succeeded(self, result: str) -> None:
        self._checked = self._clocks.wall()
        self._metrics.count("forewarn_policy_source_checks_total", result=result)
        self._metrics.set("forewarn_policy_source_up", 1.0)
        self._metrics.set("forewarn_policy_source_last_success_timestamp_seconds", self._checked)
        if self._problem is not None:
            self._log.info("policy-source-recovered")
        self._problem = self._refused_serial = None

    def _failed(self, result: str, reason: str) -> None:
        self._checked = self._clocks.wall()
        self._metrics.count("forewarn_policy_source_checks_total", result=result)
        self._metrics.set("forewarn_policy_source_up", 0.0)
        if self._problem is None or _without_spans(reason) != _without_spans(self._problem):
            self._log.warning("policy-source-failed", result=result, reason=reason, hint="The policies in use stay.")
        self._problem = reason

    def _update_facts(self) -> None:
        self._facts["policy_source"] = {
            "url": redacted_url(self._options.settings.url),
            "checked_at": self._checked,
            "serial": self._latest.serial,
            "share": self._latest.share,
            "problem": self._problem,
            "refused_serial": self._refused_serial,
        }


def _without_spans(reason: str) -> str:
    """Return a reason without its spans of time: it is the same one, however long it took."""
    return re.sub(r"[0-9.]+ s\b", "", reason)


def _report_of(result: HookResult) -> SourceReport:
    """Return the report of a child, or its end as a failure."""
    if result.succeeded:
        try:
            return SourceReport(**json.loads(result.output.splitlines()[-1]))
        except (ValueError, TypeError, IndexError):
            return SourceReport(FAILED, f"the process that asks it wrote what is not a report: {result.output[:100]}")
    return SourceReport(FAILED, f"the process that asks it: {result.reason}")
