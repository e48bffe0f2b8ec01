# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os

import pytest
from forewarn.errors import InputError
from forewarn.system.paths import memory_directory, state_directory


@pytest.fixture
def user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)


@pytest.mark.usefixtures("root")
def test_default_for_root_is_the_service() -> None:
    everything = {"STATE_DIRECTORY": "/var/lib/a:/var/lib/b", "XDG_STATE_HOME": "/x", "HOME": "/home/me"}
    assert state_directory(everything) == "/var/lib/a"
    del everything["STATE_DIRECTORY"]
    assert state_directory(everything) == "/var/lib/forewarn"


@pytest.mark.usefixtures("user")
def test_default_for_a_user_is_their_own() -> None:
    everything = {"STATE_DIRECTORY": "/var/lib/a:/var/lib/b", "XDG_STATE_HOME": "/x", "HOME": "/home/me"}
    assert state_directory(everything) == "/var/lib/a"
    del everything["STATE_DIRECTORY"]
    assert state_directory(everything) == "/x/forewarn"
    assert state_directory({"XDG_STATE_HOME": "relative", "HOME": "/home/me"}) == "/home/me/.local/state/forewarn"
    assert state_directory({"HOME": "/home/me"}) == "/home/me/.local/state/forewarn"
    with pytest.raises(InputError, match="--state"):
        state_directory({})


@pytest.mark.usefixtures("user")
def test_directory_in_memory_may_be_missing() -> None:
    assert memory_directory({"RUNTIME_DIRECTORY": "/run/a:/run/b", "XDG_RUNTIME_DIR": "/run/user/1000"}) == "/run/a"
    assert memory_directory({"XDG_RUNTIME_DIR": "/run/user/1000"}) == "/run/user/1000/forewarn"
    assert memory_directory({}) is None
