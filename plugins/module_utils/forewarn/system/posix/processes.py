# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Child processes: how one is started and ended, and its pipes. Each leads a process group of its own."""

from __future__ import annotations

import errno
import os
import select
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Callable

from .process_groups import identity, signal_group

if TYPE_CHECKING:
    import subprocess

REQUEST_IGNORED = "SIGTERM was not enough to end it"
KILL_IGNORED = "it outlives SIGKILL: it hangs in the kernel"

_PIECE_BYTES = 64 * 1024
_LAST_PIECES = 64  # read after a process has ended: others that it left behind may print for ever
_POLL_SECONDS = 0.05  # between two checks of what cannot be polled

_OOM_SCORE = "/proc/{}/oom_score_adj"
_WHY_NOT = {
    errno.ENOENT: "it does not exist, or what its first line (#!) names does not",
    errno.EACCES: "it is not executable, or not to this user",
    errno.ENOEXEC: "it is not a program; a script begins with a line such as #!/bin/sh",
    errno.EAGAIN: "the system allows no more processes (TasksMax= of the unit, or ulimit -u)",
    errno.ENOMEM: "the system is short of memory",
    errno.E2BIG: "its arguments are too long",
    errno.ETXTBSY: "somebody is writing to it",
}


class ChildProcess:
    """A process that is fed and read by one thread without ever waiting for it. ``started`` (clock ticks since boot, if
    known) identifies it together with ``pid``.

    Call ``close`` and then ``wait`` when it has ended. Only ``wake`` and ``kill`` are for other threads, too.
    """

    def __init__(
        self, argv: Sequence[str], environment: Mapping[str, str], stdin: bytes, sink: Callable[[bytes], object]
    ) -> None:
        """Start a program with ``stdin`` to read; ``sink`` gets what it prints. Raises OSError or ValueError."""
        import threading  # here: most runners never run a hook

        self._lock = threading.Lock()  # of the pipe that wakes
        self._waker: tuple[int, ...] = os.pipe()
        try:
            self._process = _spawn(argv, environment)
        except BaseException:  # whatever it is, nobody else closes it
            self._close_waker()
            raise
        self.pid = self._process.pid
        self._sink = sink
        self._left = memoryview(stdin)
        try:
            found = identity(self.pid)
            self.started = None if found is None else found.start
            self._exit = exit_descriptor(self.pid)
            self._watch_descriptors()
        except BaseException:  # nobody else would end it
            self.kill()
            raise

    def _watch_descriptors(self) -> None:
        self._poller = select.poll()
        self._open: set[int] = set()
        for descriptor in (self._waker[0], *(() if self._exit is None else (self._exit,))):
            self._poller.register(descriptor, select.POLLIN)
        for pipe, mask in ((self._process.stdin, select.POLLOUT), (self._process.stdout, select.POLLIN)):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
                self._poller.register(pipe.fileno(), mask)
                self._open.add(pipe.fileno())
        self._stdin = -1 if self._process.stdin is None else self._process.stdin.fileno()
        self._stdout = -1 if self._process.stdout is None else self._process.stdout.fileno()

    def poll(self) -> int | None:
        """Return its exit code, the negative number of the signal that ended it, or None while it runs."""
        return self._process.poll()

    def serve(self, seconds: float) -> None:
        """Read and write what is possible, after a wait of at most ``seconds``; its end and ``wake`` end the wait."""
        if self._exit is None or self._process.returncode is not None:
            seconds = min(seconds, _POLL_SECONDS)
        for descriptor, _events in self._poller.poll(int(max(0.0, seconds) * 1000) + 1):
            if descriptor == self._stdin:
                self._feed()
            elif descriptor == self._stdout:
                self._read()
            else:
                self._poller.unregister(descriptor)

    def wake(self) -> None:
        """End the wait of ``serve``, once."""
        with self._lock:
            if self._waker:
                os.write(self._waker[1], b".")

    def request_end(self) -> None:
        """Ask all processes of the group to end, by SIGTERM."""
        signal_group(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """Kill all processes of the group, by SIGKILL."""
        signal_group(self.pid, signal.SIGKILL)

    def has_processes(self) -> bool:
        """Return whether the group has processes."""
        return signal_group(self.pid, 0)

    def finish(self) -> None:
        """Read what is left, without waiting."""
        for _piece in range(_LAST_PIECES):
            if self._stdout not in self._open or not self._read():
                break

    def close(self) -> None:
        """Close the pipes."""
        for descriptor in list(self._open):
            self._close(descriptor)
        if self._exit is not None:
            os.close(self._exit)
        self._close_waker()

    def wait(self) -> None:
        """Wait for its end, and reap it."""
        self._process.wait()

    def _feed(self) -> None:
        try:
            self._left = self._left[os.write(self._stdin, self._left) :]
        except BlockingIOError:
            return
        except OSError:  # it does not read, and need not
            self._left = memoryview(b"")
        if not self._left:
            self._close(self._stdin)

    def _read(self) -> bool:
        """Return whether there may be more."""
        try:
            piece = os.read(self._stdout, _PIECE_BYTES)
        except BlockingIOError:
            return False
        self._sink(piece)
        if not piece:
            self._close(self._stdout)
        return bool(piece)

    def _close(self, descriptor: int) -> None:
        self._poller.unregister(descriptor)
        self._open.remove(descriptor)
        pipe = self._process.stdin if descriptor == self._stdin else self._process.stdout
        if pipe is not None:
            pipe.close()

    def _close_waker(self) -> None:
        with self._lock:
            descriptors, self._waker = self._waker, ()
        for descriptor in descriptors:
            os.close(descriptor)


def _spawn(argv: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a process: leader of a session and group of its own, in ``/``, with no signal blocked.

    Its standard output and error are one pipe. Afterwards the calling thread blocks all signals. Raises OSError or
    ValueError.
    """
    import subprocess  # here: most runners never run a hook

    # As UTF-8, whatever the locale.
    words = [_as_bytes(word) for word in argv]
    variables = {_as_bytes(name): _as_bytes(value) for name, value in environment.items()}
    child_stdin, stdin, stdout, child_stdout = _pipes()
    # A process inherits the blocked signals of its parent's thread, and Popen does not undo that.
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    try:
        # pylint: disable-next=ansible-bad-function # a service of its own, no module that has run_command
        process = subprocess.Popen(  # noqa: S603 - the program was checked, and no shell has a part in it
            words,
            bufsize=0,
            stdin=child_stdin,
            stdout=child_stdout,
            stderr=subprocess.STDOUT,
            cwd="/",
            env=variables,
            start_new_session=True,
        )
    except BaseException:  # whatever it is, nobody else closes these
        os.close(stdin)
        os.close(stdout)
        raise
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())  # signals are the main thread's
        os.close(child_stdin)
        os.close(child_stdout)
    process.stdin, process.stdout = open(stdin, "wb", buffering=0), open(stdout, "rb", buffering=0)  # noqa: PTH123, SIM115 - descriptors, which ChildProcess closes
    _expose_to_oom_killer(process.pid)
    return process


def _pipes() -> tuple[int, int, int, int]:
    """Open two pipes: read and write end of each. Raises OSError, with neither left open.

    Before Python 3.11.4, Popen leaves a pipe open for ever if it cannot open the next one.
    """
    stdin = os.pipe()
    try:
        return (*stdin, *os.pipe())
    except OSError:
        for end in stdin:
            os.close(end)
        raise


def _expose_to_oom_killer(pid: int) -> None:
    """Undo OOMScoreAdjust= of the unit, which is for the runner alone, in a child: hooks are to be killed first."""
    with suppress(OSError, ValueError):  # it has ended, or another system has no such file
        if int(Path(_OOM_SCORE.format("self")).read_bytes()) < 0:
            Path(_OOM_SCORE.format(pid)).write_bytes(b"0")


def why_not_started(program: str, error: Exception) -> str:
    """Return a sentence about why a process could not be started."""
    text = str(error)
    if isinstance(error, OSError):
        text = _WHY_NOT.get(error.errno or 0) or error.strerror or text
    return f"{program} could not be started: {text}"


def describe_exit(code: int) -> str:
    """Return how a process ended, from what ``ChildProcess.poll`` returned."""
    if code >= 0:
        return f"it ended with exit code {code}"
    try:
        return f"{signal.Signals(-code).name} ended it"
    except ValueError:
        return f"signal {-code} ended it"


def exit_at_request() -> None:
    """Do nothing: SIGTERM ends a child process without its help."""


def exit_descriptor(pid: int) -> int | None:
    """Return a descriptor to poll for the end of a child, or None if the system has none (before Linux 5.3)."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _as_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")  # how Python spells paths that are not UTF-8
