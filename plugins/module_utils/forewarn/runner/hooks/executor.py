# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs hooks as child processes, each watched by a thread of its own, and returns their outcomes.

Every hook has an outcome, even if it prints a gigabyte, reads nothing, ignores SIGTERM, or leaves processes behind that
do. The main thread never waits for a hook.
"""

from __future__ import annotations

import os
import signal
import time
from collections import deque
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Callable, NamedTuple

from ...texts import exact_text
from .commands import Command
from .process import (
    Streams,
    exit_descriptor,
    group_exists,
    group_is_of_hook,
    identity,
    signal_group,
    spawn,
    why_not_started,
)

if TYPE_CHECKING:
    import subprocess
    import threading

SUCCEEDED, FAILED, TIMED_OUT, ENDED, NOT_STARTED = "succeeded", "failed", "timed-out", "ended", "not-started"

_LONGEST_QUOTE = 200  # characters of the last line of output
_POLL_SECONDS = 0.05  # between two checks of what cannot be polled
# For a killed process: one that hangs in the kernel, for example on a lost file server, does not end.
_KILL_SECONDS = 5.0
_LEFTOVER_GRACE_SECONDS = 2.0
# After SIGTERM and after SIGKILL when the runner stops, which takes less than 2 s.
CLOSE_SECONDS = (1.0, 0.25)


class HookResult(NamedTuple):
    """The outcome of a hook. ``exit_code`` is None unless it exited by itself; ``reason`` is empty after a success.

    ``output`` is what it printed, as text; if that is long, its first and last part.
    """

    result: str
    exit_code: int | None
    seconds: float
    output: str
    reason: str

    @property
    def succeeded(self) -> bool:
        """Whether it exited with 0."""
        return self.result == SUCCEEDED


class HookProcess(NamedTuple):
    """A process, to be identified after a restart; its start is in clock ticks since boot, if known."""

    pid: int
    pid_started: int | None


class Executor:
    """Starts and ends hooks. For one thread alone. ``wake`` is called, by other threads too, when ``take_results`` has
    something; it must not raise.

    ``grace_seconds`` lie between SIGTERM and SIGKILL, which both go to the hook's whole process group.
    """

    def __init__(
        self, wake: Callable[[], None], *, grace_seconds: float = 5.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._wake = wake
        self._grace = grace_seconds
        self._clock = clock
        self._hooks: dict[Hashable, _Hook] = {}
        self._results: deque[tuple[Hashable, HookResult]] = deque()

    @property
    def running(self) -> int:
        """The number of hooks whose outcome ``take_results`` has not returned yet."""
        return len(self._hooks)

    def start(self, token: Hashable, command: Command) -> HookProcess | None:
        """Start a hook. Return None if that failed: ``take_results`` returns its outcome, like every other."""
        import threading  # here: most runners never run a hook

        hook = _Hook(command, self._grace, self._clock, lambda outcome: self._report(token, outcome))
        self._hooks[token] = hook
        try:
            hook.open()
            # The thread starts the process, so that every process is watched.
            hook.thread = threading.Thread(target=hook.run, args=(spawned := threading.Event(),), daemon=True)
            hook.thread.start()
        except (OSError, RuntimeError) as error:  # too many open files, or threads
            hook.thread = None
            self._report(token, _not_started(command, error))
            return None
        spawned.wait()
        return hook.started

    def end(self, token: Hashable, reason: str) -> None:
        """End a hook, if it still runs. Its outcome comes later."""
        hook = self._hooks.get(token)
        if hook is not None:
            hook.end(reason)

    def take_results(self) -> list[tuple[Hashable, HookResult]]:
        """Return the results of hooks that have ended since the last call."""
        ended = []
        while self._results:
            token, outcome = self._results.popleft()
            self._hooks.pop(token).close()
            ended.append((token, outcome))
        return ended

    def close(self) -> None:
        """End all hooks and wait, for ``CLOSE_SECONDS`` at most: after the first of these, what is left is killed."""
        now = time.monotonic()
        for hook in self._hooks.values():
            hook.end("the runner stops")
        for seconds in CLOSE_SECONDS:
            now += seconds
            for hook in self._hooks.values():
                if hook.thread is not None:
                    hook.thread.join(max(0.0, now - time.monotonic()))
            for hook in self._hooks.values():
                hook.kill()

    def _report(self, token: Hashable, outcome: HookResult) -> None:
        self._results.append((token, outcome))
        self._wake()


def end_leftovers(
    processes: Iterable[tuple[int, int | None]], grace_seconds: float = _LEFTOVER_GRACE_SECONDS
) -> set[int]:
    """End the process groups of hooks that outlived the previous runner, side by side; return the ids that were found.

    ``processes`` has ids and starts; both together identify a process. A group receives SIGTERM once, as from systemd,
    and SIGKILL if it is still there after the grace. Return when all have ended, or after the second grace.
    """
    left = set()
    for pid, start in processes:
        if start is not None and (_is_leader(pid, start) or _is_orphaned(pid, start)):
            left.add((pid, start))
    found = {pid for pid, _start in left}
    for number, seconds in ((signal.SIGTERM, grace_seconds), (signal.SIGKILL, _LEFTOVER_GRACE_SECONDS)):
        for pid, _start in left:
            signal_group(pid, number)
        deadline = time.monotonic() + seconds
        while left:
            left = {
                (pid, start)
                for pid, start in left
                if _is_leader(pid, start) or (number == signal.SIGTERM and group_exists(pid))
            }
            if not left or time.monotonic() >= deadline:
                break
            time.sleep(_POLL_SECONDS)  # they are not our children, so nothing reports their end
    return found


def _is_leader(pid: int, pid_started: int) -> bool:
    found = identity(pid)
    return found is not None and found.state not in "ZX" and (found.group, found.start) == (pid, pid_started)


def _is_orphaned(pid: int, pid_started: int) -> bool:
    """Return whether a hook has ended, for example by SIGPIPE, but processes that it started in its group have not."""
    return identity(pid) is None and group_is_of_hook(pid, pid_started)


class _Hook:
    """One hook. ``run`` is its thread, which starts, watches and reaps the process. All else is for the main thread."""

    def __init__(
        self, command: Command, grace: float, clock: Callable[[], float], report: Callable[[HookResult], None]
    ) -> None:
        self.started: HookProcess | None = None
        self.thread: threading.Thread | None = None
        self._command = command
        self._grace = grace
        self._clock = clock
        self._report = report
        self._end_reason: str | None = None
        self._pipe: tuple[int, int] | None = None  # wakes the thread

    def open(self) -> None:
        """Open what the thread needs. Raises OSError."""
        self._pipe = os.pipe()

    def close(self) -> None:
        """Close it, after the outcome was reported."""
        for descriptor in self._pipe or ():
            os.close(descriptor)

    def end(self, reason: str) -> None:
        """Ask the thread to end the process."""
        if self._end_reason is None and self._pipe is not None:
            self._end_reason = reason
            os.write(self._pipe[1], b".")

    def kill(self) -> None:
        """Kill the process group, if the thread has not seen its end."""
        if self.thread is not None and self.thread.is_alive() and self.started is not None:
            signal_group(self.started.pid, signal.SIGKILL)

    def run(self, spawned: threading.Event) -> None:
        """Run the hook to its end and report its outcome."""
        self._began = self._clock()
        try:
            process = spawn(self._command)
            found = identity(process.pid)
            self.started = HookProcess(process.pid, None if found is None else found.start)
        except Exception as error:  # of any kind: a plan waits for the outcome
            self._report(_not_started(self._command, error))
            return
        finally:
            spawned.set()
        outcome = HookResult(FAILED, None, 0.0, "", "it could not be watched, and was killed")
        try:
            outcome = self._watch(process)
        except BaseException:  # as above; nor may the process go on without a timeout
            process.kill()
            raise
        finally:
            self._report(outcome)
            process.wait()  # one that hangs in the kernel is reaped when it ends

    def _watch(self, process: subprocess.Popen[bytes]) -> HookResult:
        began = self._began
        deadline = began + self._command.timeout_seconds
        steps = [(signal.SIGTERM, self._grace), (signal.SIGKILL, _KILL_SECONDS)]
        ending: str | None = None
        exit_fd = exit_descriptor(process.pid)
        wakers = (*(self._pipe or ())[:1], *(() if exit_fd is None else (exit_fd,)))
        streams = Streams(process, self._command, wakers)
        try:
            while True:
                code = process.poll()
                # After SIGTERM the whole group has the grace, not the leader alone; SIGKILL leaves nothing to wait for.
                if code is not None and (ending is None or not steps or not signal_group(process.pid, 0)):
                    break
                now = self._clock()
                if ending is None and (self._end_reason is not None or now >= deadline):
                    ending = TIMED_OUT if self._end_reason is None else ENDED
                    deadline = now
                if now >= deadline:
                    if not steps:
                        break
                    number, patience = steps.pop(0)
                    signal_group(process.pid, number)
                    deadline = now + patience
                seen = exit_fd is not None and code is None
                streams.serve(deadline - now if seen else min(deadline - now, _POLL_SECONDS))
            streams.finish()
        finally:
            streams.close()
            if exit_fd is not None:
                os.close(exit_fd)
        return self._outcome(code, ending, self._clock() - began, streams.output.text(), killed=not steps)

    def _outcome(self, code: int | None, ending: str | None, seconds: float, output: str, killed: bool) -> HookResult:
        exit_code = None if code is None or code < 0 else code
        if ending is None:
            if code == 0:
                return HookResult(SUCCEEDED, 0, seconds, output, "")
            reason = f"it ended with exit code {exit_code}" if exit_code is not None else f"{_signal(code)} ended it"
            last_line = _last_line(output)
            return HookResult(FAILED, exit_code, seconds, output, f"{reason}: {last_line}" if last_line else reason)
        reason = self._end_reason or f"it took longer than {exact_text(self._command.timeout_seconds)}"
        if code is None:
            reason += ", and it outlives SIGKILL: it hangs in the kernel"
        elif killed:
            reason += ", and SIGTERM was not enough to end it"
        return HookResult(ending, exit_code, seconds, output, reason)


def _not_started(command: Command, error: Exception) -> HookResult:
    return HookResult(NOT_STARTED, None, 0.0, "", why_not_started(command.argv[0], error))


def _signal(code: int | None) -> str:
    try:
        return signal.Signals(-(code or 0)).name
    except ValueError:
        return f"signal {-(code or 0)}"


def _last_line(output: str) -> str:
    lines = [line.strip() for line in output.splitlines()]
    return next((line for line in reversed(lines) if line), "")[:_LONGEST_QUOTE]
