# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The probe listener of a real runner, asked as a load balancer asks it, while events come and go."""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from forewarn.emulator.client import EmulatorClient
from tools.servers.listener_client import free_port
from tools.sites.commands import forewarn
from tools.sites.runner_process import Process, Start, compiled, program
from tools.sites.waiting import wait_until

pytestmark = pytest.mark.emulated(gone_after=120)

POLICY = """
name: pool
rule:
  match:
    - id: drain
      condition: event.EventType == "Reboot" && affects_me
      output: approve
      prepare: [{{run: [{hook}], timeout: 60s}}]
      recover: [{{run: [{hook}], timeout: 60s}}]
    - {{id: freeze, condition: 'event.EventType == "Freeze"', output: approve}}
    - {{id: rest, output: hold}}
"""
# Each phase ends when its file is there.
HOOK = """while ! [ -e {directory}/$FOREWARN_PHASE ]; do sleep 0.02; done
"""


@pytest.fixture
def artifact(tmp_path: Path) -> Path:
    hook = program(tmp_path / "hook", HOOK.format(directory=tmp_path))
    return compiled(tmp_path, POLICY.format(hook=hook))


class ProbedRunner:
    """A runner with a probe listener; ``()`` asks /readyz."""

    def __init__(self, start: Start, artifact: Path, *arguments: str) -> None:
        self.port = free_port()
        listen = f"127.0.0.1:{self.port}"
        self.runner: Process = start("--artifact", str(artifact), "--probe-listen", listen, *arguments)
        self.runner.wait_for("document")

    def __call__(self, path: str = "/readyz") -> int:
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)) as connection:
            connection.request("GET", path)
            answer = connection.getresponse()
            assert answer.read() in (b"ok\n", b"unavailable\n")
            return answer.status


@pytest.fixture
def probed(start: Start, artifact: Path) -> Callable[..., ProbedRunner]:
    return lambda *arguments: ProbedRunner(start, artifact, *arguments)


@pytest.mark.vm_python
def test_probe_is_503_from_first_hook_to_recovery(
    probed: Callable[..., ProbedRunner], emulator: EmulatorClient, tmp_path: Path
) -> None:
    probe = probed()
    assert (probe("/healthz"), probe()) == (200, 200)
    event = emulator.schedule("Reboot", ["web_0"], notice_seconds=900)
    probe.runner.wait_for("hook-started", phase="prepare")
    wait_until(lambda: probe() == 503)
    (tmp_path / "prepare").touch()
    probe.runner.wait_for("state", to="started")
    assert probe() == 503
    emulator.finish(event)
    probe.runner.wait_for("hook-started", phase="recover")
    assert probe() == 503
    (tmp_path / "recover").touch()
    wait_until(lambda: probe() == 200)
    assert probe("/healthz") == 200


def test_held_event_closes_the_probe_near_its_start(
    probed: Callable[..., ProbedRunner], emulator: EmulatorClient
) -> None:
    probe = probed("--probe-lead", "1000")
    far = emulator.schedule("Redeploy", ["web_0"], notice_seconds=3000)
    probe.runner.wait_for("decision", event_id=far)
    assert probe() == 200
    near = emulator.schedule("Terminate", ["web_0"], notice_seconds=900)
    wait_until(lambda: probe() == 503)
    emulator.cancel(near)
    wait_until(lambda: probe() == 200)


def test_restart_does_not_open_the_probe(
    start: Start, artifact: Path, emulator: EmulatorClient, tmp_path: Path
) -> None:
    """Not even where the new runner cannot learn who this VM is."""
    first = ProbedRunner(start, artifact)
    event = emulator.schedule("Freeze", ["web_0"], notice_seconds=900, duration_seconds=5)
    first.runner.wait_for("approved")
    wait_until(lambda: first() == 503)
    first.runner.process.kill()
    first.runner.end()
    emulator.inject_fault(500, requests="instance")
    second = ProbedRunner.__new__(ProbedRunner)
    second.port = first.port
    second.runner = start("--artifact", str(artifact), "--probe-listen", f"127.0.0.1:{first.port}")
    second.runner.wait_for("resumed")
    second.runner.wait_for("document")
    assert second() == 503
    second.runner.wait_for("decision", status="Started")
    emulator.finish(event)
    wait_until(lambda: second() == 200)


def test_a_drill_drains_as_the_real_event_would(probed: Callable[..., ProbedRunner], tmp_path: Path) -> None:
    probe = probed()
    command = ["drill", "--type", "Reboot", "--notice", "5m", "--duration", "1s"]
    state = str(tmp_path / "state-web_0")
    assert forewarn(*command, "--state", state).returncode == 0
    wait_until(lambda: probe() == 503)
    (tmp_path / "prepare").touch()
    (tmp_path / "recover").touch()
    wait_until(lambda: probe() == 200)


def test_slow_service_does_not_delay_the_probe(probed: Callable[..., ProbedRunner], emulator: EmulatorClient) -> None:
    probe = probed()
    emulator.inject_fault("latency", latency_seconds=9, times=1)  # a runner gives a request ten seconds
    polls = len(emulator.requests())
    wait_until(lambda: len(emulator.requests()) > polls)  # one is under way, and waits
    begun = time.monotonic()
    for _ in range(5):
        assert (probe("/healthz"), probe()) == (200, 200)
    assert time.monotonic() - begun < 6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--probe-listen", "example.com:9780"], "'example.com:9780' is not ADDRESS:PORT"),
        (["--probe-listen", "0.0.0.0:9780", "--probe-lead", "3601"], "the lead time of the probe is not between"),
        (["--probe-listen", "192.0.2.1:9780"], "Cannot listen on 192.0.2.1:9780 for probes"),
    ],
)
def test_what_cannot_be_is_refused_at_the_start(
    start: Start, artifact: Path, arguments: list[str], message: str
) -> None:
    code, error = start("--artifact", str(artifact), *arguments).end()
    assert code == 2
    assert message in error
