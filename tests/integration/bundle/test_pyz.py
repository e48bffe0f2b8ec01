# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""forewarn.pyz as a VM runs it, against the emulator: by each Python that is here, without any package installed."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import threading
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from forewarn import bundle
from forewarn.bundle import archive
from forewarn.emulator.client import EmulatorClient
from forewarn.emulator.server import EmulatorServer
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
# Runs there, with the file as its argument.
IMPORT_ALL = """
import importlib, sys, zipfile
sys.path.insert(0, sys.argv[1])
names = [name[:-3].replace("/", ".") for name in zipfile.ZipFile(sys.argv[1]).namelist() if name != "__main__.py"]
for name in names:
    importlib.import_module(name.replace(".__init__", ""))
files = [module.__file__ for name, module in sys.modules.items() if name.partition(".")[0] == "forewarn"]
assert len(files) == len(names) > 40 and all(file.startswith(sys.argv[1]) for file in files), files
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


@pytest.mark.versions
@pytest.mark.parametrize("version", SUPPORTED)
def test_nothing_that_it_imports_is_missing(pyz: Path, version: str) -> None:
    command = [python(version), "-I", "-S", "-B", "-W", "error", "-c", IMPORT_ALL, str(pyz)]
    done = run_program(*command)
    assert (done.returncode, done.stderr) == (0, "")


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


@pytest.fixture
def receiver() -> Iterator[tuple[str, queue.Queue[dict[str, Any]]]]:
    """Return the URL of a server that takes what http hooks send, and what has been sent."""
    received: queue.Queue[dict[str, Any]] = queue.Queue()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield f"http://127.0.0.1:{httpd.server_port}/drain", received
        httpd.shutdown()
        thread.join(10)


@pytest.mark.versions
@pytest.mark.parametrize("version", ["3.8", "3.13"])
def test_hooks_run_after_the_bundle_file_is_replaced(
    pyz: Path,
    environ: dict[str, str],
    emulator: EmulatorClient,
    receiver: tuple[str, queue.Queue[dict[str, Any]]],
    tmp_path: Path,
    version: str,
) -> None:
    """An upgrade replaces the file before it restarts the runner: nothing is read at the old file's offsets."""
    url, received = receiver
    artifact = compiled(tmp_path, HOOK.format(url=url))
    file = tmp_path / "forewarn.pyz"
    file.write_bytes(pyz.read_bytes())
    with zipfile.ZipFile(pyz) as bundle:
        newer = {name: b"# newer\n" * 9 + bundle.read(name) for name in bundle.namelist()}
    command = [python(version), "-I", "-S", str(file), "run", "--artifact", str(artifact), "--log-format", "json"]
    log = tmp_path / "log"
    with (
        log.open("w") as stdout,
        subprocess.Popen(command, env=environ, stdout=stdout, stderr=subprocess.PIPE) as runner,
    ):
        try:
            wait_until(lambda: '"line": "document"' in log.read_text())
            other = tmp_path / "other.pyz"
            other.write_bytes(archive(newer))
            other.replace(file)
            event_id = emulator.schedule("Reboot", ["web_0"])
            wait_until(lambda: approvals(emulator) == [[event_id]])
            prepared = received.get(timeout=10)
            emulator.cancel(event_id)
            recovered = received.get(timeout=10)
            runner.send_signal(signal.SIGHUP)
            wait_until(lambda: '"line": "reloaded"' in log.read_text())
            runner.send_signal(signal.SIGTERM)
            assert runner.wait(20) == 0
        finally:
            runner.kill()
        assert runner.stderr
        assert runner.stderr.read() == b""
    assert [(sent["phase"], sent["event"]["EventId"]) for sent in (prepared, recovered)] == [
        ("prepare", event_id),
        ("recover", event_id),
    ]
