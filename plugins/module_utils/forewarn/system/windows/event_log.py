# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Application event log of Windows."""

from __future__ import annotations

import re

from . import api

SOURCE = "forewarn"
# The event id of each kind of line. They never change: people filter by them. The message file EventCreate.exe, which
# is part of Windows, has the message "%1" for each number from 1 to 1000.
EVENT_IDS = {
    "fault": 1,  # not a line: what would be on standard error when the service ends
    "started": 10,
    "resumed": 11,
    "reloaded": 12,
    "reload-failed": 13,
    "stopped": 14,
    "interrupted": 15,
    "not-azure": 16,
    "log-lines-lost": 17,
    "waiting": 18,
    "policy-refused": 19,
    "identity": 20,
    "identity-failed": 21,
    "identity-recovered": 22,
    "poll-failed": 23,
    "poll-recovered": 24,
    "document": 30,
    "decision": 31,
    "state": 32,
    "event-gone": 33,
    "impact": 34,
    "shadow": 35,
    "drill": 36,
    "event-changed": 37,
    "approved": 40,
    "would-approve": 41,
    "approval-failed": 42,
    "paused": 43,
    "hook-started": 50,
    "hook-ended": 51,
    "hook-left": 52,
    "hook-waits": 53,
    "hook-missing": 54,
    "hook-available": 55,
    "hook-left-over": 56,
    "notified": 57,
    "would-run": 58,
    "recovery-again": 60,
    "recovery-dealt-with": 61,
    "recovery-refused": 62,
    "journal-trouble": 70,
    "journal-recovered": 71,
    "metrics-failed": 72,
    "record-damaged": 73,
    "damage-cleared": 74,
    "group-store-failed": 80,
    "group-store-recovered": 81,
    "group-trouble": 82,
    "slot-waits": 83,
    "slot-taken": 84,
    "slot-free": 85,
    "slot-beyond-limit": 86,
    "barrier-closed": 87,
    "sink-failed": 90,
    "sink-recovered": 91,
    "sink-lost": 92,
    "sink-rejected": 93,
    "sink-new-stream": 94,
    "policy-source-failed": 95,
    "policy-source-recovered": 96,
}
OTHER_ID = 1000  # of a kind that is missing above
LONGEST_TEXT = 31_839  # UTF-16 units that ReportEventW takes
_TYPES = {"error": 1, "warning": 2, "info": 4}
# The event viewer would put a string, or a text of Windows, in the place of %1 and %%1.
_INSERTION = re.compile(r"%(?=[%\d])")


class EventLog:
    """Writes events of the source ``forewarn``. The role registers the source; without that, the viewer shows the
    text below a complaint.
    """

    def __init__(self) -> None:
        self._handle: int | None = None

    def write(self, level: str, name: str, text: str) -> None:
        """Write an event of the kind ``name``. Raises OSError."""
        if self._handle is None:
            self._handle = api.advapi32.RegisterEventSourceW(None, SOURCE)
            if not self._handle:
                raise api.error()
        strings = (api.TEXT * 1)(event_text(text))
        arguments = (_TYPES[level], 0, EVENT_IDS.get(name, OTHER_ID), None, 1, 0, strings, None)
        if not api.advapi32.ReportEventW(self._handle, *arguments):
            error = api.error()
            api.advapi32.DeregisterEventSource(self._handle)  # the log's service may have restarted
            self._handle = None
            raise error


def event_text(text: str) -> str:
    """Return a text as the event log takes it, and the event viewer shows it."""
    text = _INSERTION.sub("% ", text)
    data = text.encode("utf-16-le", "surrogatepass")
    if len(data) <= 2 * LONGEST_TEXT:
        return text
    return data[: 2 * (LONGEST_TEXT - 1)].decode("utf-16-le", "ignore") + "…"
