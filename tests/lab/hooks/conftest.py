# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures: clusters of databases with one protected host."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ..software import galera as galera_cluster
from ..software import patroni as patroni_cluster
from ..software.galera import Galera
from ..software.patroni import Patroni
from .database_setting import Setting, protected_database


@pytest.fixture(scope="module")
def galera(
    lab_machine: None, tmp_path_factory: pytest.TempPathFactory, installed_collection: Path
) -> Iterator[Setting[Galera]]:
    """A Galera cluster with one protected node and a writer, for all tests of a file."""
    directory = tmp_path_factory.mktemp("control")
    writer, hooks = galera_cluster.WRITER, galera_cluster.HOOKS
    with protected_database(Galera, writer, hooks, directory, installed_collection) as started:
        yield started


@pytest.fixture(scope="module")
def patroni(
    lab_machine: None, tmp_path_factory: pytest.TempPathFactory, installed_collection: Path
) -> Iterator[Setting[Patroni]]:
    """A Patroni cluster with one protected member and a writer, for all tests of a file."""
    directory = tmp_path_factory.mktemp("control")
    writer, hooks = patroni_cluster.WRITER, patroni_cluster.HOOKS
    with protected_database(Patroni, writer, hooks, directory, installed_collection) as started:
        yield started
