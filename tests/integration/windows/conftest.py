# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One Windows for all tests of a worker, and a VM on it for each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import tools
from forewarn.emulator.client import EmulatorClient
from forewarn.emulator.server import EmulatorServer
from tools.sites.wine import Wine, wine
from tools.sites.wine_modules import provide_modules
from tools.worlds.windows.vm import Windows, WindowsVm


@pytest.fixture(scope="session")
def booted(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wine]:
    """Return a Windows; each worker has its own."""
    with wine(tmp_path_factory.mktemp("wine") / "prefix") as windows:
        provide_modules(windows, package, Path(tools.__path__[0]))
        yield windows


@pytest.fixture(scope="session")
def windows(booted: Wine, pyz: Path) -> Windows:
    """Return it with the runner installed."""
    return Windows(booted, pyz)


@pytest.fixture
def vm(windows: Windows, server: EmulatorServer, emulator: EmulatorClient) -> Iterator[WindowsVm]:
    """Return a VM named web_0."""
    with windows.vm(emulator, server.vm_endpoint("web_0")) as one:
        yield one
