# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster of a database with one protected host and a writer, for whole events."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, NamedTuple, Protocol, TypeVar

from ..hosts import Host
from ..images import SOFTWARE
from ..lab import Lab
from ..software.load import Load, Outcome
from .protected_host import ProtectedHost

NODES = ("n1", "n2", "n3")


class Database(Protocol):
    """A cluster that is not started yet."""

    def start(self) -> None:
        """Configure and start it, and wait until all nodes serve."""

    def rows(self, run: int) -> Collection[int]:
        """Return the numbers that a run of the writer has left."""


DatabaseT = TypeVar("DatabaseT", bound=Database)


class Setting(NamedTuple, Generic[DatabaseT]):
    """A cluster, of which the first node is protected."""

    cluster: DatabaseT
    host: Host
    protected: ProtectedHost
    writer: Load

    def written(self) -> Outcome:
        """End the writer; return what it wrote down. AssertionError if an acknowledged row is not there."""
        outcome = self.writer.stop()
        assert self._lost(outcome) == set()
        return outcome

    def figures(self, outcome: Outcome) -> dict[str, float]:
        """Return what is recorded of the writer's last run."""
        return {
            "committed": len(outcome.acknowledged),
            "failed": len(outcome.failed),
            "lost": len(self._lost(outcome)),
            "interruption_seconds": round(outcome.interruption_seconds, 2),
        }

    def _lost(self, outcome: Outcome) -> set[int]:
        return outcome.lost(self.cluster.rows(self.writer.run))


@contextmanager
def protected_database(
    make: Callable[[Sequence[Host]], DatabaseT],
    writer: str,
    hooks: Mapping[str, str],
    directory: Path,
    collections_path: Path,
) -> Iterator[Setting[DatabaseT]]:
    """Start hosts and a cluster of three of them, of which the role protects the first.

    ``writer`` is the program of a Load, ``hooks`` are those of a ProtectedHost.
    """
    with Lab(dict.fromkeys((*NODES, "client"), SOFTWARE), joined=True) as lab:
        cluster = make([lab.host(name) for name in NODES])
        cluster.start()
        protected = ProtectedHost(lab, lab.host(NODES[0]), directory, collections_path, hooks)
        yield Setting(cluster, lab.host(NODES[0]), protected, Load(lab.host("client"), writer))
