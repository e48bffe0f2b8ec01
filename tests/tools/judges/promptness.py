# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the runner does its work in time, in worlds in which every poll is answered.

``tools.judges.promises`` judges what it must not do; a runner that did nothing at all would pass most of that.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from tools.judges.promises import MARGIN_SECONDS, SHORTEST_SECONDS, Judge
from tools.worlds.listings import Listing
from tools.worlds.runner_world import EPOCH

# What is due is done within this, in seconds: some polls, and whatever other events need first.
PATIENCE_SECONDS = 5.0


def act_promptly(judge: Judge) -> None:
    """Judge the entries of a judge's ledger. Raises BrokenPromise."""
    for listing in judge.everything():
        # When changed events are due, other tests check.
        if not listing.hardware and listing.steady and listing.latest == listing.stages:
            scheduled = _scheduled(judge, listing)
            _prepared(judge, listing, scheduled)
            if not listing.drill:
                _approved(judge, listing, scheduled)


class _ScheduledWork(NamedTuple):
    """Since when there is something to do for an event, and the runner that does it; until when that can be done."""

    since: float
    until: float


def _scheduled(judge: Judge, listing: Listing) -> _ScheduledWork:
    since, until, not_before = listing.seen_at + listing.profile.after, judge.entries[-1].at, math.inf
    for entry in judge.entries:
        if entry.at < listing.seen_at or entry.kind not in ("run", "document"):
            continue
        if entry.kind == "run":
            since = max(since, entry.at)
        elif entry.fields["source"] == ("drills" if listing.drill else "service"):
            found = [event for event in entry.fields["events"] if event["id"].lower() == listing.event_id.lower()]
            if not found or found[0]["status"] != "Scheduled":
                until = entry.at
                break
            not_before = found[0]["not_before"] - EPOCH
    return _ScheduledWork(since, min(until, not_before - MARGIN_SECONDS - SHORTEST_SECONDS))


def _prepared(judge: Judge, listing: Listing, scheduled: _ScheduledWork) -> None:
    undoing = {name for stage in listing.stages for name in stage.recover}
    others = {
        name for other in judge.everything() if other is not listing for stage in other.stages for name in stage.recover
    }
    if not listing.stages or undoing & others:  # it may have to wait for the end of another's recovery
        return
    late = scheduled.until - scheduled.since > PATIENCE_SECONDS
    first = [stage for stage in listing.stages if stage.prepare and stage.within is None][:1]
    started = {name for _version, name in listing.begun}
    begun = all(started & set(stage.prepare) for stage in first)
    judge.demand(begun or not late, "what is announced is prepared at once", listing.event_id)


def _paused_until(judge: Judge) -> float:
    """Return when the last pause of approvals was over."""
    until = 0.0
    for entry in judge.entries:
        if entry.kind == "pause":
            until = math.inf if entry.fields["until"] is None else entry.fields["until"] - EPOCH
        elif entry.kind == "resume":
            until = entry.at
    return until


def _approved(judge: Judge, listing: Listing, scheduled: _ScheduledWork) -> None:
    if not judge.to_be_approved(listing):
        return
    ends = [attempt.result_at for attempt in listing.every("prepare")]
    ready = max([scheduled.since, *ends, _paused_until(judge)])
    late = scheduled.until - ready > PATIENCE_SECONDS
    judge.demand(listing.tried or not late, "what is prepared is approved at once", listing.event_id)
