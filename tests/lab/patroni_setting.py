# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Patroni cluster with one protected host and a writer, for whole events."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from .hosts import Host
from .images import SOFTWARE
from .lab import Lab
from .load import Load, Outcome
from .patroni import WRITER, Patroni
from .protected import ProtectedHost

MEMBERS = ("n1", "n2", "n3")
_SECURED = "url: 'https://n1:8008', credentials: /etc/patroni/credentials, ca_file: /etc/patroni/ca.pem, timeout: 1m"
_HOOKS = {
    "Reboot": "patroni: {timeout: 1m}",
    "Freeze": "patroni: {timeout: 5s}",
    "Redeploy": f"patroni: {{{_SECURED}}}",
}


class Setting(NamedTuple):
    """A cluster, of which the first member is protected."""

    cluster: Patroni
    host: Host
    protected: ProtectedHost
    writer: Load

    def written(self) -> Outcome:
        """End the writer; return what it wrote down. AssertionError if an acknowledged row is not there."""
        outcome = self.writer.stop()
        assert outcome.lost(self.cluster.rows(self.writer.run)) == set()
        return outcome


@contextmanager
def protected_patroni(directory: Path, collections_path: Path) -> Iterator[Setting]:
    """Start hosts and a cluster of three of them, of which the role protects the first."""
    with Lab(dict.fromkeys((*MEMBERS, "client"), SOFTWARE), joined=True) as lab:
        cluster = Patroni([lab.host(name) for name in MEMBERS])
        cluster.start()
        protected = ProtectedHost(lab, lab.host("n1"), directory, collections_path, _HOOKS)
        yield Setting(cluster, lab.host("n1"), protected, Load(lab.host("client"), WRITER))
