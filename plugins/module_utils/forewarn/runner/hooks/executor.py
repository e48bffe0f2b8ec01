# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs hooks as child processes, each watched by a thread of its own, and returns their outcomes.

Every hook has an outcome, even if it prints a gigabyte, reads nothing, ignores the request to end, or leaves processes
behind that do. The main thread never waits for a hook.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Callable, NamedTuple

from ...system import processes
from ...system.credentials import take_back
from ...texts import exact_text
from .commands import Command
from .output import Output

if TYPE_CHECKING:
    import threading

SUCCEEDED, FAILED, TIMED_OUT, ENDED, NOT_STARTED = "succeeded", "failed", "timed-out", "ended", "not-started"

_LONGEST_QUOTE = 200  # characters of the last line of output
_POLL_SECONDS = 0.05  # between two checks of what cannot be polled
# For a killed process: one that hangs in the kernel, for example on a lost file server, does not end.
_KILL_SECONDS = 5.0
_LEFTOVER_GRACE_SECONDS = 2.0
# After the request to end and after the kill when the runner stops, which takes less than 2 s.
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
    """A process, to be identified after a restart; the unit of its start, if known, is the system's."""

    pid: int
    pid_started: int | None


class Executor:
    """Starts and ends hooks. For one thread alone. ``wake`` is called, by other threads too, when ``take_results`` has
    something; it must not raise.

    ``grace_seconds`` lie between the request to end and the kill, which both go to all processes of the hook.
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
            # The thread starts the process, so that every process is watched.
            hook.thread = threading.Thread(target=hook.run, args=(spawned := threading.Event(),), daemon=True)
            hook.thread.start()
        except RuntimeError as error:  # too many threads
            hook.thread = None
            hook.take_back()
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
            del self._hooks[token]
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
    started: Iterable[tuple[int, int | None]], grace_seconds: float = _LEFTOVER_GRACE_SECONDS
) -> set[int]:
    """End the hooks that outlived the previous runner, side by side; return the ids that were found.

    ``started`` has ids and starts; both together identify a process. All processes of a hook are asked to end once, as
    by systemd, and killed if they are still there after the grace. Return when all have ended, or after the second
    grace.
    """
    left = set()
    for pid, start in started:
        if start is not None and (leftover := processes.LeftoverProcess(pid, start)).found():
            left.add(leftover)
    found = {leftover.pid for leftover in left}
    for killed, seconds in ((False, grace_seconds), (True, _LEFTOVER_GRACE_SECONDS)):
        for leftover in left:
            if killed:
                leftover.kill()
            else:
                leftover.request_end()
        deadline = time.monotonic() + seconds
        while left:
            left = {leftover for leftover in left if leftover.remains(killed)}
            if not left or time.monotonic() >= deadline:
                break
            time.sleep(_POLL_SECONDS)  # they are not our children, so nothing reports their end
    return found


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
        self._child: processes.ChildProcess | None = None
        self._output = Output(command.secrets)

    def end(self, reason: str) -> None:
        """Ask the thread to end the process."""
        if self._end_reason is None and self._child is not None:
            self._end_reason = reason
            self._child.wake()

    def kill(self) -> None:
        """Kill its processes, if the thread has not seen their end."""
        if self.thread is not None and self.thread.is_alive() and self._child is not None:
            self._child.kill()

    def run(self, spawned: threading.Event) -> None:
        """Run the hook to its end and report its outcome."""
        self._began = self._clock()
        try:
            argv, environment, stdin = self._command[:3]
            child = self._child = processes.ChildProcess(argv, environment, stdin, self._output.add)
            self.started = HookProcess(child.pid, child.started)
        except Exception as error:  # of any kind: a plan waits for the outcome
            self.take_back()
            self._report(_not_started(self._command, error))
            return
        finally:
            spawned.set()
        outcome = HookResult(FAILED, None, 0.0, "", "it could not be watched, and was killed")
        try:
            outcome = self._watch(child)
        finally:
            self.take_back()
            self._report(outcome)
            child.wait()  # one that hangs in the kernel is reaped when it ends

    def take_back(self) -> None:
        """Take back the credentials that it was lent."""
        if self._command.lent is not None:
            take_back(self._command.lent)

    def _watch(self, child: processes.ChildProcess) -> HookResult:
        try:
            code, ending, killed = self._wait_for_end(child)
            child.finish()
        except BaseException:  # it may not go on without a timeout
            child.kill()
            raise
        finally:
            child.close()
        self._output.end()
        return self._outcome(code, ending, self._clock() - self._began, self._output.text(), killed)

    def _wait_for_end(self, child: processes.ChildProcess) -> tuple[int | None, str | None, bool]:
        """Return the exit code, why the hook was ended, and whether it was killed."""
        deadline = self._began + self._command.timeout_seconds
        steps = [(child.request_end, self._grace), (child.kill, _KILL_SECONDS)]
        ending: str | None = None
        while True:
            code = child.poll()
            # After the request all processes have the grace, not the first alone; a kill leaves nothing to wait for.
            if code is not None and (ending is None or not steps or not child.has_processes()):
                break
            now = self._clock()
            if ending is None and (self._end_reason is not None or now >= deadline):
                ending = TIMED_OUT if self._end_reason is None else ENDED
                deadline = now
            if now >= deadline:
                if not steps:
                    break
                step, patience = steps.pop(0)
                step()
                deadline = now + patience
            child.serve(deadline - now)
        return code, ending, not steps

    def _outcome(self, code: int | None, ending: str | None, seconds: float, output: str, killed: bool) -> HookResult:
        exit_code = None if code is None or code < 0 else code
        if ending is None:
            if code == 0:
                return HookResult(SUCCEEDED, 0, seconds, output, "")
            reason = processes.describe_exit(code or 0)
            last_line = _last_line(output)
            return HookResult(FAILED, exit_code, seconds, output, f"{reason}: {last_line}" if last_line else reason)
        reason = self._end_reason or f"it took longer than {exact_text(self._command.timeout_seconds)}"
        if code is None:
            reason += f", and {processes.KILL_IGNORED}"
        elif killed:
            reason += f", and {processes.REQUEST_IGNORED}"
        return HookResult(ending, exit_code, seconds, output, reason)


def _not_started(command: Command, error: Exception) -> HookResult:
    return HookResult(NOT_STARTED, None, 0.0, "", processes.why_not_started(command.argv[0], error))


def _last_line(output: str) -> str:
    lines = [line.strip() for line in output.splitlines()]
    return next((line for line in reversed(lines) if line), "")[:_LONGEST_QUOTE]
