# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Windows: what the action asks of ``ansible.windows.win_uri``, held against that module as it is published.

There is no Windows here. Its tasks are answered by this process, which sends the same request to the emulator.
"""

from __future__ import annotations

import importlib
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from forewarn.emulator.client import EmulatorClient
from forewarn.emulator.server import EmulatorServer
from tools.sites.ansible_windows import documented_options, mistakes

_COLLECTION = "ansible_collections.forewarn.azure.plugins"
POLICY = "name: all\ndescription: Passes.\nrule: {match: [{id: always, output: approve}]}\n"


@pytest.fixture(scope="session")
def documented(repository: Path) -> dict[str, Any]:
    """Return the options that win_uri documents."""
    options = documented_options(repository)["win_uri"]
    assert options["url_method"] == {**options["url_method"], "default": "GET", "type": "str"}
    return options


class Control(SimpleNamespace):
    """The action, connected to a Windows VM."""

    tasks: list[dict[str, Any]]

    def run(self, check: bool = False, **args: Any) -> dict[str, Any]:
        """Run one task."""
        action = self.action
        action._task.args = args
        action._task.check_mode = check
        result: dict[str, Any] = action.run(None, {})
        return result


@pytest.fixture
def control(collections_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Control:
    monkeypatch.syspath_prepend(str(collections_path))
    module = importlib.import_module(f"{_COLLECTION}.action.scheduled_events")
    control_node = importlib.import_module(f"{_COLLECTION}.plugin_utils._control_node")
    monkeypatch.setattr(control_node.C, "ANSIBLE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(control_node.C, "DEFAULT_LOCAL_TMP", str(tmp_path))
    monkeypatch.setenv("FOREWARN_ENDPOINT", "http://127.0.0.1:9/of/the/control/node")
    action = object.__new__(module.ActionModule)
    action._task = SimpleNamespace(args={}, check_mode=False, async_val=0, action="scheduled_events", diff=False)
    action._connection = SimpleNamespace(_shell=SimpleNamespace(SHELL_FAMILY="powershell", tmpdir="there"))
    found = SimpleNamespace(find_plugin=lambda name, mod_type: f"{name}{mod_type}")
    action._shared_loader_obj = SimpleNamespace(module_loader=found)
    control = Control(action=action, tasks=[], answer=_ask)

    def execute(module_name: str, module_args: dict[str, Any], task_vars: Any) -> dict[str, Any]:
        assert module_name == "ansible.windows.win_uri"
        control.tasks.append(module_args)
        answer: dict[str, Any] = control.answer(module_args)
        return answer

    action._execute_module = execute
    action._find_needle = lambda _directory, path: path
    return control


def _ask(options: dict[str, Any]) -> dict[str, Any]:
    """Answer as win_uri documents it."""
    headers = {**options["headers"], "User-Agent": options["http_agent"]}
    if "content_type" in options:
        headers["Content-Type"] = options["content_type"]
    body = options["body"].encode() if "body" in options else None
    request = urllib.request.Request(options["url"], body, headers, method=options["url_method"])
    try:
        with urllib.request.urlopen(request, timeout=options["url_timeout"]) as answer:
            return {
                "status_code": answer.status,
                "status_description": answer.reason,
                "content": answer.read().decode(),
            }
    except urllib.error.HTTPError as error:
        return {"status_code": error.code, "status_description": error.reason, "content": error.read().decode()}


@pytest.fixture
def emulator() -> Iterator[EmulatorClient]:
    with EmulatorServer(vms=["web_0", "web_1"]) as server, EmulatorClient(server.url) as client:
        yield client


def test_it_reads_decides_and_approves(
    control: Control, emulator: EmulatorClient, documented: dict[str, Any], tmp_path: Path
) -> None:
    policy = tmp_path / "all.yml"
    policy.write_text(POLICY)
    event_id = emulator.schedule("Reboot", ["web_0", "web_1"])
    args: dict[str, Any] = {"endpoint": emulator.vm_endpoint("web_0"), "timeout": "60"}
    args.update(policies=[str(policy)], apply=True)
    rehearsed = control.run(check=True, **args)
    assert (rehearsed["changed"], rehearsed["ahead"]) == (True, "Reboot in 15 min, here: would be approved")
    assert [task["url_method"] for task in control.tasks] == ["GET"] * 4, (
        "win_uri sends what it gets, check mode or not"
    )
    done = control.run(**args)
    assert (done["changed"], done["approved"]) == (True, [event_id])
    assert [request["vm"] for request in emulator.requests() if request["method"] == "POST"] == ["web_0"]
    post = control.tasks[-1]
    assert (post["url_method"], post["content_type"]) == ("POST", "application/json")
    assert post["body"] == f'{{"StartRequests": [{{"EventId": "{event_id}"}}]}}'
    for task in control.tasks:
        assert mistakes("win_uri", task, documented) == []
        assert task["headers"] == {"Metadata": "true"}
        assert (task["use_proxy"], task["follow_redirects"], task["return_content"]) == (False, "none", True)


def test_faults_are_those_of_the_client(control: Control, emulator: EmulatorClient) -> None:
    emulator.inject_fault(410, times=1)
    assert control.run(endpoint=emulator.vm_endpoint("web_0"))["msg"] == "nothing is scheduled"
    emulator.inject_fault(403)
    refused = control.run(endpoint=emulator.vm_endpoint("web_0"))
    assert refused["failed"]
    assert refused["fault"] == {"kind": "http", "status": 403, "passing": False}
    assert "proxyAgentSettings" in refused["msg"]
    for text, kind in (
        ("The operation has timed out.", "timeout"),
        ("Unable to connect to the remote server", "connection"),
    ):
        control.answer = lambda _options, text=text: {"failed": True, "msg": text}
        failed = control.run(patience=0)
        assert (failed["failed"], failed["fault"]["kind"]) == (True, kind)
        assert text.rstrip(".") in failed["msg"]
    assert control.tasks[-1]["url"].startswith("http://169.254.169.254/metadata/scheduledevents?"), (
        "not the environment's"
    )


def test_the_time_is_that_of_the_service(control: Control) -> None:
    """Windows' own clock is not asked, and the control node's may be wrong."""
    answer = {"status_code": 200, "status_description": "OK", "content": '{"DocumentIncarnation": 1, "Events": []}'}
    control.answer = lambda _options: {**answer, "date": "Sat, 31 Jan 2026 15:04:05 GMT"}
    assert control.run()["read_at"] == "2026-01-31T15:04:05Z"


def test_what_windows_does_not_have_is_refused(control: Control) -> None:
    failed = control.run(endpoint="auto")
    assert (failed["failed"], "leases of Linux" in failed["msg"]) == (True, True)
    assert control.run(timeout=0)["msg"] == "timeout must be at least 1 second."
    control.action._task.async_val = 60
    with pytest.raises(Exception, match="async is not supported on Windows"):
        control.run()
    control.action._task.async_val = 0
    control.action._shared_loader_obj.module_loader.find_plugin = lambda name, mod_type: None
    with pytest.raises(Exception, match=r"collection install ansible\.windows"):
        control.run()
    assert control.tasks == []
