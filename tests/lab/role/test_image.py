# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role installs into an image, by chroot, and copies of it boot: each is a VM of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tools.suite.sizes import in_turn

from ..hosts import Host
from ..images import SUITES
from ..lab import BOOT_ID_KEPT, SUITES_THAT_LOSE_IT, Lab, Start
from .chroot import NAME, Chroot
from .control_node import ROLE_PLAY, SITE, refusal, status
from .playbooks import Playbooks

POLICY = """\
name: mine
description: Approves what affects this VM alone.
rule:
  match:
    - {id: mine, condition: affects_me, output: approve}
"""
COPIES = ("web_0", "web_1", "web_2")
# What a runner of the VM that the image is made of has left there.
STATE = "/var/lib/forewarn/journal.sqlite"
SECRET = "/etc/forewarn/credentials/token.cred"
IS_ENABLED = "systemctl --root=/ is-enabled forewarn"


def books(target: Lab | Chroot, directory: Path, collections_path: Path) -> Playbooks:
    (directory / "mine.yml").write_text(POLICY)
    (directory / SITE).write_text(ROLE_PLAY)
    return Playbooks(target, directory, collections_path)


def variables(suite: str) -> dict[str, Any]:
    settings = BOOT_ID_KEPT if suite in SUITES_THAT_LOSE_IT else []
    return {"forewarn_policies": ["mine.yml"], "forewarn_unit_settings": settings, "forewarn_health_seconds": 60}


@pytest.fixture
def image(lab_machine: None, suite: str) -> Iterator[Chroot]:
    with Chroot(suite) as made:
        yield made


def approvals(lab: Lab) -> dict[str, list[str]]:
    """Return the events that each VM has approved."""
    sent = [request for request in lab.emulator.requests() if request["method"] == "POST"]
    return {
        host.name: [one for request in sent if request["vm"] == host.name for one in request["event_ids"]]
        for host in lab.hosts
    }


def is_started(lab: Lab, event_id: str) -> bool:
    return bool(lab.emulator.event(event_id)["status"] == "Started")


def boots(host: Host) -> set[str]:
    """Return the ids of the boots that a host's journal has entries of."""
    history = json.loads(host.ssh("forewarn history --json").stdout)
    lives = [entry for event in history["events"] for entry in event["entries"]]
    return {entry["boot_id"] for entry in (*lives, *history["runner"])}


@pytest.mark.parametrize("suite", in_turn(SUITES))
def test_copies_of_an_image_approve_their_events(
    start_lab: Start, image: Chroot, suite: str, tmp_path: Path, installed_collection: Path
) -> None:
    for path in (STATE, SECRET):
        image.path(path).parent.mkdir(parents=True)
        image.path(path).write_text("of the VM that the image is made of")
    given = variables(suite)
    builder = books(image, tmp_path, installed_collection)
    assert builder.play(SITE, {**given, "forewarn_image": True}).changed()[NAME] > 0
    assert not image.path("/var/lib/forewarn").exists()
    assert not image.path(SECRET).exists()
    # As Fedora and mkosi do, to all units.
    image.path("/usr/lib/systemd/system-preset/99-default-disable.preset").write_text("disable *\n")
    assert image.run(f"systemctl --root=/ preset forewarn; {IS_ENABLED}") == "enabled\n"
    assert builder.play(SITE, {**given, "forewarn_image": True}).changed() == {NAME: 0}

    lab = start_lab(dict.fromkeys(COPIES, suite), image=image.root)
    late = lab.hosts[-1]
    late.stop()
    events = {host.name: lab.emulator.schedule("Reboot", [host.name]) for host in lab.hosts}
    late.reset()
    for host in lab.hosts:
        host.wait_for(partial(is_started, lab, events[host.name]))
        assert status(host)["runner"]["vm"] == host.name
    assert approvals(lab) == {name: [event_id] for name, event_id in events.items()}
    assert {host.name: boots(host) for host in lab.hosts} == {
        host.name: {host.read("/proc/sys/kernel/random/boot_id").strip()} for host in lab.hosts
    }

    fleet = books(lab, tmp_path, installed_collection)
    pushed = fleet.play(SITE, given)
    assert pushed.changed() == dict.fromkeys(COPIES, 0), pushed.text
    before = {host.name: host.properties("forewarn", "MainPID") for host in lab.hosts}
    played = fleet.play(SITE, {**given, "forewarn_image": True})
    for host in lab.hosts:
        assert "here the runner runs (forewarn.service is active)" in refusal(played, host.name)
        assert host.properties("forewarn", "MainPID") == before[host.name]
