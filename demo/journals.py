# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the runners' journals hold what was expected, and agree with the emulator's records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import PurePath
from typing import Any

from acts import Expectation

Step = tuple[str, int, str | None]  # a hook, its attempt, and its result
# By how much two records of the same clock may differ, in seconds: the journal's times are in milliseconds.
_TICK = 0.01
_ATTEMPTS = {1: "yes", 2: "2nd attempt"}


def check_journals(
    expected: Expectation,
    event: Mapping[str, Any],
    requests: Sequence[Mapping[str, Any]],
    histories: Mapping[str, Mapping[str, Any]],
) -> list[str]:
    """Compare the journals' records of an event: its end, the hooks that ran and when, and the approvals."""
    found = []
    for vm, history in histories.items():
        kept = [record for record in history["events"] if record["event_id"] == expected.event_id]
        affected = vm in expected.resources
        if len(kept) != 1 and affected:
            found.append(f"the journal of {vm} has the event {len(kept)} times")
        for record in kept:
            sent = sum(entry["vm"] == vm and expected.event_id in entry["event_ids"] for entry in requests)
            facts = {
                # A VM that is not affected may notice a moment later that it is gone.
                "the end": (record["outcome"], expected.status.lower() if affected else record["outcome"]),
                "the hooks": (steps(record), list(expected.hooks.get(vm, ()))),
                "the approvals": (len(_of_kind(record, "approved")), sent),
            }
            found += [
                f"in the journal of {vm} {what}: {was}, not {should_be}"
                for what, (was, should_be) in facts.items()
                if was != should_be
            ]
            found += _check_order(vm, record, event)
    return found


def check_kills(kills: Mapping[str, int], histories: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Check that nothing but the demo stopped the runners."""
    found = []
    for vm, history in histories.items():
        kinds = [entry["kind"] for entry in history["runner"]]
        records = [kind for kind in kinds if kind in ("runner-started", "runner-stopped")]
        if records != ["runner-started"] * (1 + kills.get(vm, 0)):
            found.append(f"the journal of {vm} has {', '.join(records)}, but it was killed {kills.get(vm, 0)} times")
    return found


def steps(record: Mapping[str, Any]) -> list[Step]:
    """Return the hooks of an event in the order of their starts; of attempts that failed in a row, the first."""
    found: list[Step] = []
    for entry in record["entries"]:
        if entry["kind"] not in ("hook-started", "hook-ended"):
            continue
        fields = entry["fields"]
        begun = (PurePath(fields["hook"].removeprefix("run ")).name, fields["attempt"], None)
        if entry["kind"] == "hook-started":
            found.append(begun)
        elif begun in found:
            found[found.index(begun)] = (*begun[:2], fields["result"])
        else:
            found.append((*begun[:2], "ended, but was not started"))
    again = [this[::2] == (before[0], "failed") == before[::2] for before, this in zip(found, found[1:])]
    return [step for step, repeated in zip(found, [False, *again]) if not repeated]


def prepared(expected: Expectation, histories: Mapping[str, Mapping[str, Any]]) -> str:
    """Return one word for the preparation, according to the journals."""
    for history in histories.values():
        for record in history["events"]:
            ended = [entry["fields"] for entry in _of_kind(record, "hook-ended", "prepare")]
            if record["event_id"] == expected.event_id and ended:
                if ended[-1]["result"] != "succeeded":
                    return str(ended[-1]["result"])
                return _ATTEMPTS.get(ended[-1]["attempt"], f"{ended[-1]['attempt']} attempts")
    return "-"


def _check_order(vm: str, record: Mapping[str, Any], event: Mapping[str, Any]) -> list[str]:
    """Check that the preparation ended before the approval arrived, and that nothing was undone before the end."""
    found = []
    approvals = [approval["at"]["wall"] for approval in event["approvals"] if approval["vm"] == vm]
    ends = [_wall(entry) for entry in _of_kind(record, "hook-ended", "prepare")]
    if approvals and ends and max(ends) > min(approvals) + _TICK:
        found.append(f"{vm} approved before it was prepared")
    undone = [_wall(entry) for entry in _of_kind(record, "hook-started", "recover")]
    if undone and event["ended"] is not None and min(undone) < event["ended"]["wall"] - _TICK:
        found.append(f"{vm} undid what it had prepared before the event had ended")
    return found


def _of_kind(record: Mapping[str, Any], kind: str, phase: str | None = None) -> list[Mapping[str, Any]]:
    return [
        entry for entry in record["entries"] if entry["kind"] == kind and phase in (None, entry["fields"].get("phase"))
    ]


def _wall(entry: Mapping[str, Any]) -> float:
    return datetime.fromisoformat(entry["at"]).timestamp()
