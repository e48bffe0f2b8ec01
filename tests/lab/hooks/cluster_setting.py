# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster of some software with one protected node, for whole events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, NamedTuple, Protocol, TypeVar

from ..hosts import Host
from ..images import SOFTWARE
from ..lab import Lab
from .protected_host import ProtectedHost


class Cluster(Protocol):
    """A cluster that is not started yet."""

    def start(self) -> None:
        """Configure and start it, and wait until all nodes serve."""


ClusterT = TypeVar("ClusterT", bound=Cluster)


class Setting(NamedTuple, Generic[ClusterT]):
    """A cluster, of which one node is protected."""

    cluster: ClusterT
    node: Host
    protected: ProtectedHost


@contextmanager
def protected_cluster(
    make: Callable[[Host, list[Host]], ClusterT],
    names: Sequence[str],
    hooks: Mapping[str, str],
    directory: Path,
    collections_path: Path,
) -> Iterator[Setting[ClusterT]]:
    """Start hosts of these names: the first is for clients, the others are nodes, of which the role protects the first.

    ``hooks`` are those of ProtectedHost.
    """
    with Lab(dict.fromkeys(names, SOFTWARE), joined=True) as lab:
        client, *nodes = [lab.host(name) for name in names]
        cluster = make(client, nodes)
        cluster.start()
        yield Setting(cluster, nodes[0], ProtectedHost(lab, nodes[0], directory, collections_path, hooks))
