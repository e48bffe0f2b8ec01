# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hooks on Windows as real processes: each has an outcome, its tree ends with it, and with the runner."""

from __future__ import annotations

import json
import subprocess
import uuid
from typing import Any

import psutil
import pytest
from forewarn.runner.hooks.executor import HookResult
from tools.sites.waiting import wait_until
from tools.sites.wine import PYTHON
from tools.worlds.windows.vm import HOOKS, PYZ, Windows

# Runs a hook as the runner does. Its argument is the package; a line of JSON has the hook's words, stdin and timeout.
DRIVER = """
import json, sys, threading
sys.path.insert(0, sys.argv[1])
from forewarn.runner.hooks.commands import Command
from forewarn.runner.hooks.executor import Executor
from forewarn.system.programs import BASE_ENVIRONMENT
words, stdin, timeout = json.loads(sys.stdin.readline())
woken = threading.Event()
executor = Executor(woken.set, grace_seconds=0.5)
executor.start(1, Command(tuple(words), {**BASE_ENVIRONMENT, "FOREWARN_RULE": "drain"}, stdin.encode(), timeout))
woken.wait(60)
print(json.dumps(executor.take_results()[0][1]))
"""
DRIVE = (PYTHON, rf"{HOOKS}\driver.py", PYZ)
# A hook that has started another process. Its argument is for the test to find both.
TREE = """
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(90)", sys.argv[1]])
"""
# Another process, looked at by its start, by another start, and before and after it is killed.
LEFTOVER = """
import subprocess, sys
sys.path.append(sys.argv[1])
from forewarn.system.processes import LeftoverProcess
from forewarn.system.windows.children.process_identity import created
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(90)"])
started = created(int(child._handle))
left, other = LeftoverProcess(child.pid, started), LeftoverProcess(child.pid, started + 1)
print(left.found(), other.found())
other.kill()
print(child.poll() is None)
left.kill()
child.wait()
print(left.remains(True))
"""
# A hook that ends when it is asked to.
LISTENER = """
import ctypes, os
kernel32 = ctypes.WinDLL("kernel32")
kernel32.OpenEventW.restype = ctypes.c_void_p
event = kernel32.OpenEventW(0x100000, False, ctypes.c_wchar_p(os.environ["FOREWARN_STOP_EVENT"]))
kernel32.WaitForSingleObject(ctypes.c_void_p(event), -1)
print("bye")
"""


@pytest.fixture(autouse=True)
def _hooks(windows: Windows) -> None:
    windows.wine.path(HOOKS).mkdir(mode=0o755, exist_ok=True)
    windows.wine.path(rf"{HOOKS}\driver.py").write_text(DRIVER)


def outcome(windows: Windows, *words: str, stdin: str = "", timeout: float = 60.0) -> HookResult:
    done = windows.wine.run(*DRIVE, stdin=json.dumps([words, stdin, timeout]).encode())
    assert done.returncode == 0, done.stderr
    return HookResult(*json.loads(done.stdout))


def python(windows: Windows, code: str, *words: str, **options: Any) -> HookResult:
    return outcome(windows, PYTHON, "-X", "utf8", "-c", code, *words, **options)


def script(windows: Windows, name: str, content: bytes) -> str:
    path = rf"{HOOKS}\{name}"
    windows.wine.path(path).write_bytes(content)
    return path


def count_running(marker: str) -> int:
    """Return how many processes have a word, which is none of a driver's."""
    found = 0
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        found += marker in words and PYZ not in words
    return found


@pytest.mark.parametrize(
    ("code", "reason"), [(7, "it ended with exit code 7"), (0xC0000005, "it ended with exit code 0xC0000005")]
)
def test_exit_code_is_the_reason(windows: Windows, code: int, reason: str) -> None:
    result = python(windows, f"import ctypes; ctypes.WinDLL('kernel32').ExitProcess({code})")
    assert (result.result, result.exit_code, result.reason) == ("failed", code, reason)


def test_hook_gets_words_input_and_environment(windows: Windows) -> None:
    code = (
        "import json, os, sys; print(json.dumps([sys.argv[1:], sys.stdin.read(), os.getcwd().lower(), "
        "{name: os.environ.get(name) for name in ('FOREWARN_RULE', 'WINEPREFIX', 'ComSpec')}]))"
    )
    words = ["", "two words", 'a"b', "c\\", "für €", "%PATH%"]
    result = python(windows, code, *words, stdin="für €")
    environment = {"FOREWARN_RULE": "drain", "WINEPREFIX": None, "ComSpec": r"C:\windows\System32\cmd.exe"}
    assert json.loads(result.output) == [words, "für €", r"c:\windows", environment]


def test_batch_gets_words_and_prints_code_page(windows: Windows) -> None:
    hook = script(windows, "two words.cmd", b"@echo off\r\necho [%1] [%2] [%~3]\r\necho d\x81r\r\nexit /b 5\r\n")
    result = outcome(windows, hook, "one", "two words", "a,b")
    assert (result.result, result.exit_code) == ("failed", 5)
    assert result.output == '[one] ["two words"] [a,b]\ndür\n'


def test_batch_with_an_ampersand_is_not_started(windows: Windows) -> None:
    hook = script(windows, "drain.cmd", b"@echo started\r\n")
    result = outcome(windows, hook, "a&b")
    assert result.result == "not-started"
    assert "the argument a&b has '&' in it" in result.reason


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((r"C:\no\such.exe",), "it does not exist"),
        ((r"C:\no\such.cmd",), "it does not exist"),
        ((rf"{HOOKS}\driver.py",), "it is not a program of Windows"),
    ],
)
def test_what_cannot_start_says_why(windows: Windows, words: tuple[str, ...], says: str) -> None:
    result = outcome(windows, *words)
    assert result.result == "not-started"
    assert says in result.reason


def test_megabytes_do_not_block_a_hook(windows: Windows) -> None:
    code = "print('first'); print('x' * 1_000_000); print('last')"
    result = python(windows, code, stdin="unread" * 200_000)
    assert result.result == "succeeded"
    assert result.output.startswith("first\nx")
    assert result.output.endswith("x\nlast\n")
    assert "bytes left out" in result.output


def test_tree_ends_with_its_time(windows: Windows) -> None:
    marker = uuid.uuid4().hex
    result = python(windows, f"{TREE}print('on', flush=True); time.sleep(90)", marker, timeout=2.0)
    assert (result.result, result.exit_code, result.output) == ("timed-out", None, "on\n")
    assert result.reason == "it took longer than 2 s, and the request to end was not enough"
    wait_until(lambda: count_running(marker) == 0)


def test_hook_ends_at_the_event(windows: Windows) -> None:
    result = python(windows, LISTENER, timeout=2.0)
    assert (result.result, result.exit_code, result.output) == ("timed-out", 0, "bye\n")
    assert result.reason == "it took longer than 2 s"


def test_child_of_an_obedient_hook_is_killed(windows: Windows) -> None:
    marker = uuid.uuid4().hex
    result = python(windows, TREE + LISTENER, marker, timeout=2.0)
    assert (result.result, result.exit_code, result.output) == ("timed-out", 0, "bye\n")
    assert result.reason == "it took longer than 2 s, and the request to end was not enough"
    wait_until(lambda: count_running(marker) == 0)


def test_child_that_is_ours_ends_when_asked(windows: Windows) -> None:
    code = f"import sys, time; sys.path.append({PYZ!r}); from forewarn.system.processes import exit_at_request"
    result = python(windows, f"{code}; exit_at_request(); print('on', flush=True); time.sleep(90)", timeout=2.0)
    assert (result.result, result.output) == ("timed-out", "on\n")
    assert result.reason == "it took longer than 2 s"


def test_leftover_is_known_by_its_start(windows: Windows) -> None:
    """What a runner that died right after CreateProcess has left: a process in no job."""
    found = windows.wine.run(PYTHON, "-c", LEFTOVER, PYZ)
    assert found.stdout.split() == ["True", "False", "True", "False"], found


def test_what_a_hook_leaves_behind_stays(windows: Windows) -> None:
    """Also when the runner ends: its job no longer has it."""
    late = windows.wine.path(rf"{HOOKS}\late")
    late.unlink(missing_ok=True)
    code = f"import time; time.sleep(2); open({HOOKS + '/late'!r}, 'w').close()"
    result = python(windows, f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {code!r}])")
    assert result.result == "succeeded"
    wait_until(late.exists)


def test_killed_runner_takes_the_tree_along(windows: Windows) -> None:
    marker = uuid.uuid4().hex
    hook = json.dumps([[PYTHON, "-c", f"{TREE}time.sleep(90)", marker], "", 60.0])
    with windows.wine.popen(*DRIVE, stdin=subprocess.PIPE) as runner:
        try:
            assert runner.stdin
            runner.stdin.write(f"{hook}\n".encode())
            runner.stdin.flush()
            wait_until(lambda: count_running(marker) == 2)
        finally:
            runner.kill()
        wait_until(lambda: count_running(marker) == 0)
