# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether each approval that arrives at an emulator rests on a document: on what went over the wire alone.

Between an approval and the end of its document there is no change of what the service lists, and at most a second; and
there is no other approval.
"""

from __future__ import annotations

from typing import NamedTuple

from forewarn.emulator.emulation import Emulation
from forewarn.emulator.lifecycle import EmulatedTime
from forewarn.emulator.requestlog import LoggedRequest, RequestLog
from forewarn.emulator.service import EVENTS_PATH

FRESH_SECONDS = 1.0


class SentRequest(NamedTuple):
    """A document that was answered, or an approval when it arrived: when (emulated seconds), and what was listed."""

    approval: bool
    at: float
    listed: object


class WireJudge(RequestLog):
    """The log of the requests of one VM, which also keeps what the service listed at each of them."""

    def __init__(self, emulation: Emulation, vm: str) -> None:
        super().__init__()
        self.sent: list[SentRequest] = []
        self._emulation = emulation
        self._vm = vm
        emulation.log = self

    def arrived(self, received: EmulatedTime, **values: object) -> LoggedRequest:
        """Note the arrival of a request."""
        entry = super().arrived(received, **values)
        if entry.method == "POST":
            self.sent.append(SentRequest(True, self._emulation.clock.now(), self._listed()))
        return entry

    def answered(self, entry: LoggedRequest, at: EmulatedTime, status: int | None) -> None:
        """Note the answer to a request. A document that is spoilt on its way counts too: nothing may rest on it."""
        super().answered(entry, at, status)
        if entry.method == "GET" and entry.path == EVENTS_PATH and status == 200:
            self.sent.append(SentRequest(False, self._emulation.clock.now(), self._listed()))

    def _listed(self) -> object:
        return self._emulation.model.document(self._vm)

    def broken(self) -> list[str]:
        """Return a sentence for each approval that should not have been sent."""
        found = []
        document: SentRequest | None = None
        for sent in self.sent:
            if not sent.approval:
                document = sent
                continue
            if document is None:
                found.append(f"an approval at {sent.at:.3f} has no document of its own")
            elif sent.at - document.at > FRESH_SECONDS:
                found.append(f"an approval at {sent.at:.3f} rests on a document of {document.at:.3f}")
            elif sent.listed != document.listed:
                found.append(f"something has changed between a document of {document.at:.3f} and its approval")
            document = None
        return found
