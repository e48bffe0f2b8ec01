# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Signed policies reach three VMs by a rollout and by pull, in waves, and are taken back: one story, in its order."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from forewarn.policy.waves import place_of
from tools.fixtures.signing import allow, make_key
from tools.servers import etag_files
from tools.servers.etcd_server import make_certificates

from ..hosts import Host
from ..lab import SETTINGS, Lab
from .control_node import ROLE_PLAY, SITE, status
from .playbooks import Playbooks

VMS = {"web_0": "bullseye", "web_1": "bookworm", "web_2": "trixie"}
POLICY = """\
name: web
description: {name}
rule:
  match: [{{id: "{name}", condition: event.EventType == "{kind}", output: approve}}]
"""
PORT = 8443
SERVE = (
    f"systemd-run -q --unit=policies python3 /srv/etag_files.py /srv/policies {PORT} /srv/server.crt /srv/server.key"
)
PATIENCE = 60.0  # seconds; a question comes every 10


class PolicyPublisher:
    """Publishes on the first host, as an operator does: into a directory, which is copied there."""

    def __init__(self, directory: Path, host: Host) -> None:
        self._directory = directory
        self._host = host
        self.site = directory / "site"
        self.site.mkdir()
        key = make_key(directory)
        self.key = str(key.private)
        self.signers = allow(directory, key, options='namespaces="forewarn-policy"')

    def policy(self, name: str, kind: str) -> str:
        """Write a policy that approves one kind of events; return its path."""
        path = self._directory / f"{name}.yml"
        path.write_text(POLICY.format(name=name, kind=kind))
        return str(path)

    def publish(self, *arguments: str) -> int:
        """Run ``forewarn fleet publish``; return the serial of what is new."""
        where = ["--to", str(self.site / "policy.json"), "--sign", self.key, "--signers", self.signers, "--json"]
        command = [sys.executable, "-m", "forewarn.cli.main", "fleet", "publish", *where, *arguments]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        self.copy()
        return int(json.loads(done.stdout)["waves"][0]["serial"])

    def copy(self) -> None:
        """Copy the files to the web server, the manifest last."""
        for path in sorted(self.site.iterdir(), key=lambda path: (path.name == "policy.json", path.name)):
            self._host.copy(path, f"/srv/policies/{path.name}")


@pytest.fixture(scope="module")
def joined(lab_machine: None) -> Iterator[Lab]:
    with Lab(VMS, SETTINGS, joined=True) as started:
        yield started


def runner(host: Host) -> dict[str, Any]:
    found: dict[str, Any] = status(host)["runner"]
    return found


def has_serial(host: Host, serial: int) -> None:
    host.wait_for(lambda: runner(host)["serial"] == serial, PATIENCE, every=0.5)


def was_asked_after(host: Host, seconds: float) -> bool:
    return bool(runner(host)["policy_source"]["checked_at"] > seconds)


def source_problem(host: Host) -> str | None:
    found: str | None = runner(host)["policy_source"]["problem"]
    return found


def is_answered(host: Host) -> bool:
    return bool(status(host)["service"]["state"] == "ok")


def test_policies_reach_vms_and_are_taken_back(joined: Lab, tmp_path: Path, installed_collection: Path) -> None:
    site, *others = joined.hosts
    publisher = PolicyPublisher(tmp_path, site)
    make_certificates(tmp_path, [site.peer_address])
    site.copy(Path(etag_files.__file__), "/srv/etag_files.py")
    for name in ("server.crt", "server.key"):
        site.copy(tmp_path / name, f"/srv/{name}")
    site.ssh(SERVE)
    for host in joined.hosts:
        host.copy(tmp_path / "ca.crt", "/etc/policies-ca.crt")
    books = Playbooks(joined, tmp_path, installed_collection)
    (tmp_path / SITE).write_text(ROLE_PLAY)
    variables = {
        "forewarn_policies": [publisher.policy("pushed", "Freeze")],
        "forewarn_signing_key": publisher.key,
        "forewarn_signers": Path(publisher.signers).read_text().splitlines(),
        "forewarn_policy_source": {
            "url": f"https://{site.peer_address}:{PORT}/policy.json",
            "ca_file": "/etc/policies-ca.crt",
            "interval": 10,
        },
        "forewarn_health_seconds": 60,
    }
    books.play(SITE, variables).changed()
    pushed = runner(site)["serial"]
    assert pushed is not None
    assert {runner(host)["serial"] for host in joined.hosts} == {pushed}
    assert set(books.play(SITE, variables).changed().values()) == {0}, "a signature is made once"

    first = publisher.publish("--share", "100", publisher.policy("first", "Reboot"))
    for host in joined.hosts:
        has_serial(host, first)
    event = joined.emulator.schedule("Reboot", [others[0].name])
    others[0].wait_for(lambda: joined.emulator.event(event)["status"] == "Started")
    joined.emulator.finish(event)

    early = [host for host in joined.hosts if place_of(host.name) < 50]
    late = [host for host in joined.hosts if host not in early]
    assert len(early) == 1, "a wave of one in three"
    second = publisher.publish("--share", "50", publisher.policy("second", "Redeploy"))
    has_serial(early[0], second)
    # Those outside the wave have seen it, and have what they had.
    for host in late:
        host.wait_for(partial(was_asked_after, host, runner(host)["policy_source"]["checked_at"]), PATIENCE)
        assert runner(host)["serial"] == first

    third = publisher.publish("--share", "100")
    assert third == second
    for host in late:
        has_serial(host, second)

    # What is published now is damaged, then the source is gone: the policies stay, also over a crash and a boot.
    site.write("garbage", "/srv/policies/policy.json")
    for host in others:
        assert "has signed it" in host.wait_for(partial(source_problem, host), PATIENCE, every=0.5)
        assert "has signed it" in host.ssh("forewarn status").stdout
    site.ssh("systemctl stop policies")
    others[0].ssh("systemctl kill --signal=KILL forewarn")
    others[1].reboot()
    for host in others:
        host.wait_for(partial(is_answered, host), PATIENCE)
        assert runner(host)["serial"] == second
    event = joined.emulator.schedule("Redeploy", [others[1].name])
    others[1].wait_for(lambda: joined.emulator.event(event)["status"] == "Started")
    joined.emulator.finish(event)

    # An older version with its valid signature, where the configuration is, changes nothing until a person permits it.
    config = json.loads(site.read("/etc/forewarn/config.json"))
    site.ssh("systemctl reload forewarn")
    assert runner(site)["serial"] == second
    site.ssh(f"forewarn policy accept --older --artifact {config['artifact']}")
    site.ssh("systemctl reload forewarn")
    has_serial(site, pushed)

    publisher.copy()
    site.ssh(SERVE)
    has_serial(site, second)
    back = publisher.publish("--back")
    for host in joined.hosts:
        has_serial(host, back)
        assert "Reboot" in host.read("/var/lib/forewarn/policy/accepted.json")
    event = joined.emulator.schedule("Reboot", [others[1].name])
    others[1].wait_for(lambda: joined.emulator.event(event)["status"] == "Started")
