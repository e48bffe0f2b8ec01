# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The event source under the real ansible-rulebook, with the rulebook of the collection, against the emulator."""

from __future__ import annotations

import asyncio
import json
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from forewarn.compiler.policies import load_policies
from forewarn.emulator.client import EmulatorClient
from forewarn.emulator.server import EmulatorServer
from tools.sites import rulebooks

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


@pytest.mark.full  # to install ansible-rulebook takes longest; test_eda_fleet has its turn with it
def test_a_rulebook_hears_of_events_decisions_and_faults(
    emulator: EmulatorClient, artifact: Path, repository: Path, collections_path: Path, tmp_path: Path
) -> None:
    (tmp_path / "hosts").write_text("localhost ansible_connection=local\n")
    (tmp_path / "vars.yml").write_text(f"endpoint: {emulator.vm_endpoint('web_0')}\npolicies: [{artifact}]\n")
    arguments = ["--rulebook", "forewarn.azure.scheduled_events", "--inventory", "hosts", "--vars", "vars.yml"]
    with rulebooks.running(rulebooks.installed(repository), arguments, tmp_path, collections_path) as rulebook:
        freeze = emulator.schedule("Freeze", ["web_0"], notice_seconds=900)
        rulebook.hear(f"APPROVE Freeze {freeze}: ")
        reboot = emulator.schedule("Reboot", ["web_0"], notice_seconds=900)
        rulebook.hear(f"HELD Reboot {reboot}: ")
        emulator.inject_fault(403, times=1)
        rulebook.hear("FAULT http://127.0.0.1:")
        emulator.cancel(reboot)
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


def test_source_fills_the_queue_until_cancelled(emulator: EmulatorClient, repository: Path) -> None:
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
