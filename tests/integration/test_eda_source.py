# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The event source under the real ansible-rulebook, with the rulebook of the collection, against the emulator."""

from __future__ import annotations

import asyncio
import json
import os
import runpy
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from forewarn.compiler.policyfile import load_policies
from forewarn.emulator.client import EmulatorClient
from forewarn.emulator.server import EmulatorServer
from tools.waiting import wait_until

REQUIREMENTS = ("ansible-rulebook==1.3.2", "ansible-core>=2.19,<2.20")
SOURCE = "extensions/eda/plugins/event_source/scheduled_events.py"
POLICY = """\
name: freezes
description: Freezes pass.
rule: {match: [{id: freeze, condition: event.EventType == "Freeze", output: approve}, {id: rest, output: hold}]}
"""


@pytest.fixture
def emulator() -> Iterator[EmulatorClient]:
    with EmulatorServer(vms=["web_0"]) as server, EmulatorClient(server.url) as client:
        yield client


@pytest.fixture
def artifact(tmp_path: Path) -> Path:
    (tmp_path / "freezes.yml").write_text(POLICY)
    path = tmp_path / "policy.json"
    path.write_text(json.dumps(load_policies([tmp_path / "freezes.yml"]).data))
    return path


@pytest.fixture(scope="session")
def rulebook_bin(repository: Path) -> Path:
    """Return the directory of ansible-rulebook. Its virtual environment is made once, in half a minute."""
    venv = repository / ".cache" / "ansible-rulebook" / "venv"
    lacking = "" if shutil.which("java") else "Java 17 or newer, on which ansible-rulebook's engine runs"
    if not lacking and not (venv / "bin" / "ansible-rulebook").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(venv)], check=True)
        command = [str(venv / "bin" / "pip"), "install", "-qq", *REQUIREMENTS]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            shutil.rmtree(venv)
            lacking = " and ".join(REQUIREMENTS) + " from PyPI"
    if lacking:
        if os.environ.get("CI"):
            pytest.fail(f"CI needs {lacking}")
        pytest.skip(f"needs {lacking}")
    return venv / "bin"


def test_a_rulebook_hears_of_events_decisions_and_faults(
    emulator: EmulatorClient, artifact: Path, rulebook_bin: Path, collections_path: Path, tmp_path: Path
) -> None:
    (tmp_path / "hosts").write_text("localhost ansible_connection=local\n")
    (tmp_path / "vars.yml").write_text(f"endpoint: {emulator.vm_endpoint('web_0')}\npolicies: [{artifact}]\n")
    environ = {
        **{name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")},
        "PATH": f"{rulebook_bin}:{os.environ['PATH']}",
        "ANSIBLE_COLLECTIONS_PATH": str(collections_path),
        "ANSIBLE_HOME": str(tmp_path / "home"),
        "PYTHONUNBUFFERED": "1",
    }
    rulebook = ["--rulebook", "forewarn.azure.scheduled_events", "--inventory", "hosts", "--vars", "vars.yml"]
    process = subprocess.Popen(
        [str(rulebook_bin / "ansible-rulebook"), *rulebook],
        cwd=tmp_path,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    lines: list[str] = []
    assert process.stdout is not None
    reader = threading.Thread(target=lambda: lines.extend(process.stdout or ()), daemon=True)
    reader.start()

    def hear(text: str) -> None:
        wait_until(lambda: process.poll() is not None or any(text in line for line in lines), 60)
        assert any(text in line for line in lines), "".join(lines)

    try:
        freeze = emulator.schedule("Freeze", ["web_0"], notice_seconds=900)
        hear(f"APPROVE Freeze {freeze}: ")
        reboot = emulator.schedule("Reboot", ["web_0"], notice_seconds=900)
        hear(f"HELD Reboot {reboot}: ")
        emulator.inject_fault(403, times=1)
        hear("FAULT http://127.0.0.1:")
        emulator.cancel(reboot)
    finally:
        process.terminate()
        process.wait(30)
        reader.join(10)
    assert not any(request["method"] == "POST" for request in emulator.requests()), "it reads only"


def test_what_is_news_and_what_is_not(emulator: EmulatorClient, artifact: Path, repository: Path) -> None:
    source = runpy.run_path(str(repository / SOURCE))["Source"](
        {"endpoint": emulator.vm_endpoint("web_0"), "policies": str(artifact)}
    )
    assert source.poll() == ([], 1.0)
    event_id = emulator.schedule("Reboot", ["web_0"], start_delay_seconds=0)
    ((new,), _) = source.poll()
    assert (new["change"], new["vm_name"], new["scheduled_event"]["event_id"]) == ("new", "web_0", event_id)
    assert (new["decision"]["output"], new["decision"]["rule"]) == ("hold", "rest")
    assert source.poll()[0] == [], "the time left is not news"
    emulator.inject_fault(410, times=2)
    ((fault,), delay) = source.poll()
    assert (fault["change"], fault["fault"]["status"], fault["fault"]["passing"]) == ("fault", 410, True)
    assert delay >= 1.0
    assert source.poll()[0] == [], "the same fault is not news"
    assert [item["change"] for item in source.poll()[0]] == ["recovered"]
    emulator.cancel(event_id)
    changes = [item["change"] for _ in range(3) for item in source.poll()[0]]
    assert changes[-1] == "gone"
    source.close()


def test_the_queue_is_fed_until_the_source_is_cancelled(emulator: EmulatorClient, repository: Path) -> None:
    main = runpy.run_path(str(repository / SOURCE))["main"]
    emulator.schedule("Freeze", ["web_0"])

    async def listen() -> dict[str, Any]:
        queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        task = asyncio.create_task(main(queue, {"endpoint": emulator.vm_endpoint("web_0")}))
        item = await asyncio.wait_for(queue.get(), 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return item

    item = asyncio.run(listen())
    assert (item["change"], "decision" in item) == ("new", False)


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ({"polices": []}, "there is no option polices"),
        ({"policies": ""}, "a path of policies is empty"),
        ({"policies": ["nowhere.json"]}, "nowhere.json: No such file"),
        ({"endpoint": "https://127.0.0.1"}, "the service speaks http only"),
    ],
)
def test_wrong_options_end_the_rulebook(repository: Path, args: dict[str, Any], text: str) -> None:
    with pytest.raises(Exception, match=text):
        runpy.run_path(str(repository / SOURCE))["Source"](args)
