# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What keeps a hook from starting, what it finds when it does, and systems that lack something."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest
from forewarn.system.posix import processes
from tools.fixtures.hook_bench import Hooks, wait_for


@pytest.fixture
def protected() -> Iterator[None]:
    """Protect this process from the kernel's OOM killer, as the unit does the runner."""
    own = Path("/proc/self/oom_score_adj")
    before = own.read_text()
    try:
        own.write_text("-500")
    except PermissionError:
        pytest.skip("that takes CAP_SYS_RESOURCE")
    yield
    own.write_text(before)


@pytest.mark.usefixtures("protected")
def test_hook_does_not_inherit_the_oom_protection(hooks: Hooks) -> None:
    script = 'while [ "$(cat /proc/self/oom_score_adj)" != 0 ]; do sleep 0.01; done'
    assert hooks.run(script).result == "succeeded"


@pytest.mark.parametrize(("own", "child"), [("-500", "0"), ("-1", "0"), ("0", None), ("200", None)])
def test_what_the_administrator_set_otherwise_is_inherited(
    hooks: Hooks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: str, child: str | None
) -> None:
    monkeypatch.setattr(processes, "_OOM_SCORE", str(tmp_path / "{}"))
    (tmp_path / "self").write_text(f"{own}\n")
    started = hooks.shell(1, "exit 0")
    hooks.wait(1)
    marker = tmp_path / str(started[0])
    assert (marker.read_text() if marker.exists() else None) == child


# What does not start


def why_not_started(hooks: Hooks, *argv: str) -> str:
    """Try to start a program, which must fail; return the reason."""
    assert hooks.start(1, *argv) is None
    outcome = hooks.wait(1)
    assert outcome.result == "not-started"
    return outcome.reason


def test_a_program_that_does_not_exist(hooks: Hooks) -> None:
    assert hooks.start(1, "/no/such/program") is None
    outcome = hooks.wait(1)
    assert outcome[:3] == ("not-started", None, 0.0)
    assert outcome.reason.startswith("/no/such/program could not be started: it does not exist")


@pytest.mark.parametrize(
    ("content", "mode", "says"),
    [
        ("#!/bin/sh\n", 0o644, "it is not executable"),
        ("#!/no/such/interpreter\n", 0o755, "what its first line (#!) names"),
        ("echo hello\n", 0o755, "a script begins with a line such as #!/bin/sh"),
        ("\x7fELF", 0o755, "it is not a program"),
    ],
)
def test_a_file_that_is_no_program(hooks: Hooks, tmp_path: Path, content: str, mode: int, says: str) -> None:
    program = tmp_path / "program"
    program.write_text(content)
    program.chmod(mode)
    assert says in why_not_started(hooks, str(program))


def test_a_program_that_is_being_written(hooks: Hooks, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(Path("/bin/true").read_bytes())
    program.chmod(0o755)
    with program.open("ab"):
        assert hooks.start(1, str(program)) is None
    assert "somebody is writing to it" in hooks.wait(1).reason


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (("/bin/true", "x" * 200_000), "its arguments are too long"),
        (("/bin/true", "a\0b"), "null byte"),
        (("/bin/true", "\ud800"), "could not be started"),
        (("/",), "it is not executable"),
    ],
)
def test_arguments_that_no_system_takes(hooks: Hooks, argv: tuple[str, ...], says: str) -> None:
    assert says in why_not_started(hooks, *argv)


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (BlockingIOError(errno.EAGAIN, "again"), "allows no more processes"),
        (OSError(errno.ENOMEM, "no memory"), "short of memory"),
        (MemoryError("none"), "none"),
        (subprocess.SubprocessError("odd"), "odd"),
    ],
)
def test_a_system_at_its_limits(hooks: Hooks, monkeypatch: pytest.MonkeyPatch, error: Exception, says: str) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "Popen", Mock(side_effect=error))
        assert says in why_not_started(hooks, "/bin/true")
    assert hooks.run("echo again").output == "again\n"


def test_no_thread_no_process(hooks: Hooks, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", Mock(side_effect=RuntimeError("can't start new thread")))
        assert "can't start new thread" in why_not_started(hooks, "/bin/sh", "-c", f"touch {tmp_path}/ran")
    assert list(tmp_path.iterdir()) == []


# Each start finds one more file that may be opened, from none on. No other thread opens one meanwhile.
FEW_FILES = """\
import json, os, resource
from tools.fixtures.hook_bench import Hooks, open_files
from tools.sites.waiting import wait_until

hooks = Hooks()
hooks.run("true")  # what is imported lazily is imported now
before = open_files().keys()
limits = resource.getrlimit(resource.RLIMIT_NOFILE)
highest = max(map(int, before))
fillers = [os.open(os.devnull, os.O_RDONLY)]
while fillers[-1] < highest:
    fillers.append(os.open(os.devnull, os.O_RDONLY))
results = []
for more in range(12):
    resource.setrlimit(resource.RLIMIT_NOFILE, (fillers[-1] + 1 + more, limits[1]))
    hooks.start(1, "/bin/true")
    outcome = hooks.wait(1)
    results.append((outcome.result, outcome.reason))
resource.setrlimit(resource.RLIMIT_NOFILE, limits)
for filler in fillers:
    os.close(filler)
hooks.executor.close()
# A thread that has reported its hook's end may still have to release what it held.
wait_until(lambda: not open_files().keys() - before, what="a file stays open")
print(json.dumps(results))
"""


def test_no_more_files() -> None:
    """With every number of files that may still be opened it either works or says so, and nothing leaks."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", FEW_FILES]
    process = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)
    results = json.loads(process.stdout)
    assert results[0][0] == "not-started"
    assert "Too many open files" in results[0][1]
    assert results[-1][0] == "succeeded"
    assert {result for result, _reason in results} == {"not-started", "succeeded"}


# What a hook finds


def test_a_hook_inherits_nothing(hooks: Hooks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_RUNNER", "x")
    reader, writer = os.pipe()
    os.set_inheritable(reader, True)
    ignored = signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGCHLD])
    try:
        outcome = hooks.run("env; pwd; ls -m /proc/$$/fd; cut -d' ' -f1,5,6 /proc/$$/stat")
        hooks.start(2, "/bin/grep", "-E", "Sig(Blk|Ign)", "/proc/self/status")  # a shell listens to all signals anew
        signals = hooks.wait(2).output
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        signal.signal(signal.SIGPIPE, ignored)
        os.close(reader)
        os.close(writer)
    assert "SECRET" not in outcome.output
    lines = [line for line in outcome.output.splitlines() if not line.startswith(("PWD=", "_=", "OLDPWD=", "SHLVL="))]
    pid = lines[3].split()[0]
    assert lines == [
        "PATH=/usr/bin:/bin",
        "/",
        "0, 1, 2",
        f"{pid} {pid} {pid}",  # the leader of its group and session
    ]
    blocking, ignoring = (int(line.split()[1], 16) for line in signals.splitlines())
    assert blocking == 0
    assert not ignoring >> (signal.SIGPIPE - 1) & 1


def test_signals_stay_with_the_main_thread(hooks: Hooks) -> None:
    before = threading.enumerate()
    hooks.shell(1, "sleep 0.3")
    (thread,) = [thread for thread in threading.enumerate() if thread not in before]
    status = Path(f"/proc/self/task/{thread.native_id}/status").read_text()
    blocked = int(next(line for line in status.splitlines() if line.startswith("SigBlk")).split()[1], 16)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM, signal.SIGHUP):
        assert blocked >> (number - 1) & 1
    assert hooks.wait(1).result == "succeeded"


def test_text_is_utf8_whatever_the_locale(tmp_path: Path) -> None:
    script = tmp_path / "run.py"
    script.write_text(
        "import threading\n"
        "from forewarn.runner.hooks.executor import Executor\nfrom forewarn.runner.hooks.commands import Command\n"
        "done = threading.Event()\nexecutor = Executor(done.set)\n"
        "argv = ('/bin/sh', '-c', 'printf \"%s %s\" \"$1\" \"$A\"', 'sh', 'ä€')\n"
        "executor.start(1, Command(argv, {'A': '\\U0001f600'}, b'', 10.0))\ndone.wait(10)\n"
        "print(ascii(executor.take_results()[0][1].output))\n"
    )
    environment = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-X", "utf8=0", str(script)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout.strip() == ascii("ä€ \U0001f600")


def test_nothing_is_imported_before_the_first_hook(package: Path) -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(package.parent)!r}); import forewarn.runner.hooks.executor; "
        "print([name for name in ('subprocess', 'threading', 'ssl') if name in sys.modules])"
    )
    command = [sys.executable, "-I", "-S", "-c", program]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout.strip() == "[]"


# Older kernels, other systems


def test_kernel_without_pidfd_still_reports_outcomes(
    hooks: Hooks, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "pidfd_open", Mock(side_effect=OSError(errno.ENOSYS, "Function not implemented")))
    own = tmp_path / "pid"
    assert hooks.run(f"sleep 20 & echo $! > {own}; exit 3").exit_code == 3
    os.kill(int(wait_for(own)), signal.SIGKILL)
    assert hooks.run("exec >&- 2>&-; sleep 0.2; exit 4").exit_code == 4
    assert hooks.run("trap '' TERM; while :; do sleep 0.02; done", timeout=0.1).result == "timed-out"
