# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""forewarn.pyz as a VM runs it, against the emulator: by each Python that is here, without any package installed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from forewarn import bundle
from forewarn.bundle import archive
from forewarn.emulator.client import EmulatorClient
from forewarn.emulator.server import EmulatorServer
from tools.servers.webhooks import Webhook
from tools.sites.commands import run_program
from tools.sites.pythons import RUNNING, SUPPORTED, python
from tools.sites.runner_process import approvals, compiled
from tools.sites.waiting import wait_until

POLICY = """
name: web-tier
rule:
  match:
    - id: brief-freeze
      condition: event.EventType == "Freeze" && event.DurationInSeconds == 5
      output: approve
"""
HOOK = """
name: drain
rule:
  match:
    - output: approve
      prepare:
        - http: {url}
      recover:
        - http: {url}
"""

Forewarn = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("policy"), POLICY)


@pytest.fixture
def server() -> Iterator[EmulatorServer]:
    with EmulatorServer(vms=["web_0", "web_1"]) as running:
        yield running


@pytest.fixture
def environ(server: EmulatorServer, tmp_path: Path) -> dict[str, str]:
    return {"FOREWARN_ENDPOINT": server.vm_endpoint("web_0"), "STATE_DIRECTORY": str(tmp_path / "state")}


@pytest.fixture
def forewarn(pyz: Path, environ: dict[str, str]) -> Forewarn:
    """Return a function that runs a command by the Python of a version."""

    def run(version: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [python(version), "-I", "-S", "-W", "error", str(pyz), *arguments]
        return run_program(*command, env=environ)

    return run


@pytest.mark.versions
@pytest.mark.parametrize("version", SUPPORTED)
def test_it_decides_and_approves(forewarn: Forewarn, emulator: EmulatorClient, artifact: Path, version: str) -> None:
    event_id = emulator.schedule("Freeze", ["web_0", "web_1"], duration_seconds=5)
    done = forewarn(version, "run", "--once", "--artifact", str(artifact), "--log-format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    (decision,) = [line for line in map(json.loads, done.stdout.splitlines()) if line["line"] == "decision"]
    assert (decision["event_id"], decision["rule"]) == (event_id, "brief-freeze")
    assert approvals(emulator) == [[event_id]]


@pytest.mark.versions
@pytest.mark.parametrize("version", SUPPORTED)
def test_it_shows_what_is_scheduled(forewarn: Forewarn, emulator: EmulatorClient, version: str) -> None:
    event_id = emulator.schedule("Reboot", ["web_0"])
    done = forewarn(version, "events", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert event_id in done.stdout
    assert json.loads(done.stdout)


@pytest.mark.versions
@pytest.mark.parametrize("version", SUPPORTED)
def test_it_knows_its_version_and_build(forewarn: Forewarn, version: str) -> None:
    done = forewarn(version, "--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"forewarn {bundle.version()}\n", "")


def test_it_is_a_program_of_its_own(pyz: Path, environ: dict[str, str]) -> None:
    search_path = Path(python(RUNNING)).parent
    assert (search_path / "python3").exists()
    done = run_program(pyz, "events", env={**environ, "PATH": f"{search_path}:{os.defpath}"})
    assert (done.returncode, done.stderr) == (0, "")


def test_it_can_be_unpacked(pyz: Path, environ: dict[str, str], tmp_path: Path) -> None:
    """For a quicker start: docs/runner.md."""
    directory = tmp_path / "forewarn"
    for arguments in (
        ["-m", "zipfile", "--extract", str(pyz), str(directory)],
        ["-m", "compileall", "-q", str(directory)],
    ):
        subprocess.run([python(RUNNING), *arguments], check=True, timeout=60)
    done = run_program(python(RUNNING), "-I", "-S", directory, "events", env=environ)
    assert (done.returncode, done.stderr) == (0, "")
    assert list(directory.rglob("events.*.pyc"))


def test_a_damaged_artifact_is_refused(forewarn: Forewarn, artifact: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "policy.json"
    damaged.write_text(artifact.read_text().replace('"approve"', '"hold"'))
    done = forewarn(RUNNING, "run", "--once", "--artifact", str(damaged))
    assert done.returncode == 2
    assert str(damaged) in done.stderr
    assert "digest" in done.stderr
    assert "Traceback" not in done.stderr


def test_policy_files_are_for_the_control_node(forewarn: Forewarn, tmp_path: Path) -> None:
    (tmp_path / "web.yml").write_text(POLICY)
    done = forewarn(RUNNING, "run", "--once", "--policy", str(tmp_path / "web.yml"))
    assert done.returncode == 2
    assert "--artifact" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.versions
@pytest.mark.parametrize("version", ["3.8", "3.13"])
def test_hooks_run_after_the_bundle_file_is_replaced(
    pyz: Path, environ: dict[str, str], emulator: EmulatorClient, tmp_path: Path, version: str
) -> None:
    """An upgrade replaces the file before it restarts the runner: nothing is read at the old file's offsets."""
    file, log = tmp_path / "forewarn.pyz", tmp_path / "log"
    file.write_bytes(pyz.read_bytes())
    with zipfile.ZipFile(pyz) as bundle:
        newer = {name: b"# newer\n" * 9 + bundle.read(name) for name in bundle.namelist()}
    command = [python(version), "-I", "-S", str(file), "run", "--log-format", "json", "--artifact"]
    with Webhook() as webhook, log.open("w") as stdout:
        command.append(str(compiled(tmp_path, HOOK.format(url=webhook.url))))
        runner = subprocess.Popen(command, env=environ, stdout=stdout, stderr=subprocess.PIPE, text=True)
        try:
            wait_until(lambda: '"line": "document"' in log.read_text())
            other = tmp_path / "other.pyz"
            other.write_bytes(archive(newer))
            other.replace(file)
            event_id = emulator.schedule("Reboot", ["web_0"])
            wait_until(lambda: approvals(emulator) == [[event_id]])
            emulator.cancel(event_id)
            wait_until(lambda: len(webhook.requests) == 2)
            runner.send_signal(signal.SIGHUP)
            wait_until(lambda: '"line": "reloaded"' in log.read_text())
            runner.send_signal(signal.SIGTERM)
            assert (runner.communicate(timeout=20)[1], runner.returncode) == ("", 0)
        finally:
            runner.kill()
            runner.wait()
        bodies = [json.loads(request.body) for request in webhook.requests]
    assert [(body["phase"], body["event"]["EventId"]) for body in bodies] == [
        ("prepare", event_id),
        ("recover", event_id),
    ]
