# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long the role takes on real hosts, first and again, and what it sends them. It needs a lab (tests/lab)."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks.report import AT_MOST, Goal, Quantity, Report
from benchmarks.rules import POLICY
from lab import machine
from lab.lab import Lab
from lab.role.playbooks import Playbooks
from tools.sites.link_collection import link_collection

RUNS = 3
TITLE = "Rolling out to a fleet"
VARIABLES = {"forewarn_serial": "100%", "forewarn_policies": [str(POLICY)]}
ROLLOUT, SITE = "forewarn.azure.rollout", "site.yml"
_SITE = "- {hosts: all, gather_facts: false, roles: [forewarn.azure.forewarn]}\n"


def run() -> Report:
    """Roll out to three new hosts, and again without a change, in turn."""
    reason = machine.missing()
    if reason is not None:
        return Report(TITLE, [], [], [f"Skipped: {reason}."])
    with tempfile.TemporaryDirectory(prefix="forewarn-bench-") as name, Lab() as lab:
        directory = Path(name)
        playbooks = Playbooks(lab, directory, link_collection(directory / "collections"))
        (directory / SITE).write_text(_SITE)
        first, again, sent, sent_again = [], [], [], []
        for _ in range(RUNS):
            _play(lab, playbooks, SITE, {"forewarn_state": "absent", "forewarn_purge": True})
            seconds, kilobytes, changes = _play(lab, playbooks, ROLLOUT, VARIABLES)
            if not changes:
                raise AssertionError("a first rollout has changed nothing")
            first.append(seconds)
            sent.append(kilobytes)
            seconds, kilobytes, changes = _play(lab, playbooks, ROLLOUT, VARIABLES)
            if changes:
                raise AssertionError("a second rollout has changed something")
            again.append(seconds)
            sent_again.append(kilobytes)
    mine, baseline = statistics.median(again), statistics.median(first)
    return Report(
        TITLE,
        [
            Quantity("first rollout", baseline, "s"),
            Quantity("again, nothing to change", mine, "s"),
            Quantity("sent to a host, first rollout", max(sent), "kB"),
            Quantity("sent to a host, again", max(sent_again), "kB"),
        ],
        [
            Goal("again, nothing to change", mine / baseline, "first rollout", AT_MOST, 0.8),
        ],
        [
            f"Medians of {RUNS} runs of the playbook rollout, over SSH, on three hosts at once: Debian 11, 12, 13.",
            "Sent: every byte that went through a host's network interface, SSH and TCP included; the host with most.",
        ],
    )


def _play(lab: Lab, playbooks: Playbooks, name: str, variables: Mapping[str, object]) -> tuple[float, float, int]:
    """Return the seconds, the most kilobytes sent to one host, and the number of changes."""
    before = [host.place.sent() for host in lab.hosts]
    begin = time.monotonic()
    changed = playbooks.play(name, variables).changed()
    seconds = time.monotonic() - begin
    sent = [host.place.sent() - bytes_before for host, bytes_before in zip(lab.hosts, before)]
    return seconds, max(sent) / 1000, sum(changed.values())
