# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The journal of a host's runner, read from the host's disk: who waits for a state starts no process there."""

from __future__ import annotations

from forewarn.errors import InputError
from forewarn.runner.journal.reader import JournalReader

from ..hosts import Host


def event_state(host: Host, event_id: str) -> str:
    """Return the state of an event; an empty text if the journal has no such event, or is not there."""
    try:
        rows = JournalReader(str(host.place.root / "var/lib/forewarn")).records(event=event_id)
    except InputError:
        return ""
    return rows[-1].state if rows else ""
