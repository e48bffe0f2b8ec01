# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A server that the tests of both stores ask, and the VMs that the tests of a coordinator look at."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tools.servers.scripted_imds import Answer, AnsweringServer, status
from tools.worlds.small_group import Group
from tools.worlds.timed_runner import memory


@pytest.fixture(scope="module")
def chaos() -> Iterator[tuple[AnsweringServer, list[Answer]]]:
    """Return a server that gives the answer in the list."""
    answers = [status(200)]
    server = AnsweringServer(lambda _request: answers[0])
    with server:
        yield server, answers


@pytest.fixture
def group() -> Iterator[Group]:
    with memory() as directory:
        yield Group(directory)


@pytest.fixture
def running(group: Group) -> Group:
    group.create()
    group.begin()
    return group
