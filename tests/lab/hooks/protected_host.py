# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One host of a cluster, protected by the runner as the role installs it, and the events that it is prepared for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..hosts import Host
from ..lab import Lab
from .whole_event import PATIENCE, Protected, history, hooks_of


class ProtectedHost:
    """A host. ``hooks``: EventType -> the hook that its rule prepares by, in YAML."""

    def __init__(self, lab: Lab, host: Host, directory: Path, collections_path: Path, hooks: Mapping[str, str]) -> None:
        self.host = host
        self._lab = lab
        self._protected = Protected(lab, directory, collections_path, hooks, host.name)

    def announce(self, event_type: str = "Reboot", **values: Any) -> str:
        """Schedule an event; return its EventId."""
        return self._protected.announce(self.host, event_type, **values)

    def cancel(self, event_id: str) -> None:
        """Take back an event that has not started."""
        self._lab.emulator.cancel(event_id)

    def wait_for_start(self, event_id: str) -> float:
        """Wait until an event has started; return how many seconds its hook took."""
        self._protected.wait_for_start(self.host, event_id)
        return float(history(self.host, event_id)["hooks"][0]["seconds"])

    def wait_for_recovery(self, event_id: str) -> dict[str, Any]:
        """Let an event end; wait until all is recovered, and return what the history has of it."""
        entry = self._protected.wait_for_recovery(self.host, event_id)
        assert [status for _phase, _hook, status in hooks_of(entry)] == ["succeeded", "succeeded"], entry["hooks"]
        return entry

    def reboot(self) -> None:
        """Reboot the host by an event, from its announcement to its recovery."""
        event_id = self.announce()
        self.wait_for_start(event_id)
        self.host.cut_power()
        self.host.start()
        self.wait_for_recovery(event_id)

    def rehearse(self, policy: str) -> None:
        """Roll out a shipped policy, and hold a drill with its real hooks: all of them succeed."""
        self._protected.rehearse(self.host, policy)

    def wait_for_reason(self, event_id: str, text: str) -> None:
        """Wait until the history of an event says why it is not prepared yet. AssertionError if it was approved."""
        self.host.wait_for(lambda: text in json.dumps(history(self.host, event_id)), PATIENCE)
        assert history(self.host, event_id)["state"] == "preparing"
