# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real runner that pulls signed policies: what it uses, keeps over kills, and says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from forewarn.bundle import build
from forewarn.emulator.client import EmulatorClient
from forewarn.runner.state import accepted_policy
from forewarn.runner.state.accepted_policy import SignedPolicy
from tools.fixtures.signing import artifact, install, make_key
from tools.servers.listener_client import free_port
from tools.servers.policy_server import NAME, PolicyServer, PolicySite, PolicyTlsServer
from tools.servers.webhooks import Proxy, server_context
from tools.sites.pythons import SUPPORTED, python
from tools.sites.runner_process import DRAINS, Host, Process, Start
from tools.sites.waiting import wait_until


class PullingHost(Host):
    """A VM whose configuration has signers and a source, and whose first policies have serial 1."""

    def __init__(self, directory: Path, emulator: EmulatorClient, start: Start, site: PolicySite, url: str) -> None:
        waits = f'[ "$FOREWARN_PHASE" = recover ] || until [ -e {directory}/go ]; do sleep 0.02; done'
        super().__init__(directory, emulator, start, DRAINS, f'{waits}; echo "$FOREWARN_PHASE" >>{directory}/said')
        self.site = site
        self.key = make_key(directory)
        self.other = make_key(directory, "other")
        Path(directory, "signers").write_text(f"release@example.com {self.key.public}\n")
        self.installed = install(directory / "installed.json", self.policy(1))
        self.port = free_port()
        options = {
            "artifact": str(self.installed),
            "signers": "signers",
            "policy_source": {"url": url, "interval": 10},
            "metrics_listen": f"127.0.0.1:{self.port}",
        }
        self.config = directory / "config.json"
        self.config.write_text(json.dumps(options))

    def policy(self, serial: int, policy: str = DRAINS) -> SignedPolicy:
        return self.key.signed(artifact(self.directory, serial, policy.format(hook=self.directory / "hook")))

    def publish(self, serial: int, policy: str = DRAINS) -> None:
        self.site.put(self.policy(serial, policy))

    def run(self) -> Process:
        return self._start("--config", str(self.config))

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.forewarn("status", "--json").stdout)
        return found

    def runner(self) -> dict[str, Any]:
        found: dict[str, Any] = self.status()["runner"]
        return found

    def wait_for_serial(self, serial: int) -> None:
        wait_until(lambda: self.runner()["serial"] == serial, pause=0.05)

    def wait_for_metric(self, line: str) -> None:
        url = f"http://127.0.0.1:{self.port}/metrics"
        wait_until(lambda: f"\n{line}\n" in requests.get(url, timeout=10).text, pause=0.05, what=f"no {line}")


@pytest.fixture
def site() -> PolicySite:
    return PolicySite()


@pytest.fixture
def host(tmp_path: Path, emulator: EmulatorClient, start: Start, site: PolicySite) -> Iterator[PullingHost]:
    server = PolicyServer(site)
    with server:
        yield PullingHost(tmp_path, emulator, start, site, server.url)


HOLDS = "name: holds\nrule:\n  match:\n    - {{output: hold}}\n"


def test_pulled_policies_are_used_and_kept(host: PullingHost, site: PolicySite) -> None:
    host.publish(2)
    runner = host.run()
    line = runner.wait_for("reloaded")
    assert (line["serial"], line["from"]) == (2, "policy-source")
    host.wait_for_serial(2)
    assert host.runner()["policy_source"]["problem"] is None
    shown = " ".join(host.forewarn("status").stdout.split())
    assert "serial 2, here since" in shown
    assert f"/{NAME}, asked at" in shown
    host.wait_for_metric("forewarn_policy_serial 2")
    host.wait_for_metric("forewarn_policy_source_up 1")
    since = host.runner()["serial_since"]
    site.files.clear()  # the source is gone: the VM stays as it is
    runner.wait_for("policy-source-failed", result="failed")
    runner.stop(signal.SIGKILL)
    runner = host.run()
    runner.wait_for("policy-source-failed", result="failed")
    host.wait_for_serial(2)
    assert host.runner()["serial_since"] == since
    assert host.runner()["policy_problem"] is None
    assert not [line for line in runner.lines if line["line"] == "policy-refused"]
    host.publish(3, HOLDS)
    runner.wait_for("policy-source-recovered")
    host.wait_for_serial(3)
    assert host.runner()["policies"] == ["holds"]
    assert runner.stop() == (0, "")
    history = host.forewarn("history", "--json")
    assert history.returncode == 0


def test_older_policies_need_a_permit(host: PullingHost) -> None:
    host.publish(4)
    runner = host.run()
    runner.wait_for("reloaded", serial=4)
    host.wait_for_serial(4)
    host.publish(3)
    line = runner.wait_for("policy-source-failed", result="refused")
    assert "serial 3 is older than 4" in line["reason"]
    wait_until(lambda: host.runner()["policy_source"]["refused_serial"] == 3, pause=0.05)
    host.wait_for_metric("forewarn_policy_source_up 0")
    assert host.forewarn("status").returncode == 0  # the VM is well
    assert "serial 3 is older than 4" in " ".join(host.forewarn("status").stdout.split())
    accepted = host.forewarn("policy", "accept", "--older", "--json")
    assert (accepted.stderr, json.loads(accepted.stdout)["serial"]) == ("", 3)
    runner.process.send_signal(signal.SIGHUP)
    host.wait_for_serial(3)
    runner.wait_for("policy-source-recovered")
    host.publish(2)
    runner.wait_for("policy-source-failed", count=2)
    assert host.runner()["serial"] == 3


def test_refused_configuration_is_reported(host: PullingHost) -> None:
    host.publish(1)
    runner = host.run()
    runner.wait_for("document")
    install(host.installed, host.other.signed(host.policy(2).artifact))
    runner.process.send_signal(signal.SIGHUP)
    assert "nobody in" in runner.wait_for("reload-failed")["reason"]
    assert runner.stop() == (0, "")
    runner = host.run()
    line = runner.wait_for("policy-refused")
    assert "nobody in" in line["reason"]
    assert line["hint"] == "The policies that were in use last are in use."
    runner.wait_for("document")
    wait_until(lambda: host.runner()["policy_problem"], pause=0.05)
    status = host.status()
    assert status["runner"]["serial"] == 1
    assert [
        text for text in status["problems"] if text.startswith("other policies than the configuration's are in use")
    ]
    assert len(status["problems"]) == 1, "it is said once"
    shown = host.forewarn("status")
    assert shown.returncode == 1
    assert "those that were in use last" in " ".join(shown.stdout.split())
    checked = host.forewarn("run", "--check-config", "--config", str(host.config))
    assert checked.returncode == 2
    assert "nobody in" in checked.stderr


def test_event_keeps_what_it_is_owed(host: PullingHost) -> None:
    runner = host.run()
    runner.wait_for("document")
    event_id = host.emulator.schedule("Reboot", ["web_0"], notice_seconds=600, impact_seconds=0.1)
    runner.wait_for("hook-started", phase="prepare")
    host.publish(2, HOLDS)
    runner.wait_for("reloaded", serial=2)
    (host.directory / "go").touch()
    runner.wait_for("hook-ended", phase="prepare")
    host.emulator.start(event_id)
    host.wait_for(event_id, "done")
    assert host.said() == ["prepare", "recover"]


@pytest.mark.parametrize("fault", ["silent", "endless"])
def test_stuck_source_delays_no_exit(host: PullingHost, site: PolicySite, fault: str) -> None:
    site.fail(fault)
    runner = host.run()
    wait_until(lambda: site.requests)
    runner.wait_for("document")
    assert runner.stop() == (0, "")
    assert "Traceback" not in runner.end()[1]
    assert accepted_policy.oldest_serial(str(host.state)) == 1


def test_killed_runner_comes_back_with_signed_policies(host: PullingHost) -> None:
    """Each time new policies are brought, it is killed a moment later or earlier."""
    for serial in range(2, 6):
        host.publish(serial)
        runner = host.run()
        if serial % 2:
            runner.wait_for("reloaded")
        else:
            wait_until((host.state / "policy" / "offer.json").exists)
        runner.stop(signal.SIGKILL)
        kept = accepted_policy.read_accepted(str(host.state))
        assert kept is not None
        assert kept.policy in [host.policy(kept.serial)]
        assert kept.serial in (serial, serial - 1)
        (host.state / "policy" / "offer.json").unlink(missing_ok=True)
    host.run().wait_for("document")
    host.wait_for_serial(5)


@pytest.mark.parametrize("version", SUPPORTED)
def test_each_python_pulls_through_a_proxy(
    host: PullingHost, site: PolicySite, certificate: Path, tmp_path: Path, version: str
) -> None:
    """The tunnel rests on Python's http.client."""
    interpreter = python(version)
    host.publish(2)
    accepted_policy.accept(str(tmp_path), 1, host.policy(1))
    proxy = Proxy()
    with PolicyTlsServer(site, server_context(certificate)) as server, proxy:
        proxy.target = server.port
        settings = {
            **dict.fromkeys(("sas_file", "identity", "revoked_signers", "scratch", "vm")),
            "url": server.url,
            "proxy": proxy.url,
            "ca_file": str(certificate),
            "endpoint": "http://127.0.0.1:9",
            "signers": str(tmp_path / "signers"),
            "state": str(tmp_path),
            "etag": "",
            "seconds": 20.0,
        }
        code = (
            "import sys; sys.path.insert(0, sys.argv[1]); from forewarn.runner.policy_source.fetch import main; main()"
        )
        bundle = tmp_path / "forewarn.pyz"
        build(Path(accepted_policy.__file__).parents[2], bundle)
        done = subprocess.run(
            [interpreter, "-I", "-S", "-c", code, str(bundle)],
            input=json.dumps(settings) + "\n",
            capture_output=True,
            text=True,
            check=False,
            env={"PATH": os.environ["PATH"]},
        )
    assert (done.stderr, json.loads(done.stdout or "{}").get("result")) == ("", "updated")
    assert accepted_policy.read_offer(str(tmp_path)) == host.policy(2)
    assert {request.method for request in proxy.requests} == {"CONNECT"}
