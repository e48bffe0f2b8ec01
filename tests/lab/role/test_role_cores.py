# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role on real hosts by each ansible-core that we test with: types and failures are not the same in each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tools.sites.ansible_cores import SUPPORTED
from tools.suite.sizes import NAME

from ..hosts import Host
from ..lab import HOSTS as LAB
from ..lab import Lab
from .control_node import SITE, VARIABLES, control_node, is_well, refusal, status
from .playbooks import Playbooks

pytestmark = pytest.mark.in_turn(4, together=True)
# Each with a host whose Python it supports.
HOSTS = {"2.16": "web_0", "2.18": "web_1", "2.19": "web_1", "2.21": "web_2"}
_OLDEST = next(iter(HOSTS))  # the furthest from the one by which every other file rolls out
LAB_HOSTS = {name: suite for name, suite in LAB.items() if NAME != "small" or name == HOSTS[_OLDEST]}
# Numbers, and what travels with them.
GIVEN: dict[str, Any] = {
    **VARIABLES,
    "forewarn_interval": 2,
    "forewarn_probe_lead": 30.5,
    "forewarn_probe_listen": "127.0.0.1:9780",
    "forewarn_params": {"tolerable_freeze": 7},
    "forewarn_credentials": {"a": "hunter2"},
}


def test_each_version_has_a_host_here() -> None:
    assert HOSTS.keys() == SUPPORTED.keys()


@pytest.fixture
def host(lab: Lab, core: str) -> Host:
    return lab.host(HOSTS[core])


@pytest.fixture
def books(lab: Lab, tmp_path: Path, installed_collection: Path, core: str) -> Playbooks:
    control_node(lab, tmp_path, installed_collection)
    return Playbooks(lab, tmp_path, installed_collection, core)


def remove(books: Playbooks, host: Host) -> None:
    absent = {**GIVEN, "forewarn_state": "absent"}
    assert books.play(SITE, absent, "--limit", host.name).changed()[host.name] > 0
    assert host.ssh("ls -d /etc/forewarn /opt/forewarn", check=False).stdout == ""


@pytest.mark.parametrize(
    "core", [core if core == _OLDEST else pytest.param(core, marks=pytest.mark.full) for core in SUPPORTED]
)
def test_each_version_rolls_out_takes_back_and_removes(host: Host, books: Playbooks) -> None:
    only = ("--limit", host.name)
    assert books.play(SITE, GIVEN, *only).changed()[host.name] > 0
    assert status(host)["problems"] == []
    assert books.play(SITE, GIVEN, *only).changed() == {host.name: 0}

    message = refusal(books.play(SITE, {**GIVEN, "forewarn_interval": 500}, *only), host.name)
    assert "the interval is not between 1s" in message
    assert "The previous files were not replaced." in message
    dead = {**GIVEN, "forewarn_endpoint": "http://127.0.0.1:9", "forewarn_health_seconds": 3}
    assert "The previous files are restored." in refusal(books.play(SITE, dead, *only), host.name)
    assert is_well(host)
    remove(books, host)


@pytest.mark.full
@pytest.mark.parametrize("core", SUPPORTED)
def test_each_version_goes_back_to_the_previous_policy(host: Host, books: Playbooks) -> None:
    only = ("--limit", host.name)
    assert books.play(SITE, GIVEN, *only).changed()[host.name] > 0
    policy = books.directory / "policies" / "drains.yml"
    before = host.read("/etc/forewarn/config.json")
    policy.write_text(policy.read_text().replace("params.tolerable_freeze > 5", "params.tolerable_freeze > 6"))
    assert books.play(SITE, GIVEN, *only).changed()[host.name] > 0
    assert host.read("/etc/forewarn/config.json") != before
    assert books.play(SITE, {**GIVEN, "forewarn_policy_version": "previous"}, *only).changed()[host.name] > 0
    assert host.read("/etc/forewarn/config.json") == before
    remove(books, host)
