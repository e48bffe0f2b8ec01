# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures for the tests of the runner."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from forewarn.runner.drills.drill import Drills
from forewarn.runner.drills.store import DrillStore
from forewarn.runner.journal.writer import Journal
from forewarn.runner.telemetry.heartbeat import Heartbeat
from tools.fixtures.clocks import ManualClocks
from tools.fixtures.journals import opened
from tools.fixtures.loop_bench import Bench
from tools.servers.webhooks import server_context
from tools.worlds.recovery_stage import Machine
from tools.worlds.stage import Stage


@pytest.fixture
def clocks() -> ManualClocks:
    return ManualClocks()


@pytest.fixture(scope="session")
def tls(certificate: Path) -> ssl.SSLContext:
    """Return what a server with the certificate needs."""
    return server_context(certificate)


@pytest.fixture
def journal(tmp_path: Path, clocks: ManualClocks) -> Iterator[Journal]:
    """Return a journal that is open, and was empty."""
    journal = opened(tmp_path, clocks)
    yield journal
    journal.close()


@pytest.fixture
def state(tmp_path: Path, clocks: ManualClocks) -> Iterator[Path]:
    """Return a state directory on which a runner works."""
    tmp_path.chmod(0o700)
    heart = Heartbeat(str(tmp_path), clocks)
    heart.beat({"pid": os.getpid(), "vm": "web_0"}, durable=False)
    yield tmp_path
    heart.close()


@pytest.fixture
def drills(state: Path, clocks: ManualClocks) -> Drills:
    DrillStore(str(state)).inbox.create()
    found = Drills(str(state), clocks)
    assert found.poll("web_0") is None
    return found


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    tmp_path.chmod(0o700)
    found = Machine(tmp_path)
    yield found
    found.journal.close()
