# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A hardware failure that is predicted for next week: drained and acknowledged in a window of one's choosing."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from forewarn.emulator.client import EmulatorClient
from tools.sites.runner_process import Host, Start

# The window of docs/guides/predicted-failures.md, with the hour as a parameter. The file of the checkpoint is what the
# hook script writes.
POLICY = """
name: window
rule:
  variables:
    - name: distant
      expression: event.EventType == "Redeploy" && event.EventSource == "Platform" && notice >= duration("1h")
    - name: in_window
      expression: (now.getHours("UTC") - {hour} + 24) % 24 < {hours}
  match:
    - id: in-window
      condition: affects_me && variables.distant && variables.in_window
      output: approve
      prepare:
        - checkpoint: {{file: {said}, run: [{hook}], restore: [{hook}], timeout: 30s}}
    - {{id: wait-for-window, condition: variables.distant, output: hold}}
"""
HOOK = 'echo "$FOREWARN_PHASE $FOREWARN_EVENT_TYPE" >> "${0%/*}/said"'
# Over soon, but not before the runner has seen its start.
BRIEF: dict[str, Any] = {"impact_seconds": 0.1, "gone_after_seconds": 2}
_WEEK_SECONDS = 7 * 24 * 3600.0


def host_with_window(tmp_path: Path, emulator: EmulatorClient, start: Start, hour: int) -> Host:
    said = tmp_path / "said"
    # Two hours: the test may begin in the last second of the first.
    text = POLICY.replace("{hour}", str(hour)).replace("{hours}", "2").replace("{said}", str(said))
    return Host(tmp_path, emulator, start, text, HOOK)


def test_predicted_failure_inside_the_window_is_drained_early(
    tmp_path: Path, emulator: EmulatorClient, start: Start
) -> None:
    host = host_with_window(tmp_path, emulator, start, time.gmtime().tm_hour)
    host.run().wait_for("document")
    event_id = emulator.schedule("Redeploy", ["web_0"], notice_seconds=_WEEK_SECONDS, **BRIEF)
    entry = host.wait_for(event_id, "done")
    assert host.approvals() == [[event_id]]
    assert host.said() == ["prepare Redeploy", "recover Redeploy"]
    assert entry["outcome"] == "finished"


def test_predicted_failure_outside_the_window_is_held(tmp_path: Path, emulator: EmulatorClient, start: Start) -> None:
    host = host_with_window(tmp_path, emulator, start, (time.gmtime().tm_hour + 12) % 24)
    host.run()
    event_id = emulator.schedule("Redeploy", ["web_0"], notice_seconds=_WEEK_SECONDS)
    host.wait_for(event_id, "held")
    assert (host.said(), host.approvals()) == ([], [])
