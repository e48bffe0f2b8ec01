# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A load on clustered software: a program on a host of the lab, which writes down what was acknowledged."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count, pairwise
from typing import NamedTuple

from ..hosts import Host

_PROGRAM, _LOG = "/usr/local/lib/load.py", "/var/log/load"
_RUNS = count(1)


class Outcome(NamedTuple):
    """What the program wrote down: request -> seconds since 1970 of the acknowledgement; of the failure."""

    acknowledged: dict[int, float]
    failed: dict[int, float]

    @property
    def interruption_seconds(self) -> float:
        """The longest time between two acknowledgements."""
        return max(after - before for before, after in pairwise(sorted(self.acknowledged.values())))

    def lost(self, present: Iterable[int]) -> set[int]:
        """Return what was acknowledged and is not there."""
        return set(self.acknowledged) - set(present)


class Load:
    """A Python program, as text. Its arguments are the number of the run, and then those of ``start``.

    It writes a line for each request: ``ok NUMBER TIME`` or ``failed NUMBER TIME``, and is ended by SIGTERM.
    """

    def __init__(self, host: Host, program: str) -> None:
        self._host = host
        self.run = 0
        host.write(program, _PROGRAM)

    def start(self, *arguments: str) -> None:
        """Start it, and wait until something was acknowledged."""
        self.run = next(_RUNS)
        command = " ".join(["/usr/bin/python3", "-u", _PROGRAM, str(self.run), *arguments])
        self._host.ssh(
            f": > {_LOG} && systemd-run --quiet --collect --unit=load --property=StandardOutput=file:{_LOG} {command}"
        )
        self.more()

    def more(self, requests: int = 50) -> None:
        """Wait until as many more requests have been acknowledged."""
        before = len(self._read().acknowledged)
        self._host.wait_for(lambda: len(self._read().acknowledged) >= before + requests)

    def stop(self) -> Outcome:
        """End it, and return what it wrote down."""
        self._host.ssh("systemctl stop load")
        return self._read()

    def _read(self) -> Outcome:
        found = Outcome({}, {})
        for line in self._host.ssh(f"cat {_LOG}").stdout.splitlines():
            word, number, time = line.split()
            (found.acknowledged if word == "ok" else found.failed)[int(number)] = float(time)
        return found
