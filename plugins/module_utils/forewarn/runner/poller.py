# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests to the service: for the document at every tick, for the VM's identity until it is known."""

from __future__ import annotations

from collections.abc import Callable

from ..events import Document, Vm
from ..imds.client import Client
from ..imds.errors import Fault, LastingFault
from ..imds.limiter import READ_RESERVE
from ..imds.retry import FaultLog, RetryPolicy
from .journal.writer import Journal
from .telemetry.log import Log
from .telemetry.recorder import Recorder

# Polls wait for a request for the VM's identity, so it must be short; it is repeated later.
IDENTITY_TIMEOUT_SECONDS = 2.0


class RequestStatus:
    """Whether requests of one kind succeed, and when the next is due. ``kind`` names them, as in ``poll-failed``."""

    def __init__(self, kind: str, log: Log, clock: Callable[[], float], journal: Journal | None = None) -> None:
        self._kind = kind
        self._log = log
        self._journal = journal
        self._clock = clock
        self._retry = RetryPolicy(clock=clock)
        self._faults = FaultLog(self._report_fault, self._report_recovery, clock)

    @property
    def due(self) -> bool:
        """Whether the next request may be made: at once, or after a fault when the retry policy allows it."""
        return is_due(self._retry, self._clock())

    def note_success(self) -> None:
        """Note that the service answered."""
        self._retry.record_success()
        self._faults.record_success()

    def note_fault(self, fault: Fault) -> None:
        """Note that the service did not answer."""
        self._retry.record_failure(fault)
        self._faults.record_failure(fault)

    def _report_fault(self, fault: Fault) -> None:
        lasting = isinstance(fault, LastingFault)
        write = self._log.error if lasting else self._log.warning
        fields = {"kind": fault.kind, "status": fault.status, "lasting": lasting, "reason": fault.message}
        write(f"{self._kind}-failed", **fields, hint=fault.hint or None)
        if self._journal is not None:
            self._journal.note(f"{self._kind}-failed", None, **fields)

    def _report_recovery(self, failures: int, seconds: float) -> None:
        fields = {"failures": failures, "after_seconds": round(seconds, 3)}
        self._log.info(f"{self._kind}-recovered", **fields)
        if self._journal is not None:
            self._journal.note(f"{self._kind}-recovered", None, **fields)


class Poller(RequestStatus):
    """Requests the document."""

    def __init__(self, client: Client, recorder: Recorder, clock: Callable[[], float]) -> None:
        super().__init__("poll", recorder.log, clock, recorder.journal)
        self._client = client
        self._metrics = recorder.metrics

    @property
    def affordable(self) -> bool:
        """Whether the request budget allows one more poll now."""
        return self._client.limiter.delay(reserve=READ_RESERVE) <= 0

    def read(self, pause_seconds: float = 0.0) -> Document:
        """Return the document after a pause, as patiently as the client reads it. Raises Fault.

        Runs in the requester's thread.
        """
        self._client.sleep(pause_seconds)
        return self._client.read()

    def fetch(self) -> Document:
        """Return the document as it is now. Runs in the requester's thread. Raises Fault."""
        return self._client.read_once()

    def note_fault(self, fault: Fault) -> None:
        """Note that the service did not answer."""
        super().note_fault(fault)
        self._metrics.count("forewarn_poll_errors_total", kind=fault.kind)


def identity_client(client: Client) -> Client:
    """Return a client that asks the same service, briefly, within the same request budget."""
    brief = Client(
        client.endpoint.url,
        client.api_version,
        connect_timeout=IDENTITY_TIMEOUT_SECONDS,
        read_timeout=IDENTITY_TIMEOUT_SECONDS,
        first_read_timeout=IDENTITY_TIMEOUT_SECONDS,
        sleep=client.sleep,
    )
    brief.limiter = client.limiter
    return brief


class VmIdentity(RequestStatus):
    """Who this VM is. A name given by the operator stands; everything else comes from the instance metadata.

    Until these answer, the VM has the name that an earlier runner knew since the machine was booted.
    """

    def __init__(
        self, client: Client, name: str | None, log: Log, clock: Callable[[], float], earlier_name: str | None = None
    ) -> None:
        super().__init__("identity", log, clock)
        self.vm = Vm(name=name or earlier_name)
        self._client = client
        self._name = name
        self._known = False

    @property
    def due(self) -> bool:
        """Whether to request it now: it is not known yet."""
        return not self._known and super().due

    @property
    def nameless(self) -> bool:
        """Whether the metadata have answered, and have no name for this VM."""
        return self._known and self.vm.name is None

    def fetch(self, patience_seconds: float = 0.0) -> Vm:
        """Return who this VM is. Runs in the requester's thread. Raises Fault."""
        return self._client.read_instance(patience_seconds)

    def set_identity(self, vm: Vm) -> None:
        """Keep the answer of the instance metadata."""
        self.note_success()
        self._known = True
        self.vm = vm if self._name is None else vm._replace(name=self._name)
        self._client.close()
        if self.vm.name is None:
            self._log.error(
                "identity",
                reason="the instance metadata has no name for this VM",
                hint="Name it with --vm-name: without a name it approves nothing that only affected VMs may approve.",
            )
        else:
            self._log.info("identity", vm=self.vm.name, location=self.vm.location, zone=self.vm.zone)


def is_due(retry: RetryPolicy, now: float) -> bool:
    """Return whether a retry policy lets the next attempt start at ``now``."""
    return retry.next_attempt_at is None or now >= retry.next_attempt_at
