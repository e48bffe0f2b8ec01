# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hooks on Windows: what they get, how long they may run, and what becomes of them when the runner is killed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tools.sites.waiting import wait_until
from tools.worlds.windows.vm import DATA, WindowsVm

PYTHON_HOOK = r"""
import json, os, pathlib, sys
event = json.load(sys.stdin)
said = {"words": sys.argv[1:], "type": event["event"]["EventType"], "id": os.environ["FOREWARN_EVENT_ID"]}
said["path"] = os.environ["PATH"]
pathlib.Path(r"C:\hooks\said").write_text(json.dumps(said))
print("d\u00fcsseldorf")
"""


def policy(hook: str, **values: Any) -> str:
    """Return a policy that prepares for a reboot with a hook."""
    more = "".join(f", {name}: {value}" for name, value in values.items())
    return f"""
name: windows
rule:
  match:
    - id: reboot
      condition: event.EventType == "Reboot" && affects_me && event.EventStatus == "Scheduled"
      output: approve
      prepare: [{{run: {hook}{more}}}]
      recover: [{{run: ['C:\\hooks\\recover.cmd']}}]
    - {{id: rest, output: hold}}
"""


@pytest.fixture(autouse=True)
def recovers(vm: WindowsVm) -> None:
    vm.hook("recover", r">>C:\hooks\said echo recover")


def test_program_gets_its_words_and_the_event(vm: WindowsVm) -> None:
    vm.wine.path(r"C:\hooks\hook.py").write_text(PYTHON_HOOK)
    words = ["two words", 'a"b\\', "für & 100% <x>", ""]
    listed = ", ".join("'" + word.replace("'", "''") + "'" for word in words)
    vm.policy(policy(rf"['C:\python\python.exe', '-X', utf8, 'C:\hooks\hook.py', {listed}]", timeout="1m"))
    runner = vm.start()
    event = vm.emulator.schedule("Reboot", ["web_0"], notice_seconds=600, start_delay_seconds=300)
    ended = runner.wait_for("hook-ended", phase="prepare")
    assert (ended["result"], ended["output"].strip()) == ("succeeded", "düsseldorf")
    said = json.loads(vm.said()[0])
    assert (said["words"], said["type"], said["id"]) == (words, "Reboot", event)
    assert said["path"].lower().startswith(r"c:\windows\system32;c:\windows;")


def test_hook_over_its_time_ends_with_its_children(vm: WindowsVm) -> None:
    hook = vm.hook("slow", r"start /b ping -n 300 127.0.0.1 >nul", "ping -n 301 127.0.0.1 >nul")
    vm.policy(policy(f"['{hook}']", timeout="2s", retry="{attempts: 1}"))
    runner = vm.start()
    vm.emulator.schedule("Reboot", ["web_0"], notice_seconds=600)
    runner.wait_for("hook-started", phase="prepare")
    wait_until(lambda: len(vm.processes("127.0.0.1")) == 2, pause=0.05)
    ended = runner.wait_for("hook-ended", phase="prepare")
    assert ended["result"] == "timed-out"
    wait_until(lambda: vm.processes("127.0.0.1") == [], 10, 0.05)
    assert vm.approvals() == []


def test_hooks_end_with_a_killed_runner(vm: WindowsVm) -> None:
    """Its job has ended; the next runner finds none left over, and prepares again."""
    hook = vm.hook("wait", r">>C:\hooks\said echo %FOREWARN_PHASE% %FOREWARN_ATTEMPT%", "ping -n 300 127.0.0.1 >nul")
    vm.policy(policy(f"['{hook}']", timeout="5m"))
    first = vm.start()
    vm.emulator.schedule("Reboot", ["web_0"], notice_seconds=600, impact_seconds=0)
    wait_until(lambda: vm.processes("127.0.0.1"), pause=0.05)
    vm.kill(first)
    wait_until(lambda: vm.processes("127.0.0.1") == [], 10, 0.05)
    vm.hook("wait", r">>C:\hooks\said echo %FOREWARN_PHASE% %FOREWARN_ATTEMPT%")
    second = vm.start()
    second.wait_for("approved")
    vm.wait_until_over()
    assert vm.said() == ["prepare 1", "prepare 2", "recover"]
    assert [line for line in second.lines if line["line"] == "hook-left-over"] == []


def test_runner_killed_while_it_recovers_recovers_again(vm: WindowsVm) -> None:
    hook = vm.hook("fast", r">>C:\hooks\said echo %FOREWARN_PHASE% %FOREWARN_ATTEMPT%")
    vm.hook("recover", r">>C:\hooks\said echo %FOREWARN_PHASE% %FOREWARN_ATTEMPT%", "ping -n 300 127.0.0.1 >nul")
    vm.policy(policy(f"['{hook}']"))
    first = vm.start()
    vm.emulator.schedule("Reboot", ["web_0"], notice_seconds=600, impact_seconds=0)
    wait_until(lambda: vm.processes("127.0.0.1"), pause=0.05)
    vm.kill(first)
    vm.hook("recover", r">>C:\hooks\said echo %FOREWARN_PHASE% %FOREWARN_ATTEMPT%")
    vm.start().wait_for("resumed", state="recovering")
    vm.wait_until_over()
    assert vm.said() == ["prepare 1", "recover 1", "recover 2"]
    assert len(vm.approvals()) == 1


def test_full_event_is_prepared_under_load(vm: WindowsVm) -> None:
    """Twenty events at once, each with a hook: none is left out, none runs twice, and all share one recovery."""
    hook = vm.hook("fast", r">>C:\hooks\said.%FOREWARN_EVENT_ID% echo %FOREWARN_PHASE%")
    vm.policy(policy(f"['{hook}']"))
    vm.start()
    events = [
        vm.emulator.schedule("Reboot", ["web_0"], notice_seconds=600, start_delay_seconds=0.1, impact_seconds=0)
        for _ in range(20)
    ]
    wait_until(lambda: [record.state for record in vm.records()] == ["done"] * 20, pause=0.1)
    assert sorted(event for ids in vm.approvals() for event in ids) == sorted(events)
    for event in events:
        assert vm.wine.path(rf"C:\hooks\said.{event}").read_text().split() == ["prepare"]
    assert {*vm.said()} == {"recover"}


def test_credential_reaches_a_hook_decrypted(vm: WindowsVm) -> None:
    stored = vm.forewarn("credential", "token", stdin=b"open sesame")
    assert stored.returncode == 0, stored
    file = vm.wine.path(rf"{DATA}\credentials\token")
    assert b"sesame" not in file.read_bytes()
    file.chmod(0o600)  # under Wine a file does not inherit who may read it
    hook = vm.hook("secret", r'copy "%CREDENTIALS_DIRECTORY%\token" C:\hooks\said >nul')
    vm.policy(policy(f"['{hook}']", credentials="[token]"))
    runner = vm.start()
    vm.emulator.schedule("Reboot", ["web_0"], notice_seconds=600, start_delay_seconds=300)
    ended = runner.wait_for("hook-ended", phase="prepare")
    assert ended["result"] == "succeeded", ended
    assert vm.said() == ["open sesame"]
    assert list((vm.state / "hooks").rglob("token")) == []


def test_no_credential_copy_outlives_a_killed_runner(vm: WindowsVm) -> None:
    """The event is over before the next runner starts, which has no hook to lend a credential to."""
    assert vm.forewarn("credential", "token", stdin=b"open sesame").returncode == 0
    vm.wine.path(rf"{DATA}\credentials\token").chmod(0o600)  # under Wine a file does not inherit who may read it
    hook = vm.hook("secret", r"ping -n 300 127.0.0.1 >nul")
    vm.policy(policy(f"['{hook}']", credentials="[token]", timeout="5m"))
    first = vm.start()
    event = vm.emulator.schedule("Reboot", ["web_0"], notice_seconds=600)
    wait_until(lambda: vm.processes("127.0.0.1"), pause=0.05)
    assert [file.read_bytes() for file in (vm.state / "hooks").rglob("token")] == [b"open sesame"]
    vm.kill(first)
    vm.emulator.cancel(event)
    vm.start().wait_for("document")
    assert list((vm.state / "hooks").rglob("token")) == []
