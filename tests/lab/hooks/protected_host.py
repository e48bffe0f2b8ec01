# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One host of a cluster, protected by the runner as the role installs it, and the events that it is prepared for."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..hosts import Host
from ..lab import Lab
from .whole_event import PATIENCE, announce, history, hooks_of, rehearse_shipped, roll_out, wait_for_state

_POLICY = """\
name: whole-events
rule:
  match:
"""
_RULE = """\
    - id: {name}
      condition: event.EventType == "{type}" && affects_me
      prepare: [{hook}]
      output: approve
"""


class ProtectedHost:
    """A host with the runner. ``hooks``: EventType -> the hook that its rule prepares by, in YAML.

    ``moving`` is what an event may leave on another host, in the words of ``snapshot.standing``.
    """

    moving: frozenset[str] = frozenset()

    def __init__(self, lab: Lab, host: Host, directory: Path, collections_path: Path, hooks: Mapping[str, str]) -> None:
        rules = [_RULE.format(name=type_.lower(), type=type_, hook=hook) for type_, hook in hooks.items()]
        roll_out(lab, directory, collections_path, _POLICY + "".join(rules), [host.name])
        self.host = host
        self._lab = lab
        self._directory, self._collections_path = directory, collections_path

    def rehearse(self, policy: str) -> None:
        """Roll out a shipped policy, and hold a drill with its real hooks: all of them succeed."""
        rehearse_shipped(self._lab, self.host, self._directory, self._collections_path, policy)

    def announce(self, event_type: str = "Reboot", **values: Any) -> str:
        """Schedule an event; return its EventId."""
        return announce(self._lab, self.host, event_type, self.moving, **values)

    def cancel(self, event_id: str) -> None:
        """Take back an event that has not started."""
        self._lab.emulator.cancel(event_id)

    def finish(self, event_id: str) -> None:
        """Let the event leave the list."""
        self._lab.emulator.finish(event_id)

    def wait_for_start(self, event_id: str) -> float:
        """Wait until the event was prepared for, approved and has started; return the seconds that its hook took."""
        self.host.wait_for(lambda: self._lab.emulator.event(event_id)["status"] == "Started", PATIENCE)
        return float(history(self.host, event_id)["hooks"][0]["seconds"])

    def wait_for_recovery(self, event_id: str) -> dict[str, Any]:
        """Let the event end; wait until all is recovered, and return what the history has of it."""
        if self._lab.emulator.event(event_id)["status"] == "Started":
            self.finish(event_id)
        entry = wait_for_state(self.host, event_id, "done")
        assert [status for _phase, _hook, status in hooks_of(entry)] == ["succeeded", "succeeded"], entry["hooks"]
        return entry

    def wait_for_reason(self, event_id: str, text: str) -> None:
        """Wait until the history of an event says why it is not prepared yet. AssertionError if it was approved."""
        self.host.wait_for(lambda: text in json.dumps(history(self.host, event_id)), PATIENCE)
        assert history(self.host, event_id)["state"] == "preparing"

    def reboot(
        self, event_type: str = "Reboot", during: Callable[[], object] | None = None, *, abruptly: bool = False
    ) -> float:
        """Reboot the host by an event, from its announcement to its recovery; return the seconds until it started.

        Azure reboots the host once the event has started. ``during`` is called while the host is down, ``abruptly``
        cuts its power.
        """
        began = time.monotonic()
        event_id = self.announce(event_type)
        self.wait_for_start(event_id)
        seconds = time.monotonic() - began
        if during is None and not abruptly:
            self.host.reboot()
        else:
            (self.host.cut_power if abruptly else self.host.stop)()
            if during is not None:
                during()
            self.host.start()
        self.wait_for_recovery(event_id)
        return seconds
