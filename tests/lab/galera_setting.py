# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Galera cluster with one protected host and a writer, for whole events."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from .galera import WRITER, Galera
from .hosts import Host
from .images import SOFTWARE
from .lab import Lab
from .load import Load, Outcome
from .protected import ProtectedHost

NODES = ("n1", "n2", "n3")
_HOOKS = {
    "Reboot": "galera: {timeout: 1m}",
    "Freeze": "galera: {timeout: 1m}",
    # They fail soon, and are tried again.
    "Preempt": "galera: {timeout: 5s}",
    "Redeploy": "galera: {defaults_file: /etc/mysql/forewarn.cnf, timeout: 5s}",
}


class Setting(NamedTuple):
    """A cluster, of which the first node is protected."""

    cluster: Galera
    host: Host
    protected: ProtectedHost
    writer: Load

    def written(self) -> Outcome:
        """End the writer; return what it wrote down. AssertionError if an acknowledged row is not on every node."""
        outcome = self.writer.stop()
        assert outcome.lost(self.cluster.rows(self.writer.run)) == set()
        return outcome


@contextmanager
def protected_galera(directory: Path, collections_path: Path) -> Iterator[Setting]:
    """Start hosts and a cluster of three of them, of which the role protects the first."""
    with Lab(dict.fromkeys((*NODES, "client"), SOFTWARE), joined=True) as lab:
        cluster = Galera([lab.host(name) for name in NODES])
        cluster.start()
        lab.host("n1").write("[client]\nuser=monitor\npassword=monitor\n", "/etc/mysql/forewarn.cnf", 0o600)
        protected = ProtectedHost(lab, lab.host("n1"), directory, collections_path, _HOOKS)
        yield Setting(cluster, lab.host("n1"), protected, Load(lab.host("client"), WRITER))
