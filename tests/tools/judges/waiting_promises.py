# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether hooks wait for nobody, checked on the ledger of a world, as ``tools.judges.promises`` checks the rest.

Only where the ledger says that time passed in the runner's own loop, which was free to do something at any moment.
"""

from __future__ import annotations

from collections.abc import Iterable

from tools.judges.promises import BrokenPromise
from tools.worlds.runner_profiles import PROFILES
from tools.worlds.runner_world import Entry

LATE_SECONDS = 0.1
# What may make a hook due; beside it the end of a time in which nothing could be kept.
CAUSES = frozenset({"document", "driven", "end", "exit", "known", "leftover", "rehearse", "reload", "run", "step"})
# Hooks that a policy asks for at some age of an event: the next document makes them due.
_AT_AN_AGE = frozenset(
    name
    for profile in PROFILES.values()
    for stage in profile.stages
    if profile.after or stage.within is not None
    for name in (*stage.prepare, *stage.recover)
)


class NobodyWaits:
    """Reads a ledger, entry by entry. Raises BrokenPromise."""

    def __init__(self) -> None:
        self.driven = False
        self.judged = 0  # starts and ends
        self._read = 0
        self._cause_at = 0.0
        self._trouble = False
        self._hidden = False  # the journal is away when this runner starts: what it finds later waits for a document
        self._ended: dict[int, bool] = {}  # uid -> whether a runner noticed its end
        self._latest: dict[tuple[object, ...], int] = {}  # hook -> uid of its latest attempt

    def read(self, entries: Iterable[Entry]) -> None:
        """Judge the new entries."""
        for entry in list(entries)[self._read :]:
            self._read += 1
            if entry.kind == "start" and entry.fields["phase"] != "notify":
                self._start(entry)
            if entry.kind == "end" and entry.fields["uid"] in self._ended:
                self._ended[entry.fields["uid"]] = True
                late = entry.fields.get("late", 0.0)
                self.judged += self.driven
                if late > LATE_SECONDS:
                    raise BrokenPromise(f"the end of a hook is taken in at once: {entry}")
            if entry.kind in CAUSES or (entry.kind == "commit" and self._trouble):
                self._cause_at = entry.at
            if entry.kind in ("hidden", "kill"):
                self._hidden = entry.kind == "hidden"
            if entry.kind in ("commit", "trouble", "run"):
                self._trouble = entry.kind == "trouble"
            if entry.kind in ("driven", "kill"):
                self.driven = entry.fields.get("on", False)

    def _start(self, entry: Entry) -> None:
        fields = entry.fields
        # A recovery that one event runs counts for the others that share it, and so does the pause after a failure.
        event = fields["event"].lower() if fields["phase"] == "prepare" else None
        hook = (event, fields["drill"], fields["phase"], fields["name"])
        before = self._latest.get(hook)
        self._latest[hook] = fields["uid"]
        self._ended[fields["uid"]] = False
        again = before is not None and self._ended[before]  # after a pause, which is not judged here
        if not self.driven or self._hidden or again or fields["name"] in _AT_AN_AGE:
            return
        self.judged += 1
        if entry.at - self._cause_at > LATE_SECONDS:
            raise BrokenPromise(f"a hook that is due starts at once: {entry}, {entry.at - self._cause_at:.3f} s late")
