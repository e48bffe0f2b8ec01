# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hooks run, fail, hang and misbehave as real processes; each has an outcome, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest
from forewarn.runner.hooks import executor as executor_module
from forewarn.runner.hooks.executor import end_leftovers
from forewarn.runner.hooks.output import OUTPUT_PART_BYTES, Output
from forewarn.system.posix import processes
from forewarn.system.posix.process_groups import identity
from hypothesis import example, given
from hypothesis import strategies as st
from tools.fixtures.hook_bench import PATIENCE_SECONDS, Hooks, assert_gone, is_running, leftover, wait_for
from tools.sites.waiting import wait_until

# How it ends


def test_a_hook_that_succeeds(hooks: Hooks) -> None:
    outcome = hooks.run("cat; echo out; echo err >&2", stdin=b"read\n")
    assert (outcome.result, outcome.exit_code, outcome.reason) == ("succeeded", 0, "")
    assert outcome.output == "read\nout\nerr\n"
    assert 0 < outcome.seconds < PATIENCE_SECONDS


def test_failed_hook_reports_its_last_line(hooks: Hooks) -> None:
    outcome = hooks.run("echo trying; echo '  lb-7 refuses '; echo; exit 3")
    assert (outcome.result, outcome.exit_code) == ("failed", 3)
    assert outcome.reason == "it ended with exit code 3: lb-7 refuses"
    assert hooks.run("exit 3").reason == "it ended with exit code 3"
    assert len(hooks.run("head -c 100000 /dev/zero | tr '\\0' x; exit 1").reason) < 300


@pytest.mark.parametrize(("number", "name"), [(9, "SIGKILL"), (11, "SIGSEGV"), (40, "signal 40")])
def test_a_hook_that_a_signal_ends(hooks: Hooks, number: int, name: str) -> None:
    outcome = hooks.run(f"echo before; kill -{number} $$; sleep 20")
    assert outcome[:2] == ("failed", None)
    assert outcome.reason == f"{name} ended it: before"


def test_outcome_is_ready_when_the_runner_wakes(hooks: Hooks) -> None:
    for _ in range(30):
        hooks.start(1, "/bin/true")
        assert hooks.woken.wait(PATIENCE_SECONDS)
        hooks.woken.clear()
        ((token, outcome),) = hooks.executor.take_results()
        assert (token, outcome.result) == (1, "succeeded")
        assert hooks.executor.take_results() == []


def test_several_side_by_side(hooks: Hooks) -> None:
    for number in range(12):
        hooks.shell(number, f"sleep 0.3; echo {number}")
    assert hooks.executor.running == 12
    assert [hooks.wait(number).output for number in range(12)] == [f"{number}\n" for number in range(12)]
    assert hooks.executor.running == 0


def test_the_process_is_known_again(hooks: Hooks) -> None:
    started = hooks.shell(1, "echo $$; sleep 0.1; cut -d' ' -f22 /proc/$$/stat")
    assert hooks.wait(1).output == f"{started.pid}\n{started.pid_started}\n"


# Timeouts, and being ended


def test_a_timeout() -> None:
    hooks = Hooks(grace_seconds=PATIENCE_SECONDS)
    outcome = hooks.run("trap 'echo bye; exit 0' TERM; while :; do sleep 0.02; done", timeout=2)
    assert (outcome.result, outcome.exit_code) == ("timed-out", 0)
    assert outcome.output.endswith("bye\n")
    assert outcome.reason == "it took longer than 2 s"
    assert hooks.run("sleep 60", timeout=0.05).seconds < PATIENCE_SECONDS
    hooks.executor.close()


def test_a_hook_that_ignores_sigterm(hooks: Hooks) -> None:
    outcome = hooks.run("trap '' TERM; echo on; while :; do sleep 0.02; done", timeout=2)
    assert (outcome.result, outcome.exit_code, outcome.output) == ("timed-out", None, "on\n")
    assert outcome.reason == "it took longer than 2 s, and SIGTERM was not enough to end it"
    assert 2.3 <= outcome.seconds < PATIENCE_SECONDS


def test_a_grandchild_that_ignores_sigterm(hooks: Hooks, tmp_path: Path) -> None:
    own = tmp_path / "pid"
    script = f"(trap '' TERM; sh -c 'echo $PPID' > {own}; while :; do sleep 0.02; done) & wait"
    hooks.shell(1, script, timeout=2)
    pid = int(wait_for(own))
    outcome = hooks.wait(1)
    assert outcome.result == "timed-out"
    assert "SIGTERM was not enough" in outcome.reason
    assert_gone(pid)


def test_grandchild_gets_the_grace_period(tmp_path: Path) -> None:
    """A shell dies of SIGTERM at once; what it waited for may clean up."""
    hooks = Hooks(grace_seconds=PATIENCE_SECONDS)
    up = tmp_path / "up"
    worker = f"trap 'sleep 0.3; echo cleaned; exit 0' TERM; echo up > {up}; while :; do sleep 0.02; done"
    hooks.shell(1, f'sh -c "{worker}" & wait')
    wait_for(up)
    hooks.executor.end(1, "enough")
    outcome = hooks.wait(1)
    assert (outcome.result, outcome.reason) == ("ended", "enough")
    assert outcome.output.endswith("cleaned\n")
    assert outcome.seconds < PATIENCE_SECONDS / 2


def test_to_end_a_hook(hooks: Hooks) -> None:
    hooks.start(1, "/bin/sleep", "20")
    hooks.shell(2, "sleep 0.3; echo done")
    hooks.executor.end(1, "the event is no longer listed")
    hooks.executor.end(1, "another reason")
    hooks.executor.end("no such hook", "no reason")
    outcome = hooks.wait(1)
    assert (outcome.result, outcome.exit_code, outcome.reason) == ("ended", None, "the event is no longer listed")
    assert hooks.wait(2).output == "done\n"


def test_to_end_a_hook_that_has_ended(hooks: Hooks) -> None:
    hooks.start(1, "/bin/true")
    assert hooks.woken.wait(PATIENCE_SECONDS)
    hooks.executor.end(1, "too late")
    assert hooks.wait(1).result == "succeeded"
    hooks.executor.end(1, "much too late")


def test_to_stop_ends_every_hook(hooks: Hooks) -> None:
    pids = [hooks.shell(number, "trap '' TERM; while :; do sleep 0.02; done").pid for number in range(3)]
    began = time.monotonic()
    hooks.executor.close()
    assert time.monotonic() - began < PATIENCE_SECONDS / 2
    assert not any(map(is_running, pids))
    outcomes = dict(hooks.executor.take_results())
    assert [outcomes[number].result for number in range(3)] == ["ended"] * 3
    assert outcomes[0].reason.startswith("the runner stops")


def test_a_process_that_outlives_sigkill(hooks: Hooks, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that hangs on a lost file server: its outcome comes all the same, and it is reaped at last."""
    monkeypatch.setattr(processes, "signal_group", lambda group, number: True)
    monkeypatch.setattr(executor_module, "_KILL_SECONDS", 0.1)
    started = hooks.shell(1, "sleep 20", timeout=0.05)
    outcome = hooks.wait(1)
    assert outcome[:2] == ("timed-out", None)
    assert "it hangs in the kernel" in outcome.reason
    assert is_running(started.pid)
    os.killpg(started.pid, signal.SIGKILL)
    wait_until(lambda: identity(started.pid) is None, PATIENCE_SECONDS, what="it was not reaped")


def test_defect_while_watching_is_a_failed_outcome(hooks: Hooks, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()
    monkeypatch.setattr(threading, "excepthook", lambda _arguments: ended.set())
    monkeypatch.setattr(processes.ChildProcess, "serve", None)
    started = hooks.shell(1, "sleep 20")
    outcome = hooks.wait(1)
    assert (outcome.result, outcome.reason) == ("failed", "it could not be watched, and was killed")
    assert_gone(started.pid)
    assert ended.wait(PATIENCE_SECONDS)


# Input and output


def test_a_hook_that_never_reads(hooks: Hooks) -> None:
    outcome = hooks.run("sleep 0.1; echo ready", stdin=bytes(1024 * 1024))
    assert (outcome.result, outcome.output) == ("succeeded", "ready\n")


def test_a_hook_that_refuses_to_read(hooks: Hooks) -> None:
    assert hooks.run("exec 0<&-; sleep 0.1; echo ready", stdin=bytes(1024 * 1024)).output == "ready\n"
    assert hooks.run("head -c 1 >/dev/null; exec 0<&-; sleep 0.1", stdin=bytes(1024 * 1024)).result == "succeeded"


def test_a_hook_that_reads_late(hooks: Hooks) -> None:
    assert hooks.run("sleep 0.1; wc -c", stdin=bytes(1024 * 1024)).output == f"{1024 * 1024}\n"


def test_a_hook_that_closes_its_output(hooks: Hooks) -> None:
    outcome = hooks.run("exec >&- 2>&-; sleep 0.2; exit 4")
    assert (outcome.result, outcome.exit_code, outcome.output) == ("failed", 4, "")
    assert outcome.seconds >= 0.2


def test_output_of_a_brief_hook_is_complete(hooks: Hooks) -> None:
    for _ in range(10):
        output = hooks.run("head -c 60000 /dev/zero; echo end").output
        assert output.endswith("\0end\n")
        assert f"{60004 - 2 * OUTPUT_PART_BYTES} bytes left out" in output


def test_much_output_does_not_block_the_hook(hooks: Hooks) -> None:
    outcome = hooks.run("echo first; head -c 5000000 /dev/zero; echo last")
    assert outcome.result == "succeeded"
    assert outcome.output.startswith("first\n\0")
    assert outcome.output.endswith("\0last\n")
    assert f"[… {5000011 - 2 * OUTPUT_PART_BYTES} bytes left out …]" in outcome.output


def test_a_hook_that_prints_for_ever_is_ended(hooks: Hooks) -> None:
    assert hooks.run("yes", timeout=0.2).result == "timed-out"


def test_background_process_is_not_awaited(hooks: Hooks, tmp_path: Path) -> None:
    own = tmp_path / "pid"
    outcome = hooks.run(f"sleep 20 & echo $! > {own}; echo begun")
    assert (outcome.result, outcome.output) == ("succeeded", "begun\n")
    assert outcome.seconds < PATIENCE_SECONDS / 2
    pid = int(wait_for(own))
    assert is_running(pid)
    os.kill(pid, signal.SIGKILL)


def test_a_background_process_that_prints_for_ever(hooks: Hooks, tmp_path: Path) -> None:
    own = tmp_path / "pid"
    outcome = hooks.run(f"yes & echo $! > {own}")
    assert outcome.result == "succeeded"
    assert_gone(int(wait_for(own)))  # of SIGPIPE: nobody listens any more


def test_output_is_text_whatever_is_printed(hooks: Hooks) -> None:
    assert hooks.run(r"printf 'a\303\244\377\033[1mb\000'").output == "aä�\x1b[1mb\0"


@given(st.lists(st.binary(max_size=20_000), max_size=6))
@example([b"x" * OUTPUT_PART_BYTES, b"y" * OUTPUT_PART_BYTES])
@example([b"x" * OUTPUT_PART_BYTES, b"y" * OUTPUT_PART_BYTES, b"z"])
@example(["ä".encode() * OUTPUT_PART_BYTES, b"z"])
def test_the_first_and_the_last_of_much_output(pieces: list[bytes]) -> None:
    output = Output()
    for piece in pieces:
        output.add(piece)
    whole = b"".join(pieces)
    text = output.text()
    if len(whole) <= 2 * OUTPUT_PART_BYTES:
        assert text == whole.decode("utf-8", "replace")
        return
    head, _, rest = text.partition(f"\n[… {len(whole) - 2 * OUTPUT_PART_BYTES} bytes left out …]\n")
    assert whole.decode("utf-8", "replace").startswith(head)
    tail = whole[-OUTPUT_PART_BYTES:].lstrip(bytes(range(0x80, 0xC0))).decode("utf-8", "replace")
    assert rest == tail
    assert len(text.encode()) <= 6 * OUTPUT_PART_BYTES + 100  # each byte may become a replacement character of three


# After a crash of the runner


def test_a_leftover_hook_is_ended() -> None:
    with leftover("/bin/sleep", "20") as (process, started):
        assert end_leftovers([(process.pid, started)], PATIENCE_SECONDS) == {process.pid}
        assert process.wait(PATIENCE_SECONDS) == -signal.SIGTERM
        assert not end_leftovers([(process.pid, started)], 0.2)


def test_a_leftover_hook_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    own, child = tmp_path / "pid", tmp_path / "child"
    script = f"trap '' TERM; sleep 20 & echo $! > {child}; echo $$ > {own}; while :; do sleep 0.02; done"
    with leftover("/bin/sh", "-c", script) as (process, started):
        pid = int(wait_for(child))
        assert int(wait_for(own)) == process.pid
        assert end_leftovers([(process.pid, started)], 0.2) == {process.pid}
        assert process.wait(PATIENCE_SECONDS) == -signal.SIGKILL
        assert_gone(pid)


def test_process_with_a_reused_pid_is_not_killed() -> None:
    with leftover("/bin/sleep", "20") as (process, started):
        assert not end_leftovers([(process.pid, started + 1)], 0.2)
        assert not end_leftovers([(process.pid, None)], 0.2)
        with subprocess.Popen(["/bin/sleep", "20"]) as member:  # of our own group, not a leader as hooks are
            found = identity(member.pid)
            assert found is not None
            assert not end_leftovers([(member.pid, found.start)], 0.2)
            assert is_running(member.pid)
            member.kill()
        assert is_running(process.pid)


def test_zombie_leftover_is_not_awaited() -> None:
    """Its parent is gone, and the new one may take seconds to reap it: recovery after a restart must not wait."""
    with leftover("/bin/sleep", "60") as (process, started):
        begin = time.monotonic()
        # It is a zombie until this test waits for it.
        assert end_leftovers([(process.pid, started)], PATIENCE_SECONDS) == {process.pid}
        assert time.monotonic() - begin < PATIENCE_SECONDS / 2
