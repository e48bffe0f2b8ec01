# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two runners for one VM: the second is refused, wherever it keeps its state."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from forewarn.emulator.client import EmulatorClient
from forewarn.emulator.server import EmulatorServer
from forewarn.errors import InputError
from forewarn.imds.endpoint import parse_endpoint
from forewarn.runner.state.machine_lock import MachineLock
from tools.sites.runner_process import Process, compiled

STRANGER = 54321
HOLDER = """
import os, sys
from forewarn.imds.endpoint import parse_endpoint
from forewarn.runner.state.machine_lock import MachineLock
if sys.argv[2]:
    os.setuid(int(sys.argv[2]))
lock = MachineLock(parse_endpoint(sys.argv[1]), None)
lock.lock()
print(os.getpid(), flush=True)
sys.stdin.read()
"""
URL = f"http://127.0.0.1:{os.getpid() % 50_000 + 1000}"  # nobody else's


@contextmanager
def holder(url: str, uid: str = "") -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", HOLDER, url, uid]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline().strip() == str(process.pid)
        yield process
        process.kill()


def taken(url: str, vm: str | None = None) -> MachineLock:
    lock = MachineLock(parse_endpoint(url), vm)
    lock.lock()
    return lock


def test_second_runner_is_refused_until_the_first_ends() -> None:
    """The error names the process that holds the lock."""
    with holder(f"{URL}/a") as first:
        for _ in range(300):  # systemd may try again for days
            with pytest.raises(InputError) as caught:
                taken(f"{URL}/a")
        assert caught.value.exit_code == 2
        assert f"process {first.pid}," in caught.value.message
        assert f"{URL}/a" in caught.value.message
        first.send_signal(signal.SIGKILL)
        first.wait()
        taken(f"{URL}/a").release()


def test_lock_can_be_taken_again_after_release() -> None:
    for _ in range(3):
        lock = taken(f"{URL}/b")
        lock.release()
        lock.release()


def test_runners_of_different_vms_coexist() -> None:
    with ExitStack() as stack:
        for url, vm in ((f"{URL}/c", None), (f"{URL}/d", None), (f"{URL}/c", "web_0"), (f"{URL}/c", "web_1")):
            stack.callback(taken(url, vm).release)
        with pytest.raises(InputError, match="for web_1 already"):
            taken(f"{URL}/c", "WEB_1")


def test_link_local_service_belongs_to_one_vm() -> None:
    first = taken("http://169.254.177.3:8177", "web_0")
    with pytest.raises(InputError, match="already"):
        taken("http://169.254.177.3:8177")
    first.release()


@pytest.mark.root(reason="only root can be somebody else")
def test_lock_of_another_user_does_not_block_root() -> None:
    """The other user's process is reported."""
    with holder(f"{URL}/e", str(STRANGER)) as stranger:
        lock = taken(f"{URL}/e")
        assert any(f"process {stranger.pid} of user {STRANGER}" in text for text in lock.others)
        with pytest.raises(InputError, match="another runner"):  # and still there is only one of root's
            taken(f"{URL}/e")
        stranger.send_signal(signal.SIGKILL)
        stranger.wait()
        with pytest.raises(InputError, match="another runner"):
            taken(f"{URL}/e")
        lock.release()


@pytest.mark.root(reason="only root can be somebody else")
def test_another_users_runner_gives_way_to_roots() -> None:
    lock = taken(f"{URL}/f")
    command = [sys.executable, "-c", HOLDER, f"{URL}/f", str(STRANGER)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 1
    assert f"process {os.getpid()}," in done.stderr
    lock.release()


def test_forewarn_run_with_another_state_directory(tmp_path: Path) -> None:
    policy = ("--artifact", str(compiled(tmp_path, "name: all\nrule:\n  match:\n    - {output: approve}\n")))
    with EmulatorServer(vms=["web_0"]) as server, EmulatorClient(server.url) as emulator:
        endpoint = server.vm_endpoint("web_0")
        first = Process(*policy, endpoint=endpoint, state=tmp_path / "one")
        first.wait_for("started")
        second = Process(*policy, endpoint=endpoint, state=tmp_path / "two")
        code, text = second.end()
        assert code == 2
        assert f"process {first.process.pid}," in text
        dry = Process(*policy, "--dry-run", endpoint=endpoint, state=tmp_path / "three")
        dry.wait_for("started")
        assert Process(*policy, "--once", endpoint=endpoint, state=tmp_path / "four").end()[0] == 0
        dry.stop()
        first.stop(signal.SIGKILL)
        third = Process(*policy, endpoint=endpoint, state=tmp_path / "two")
        third.wait_for("started")
        assert third.stop()[0] == 0
        assert emulator.requests()
