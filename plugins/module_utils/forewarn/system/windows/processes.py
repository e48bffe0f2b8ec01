# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Child processes on Windows: each in a job object of its own, with an event by which it is asked to end."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import IO, TYPE_CHECKING, Callable, cast

from . import api
from .children.job import CREATE_SUSPENDED, Job
from .children.process_identity import QUERY, SYNCHRONIZE, created
from .children.stop_event import STOP_EVENT

if TYPE_CHECKING:
    import subprocess

REQUEST_IGNORED = "the request to end was not enough"
KILL_IGNORED = "it outlives the end of its job: it hangs in the kernel"

_LAST_PIECES = 64  # read after a process has ended: others that it left behind may print for ever
_LAST_PIECE_SECONDS = 0.1
_POLL_SECONDS = 0.05  # between two checks of what cannot be waited for
_LONGEST_WAIT_MILLISECONDS = 0x7FFF_FFFF
_KILLED_CODE = 0x4000_F0E0  # the exit code of what ``kill`` has ended; bit 30: none of Windows' own
_WHY_NOT = {  # by the code of GetLastError
    2: "it does not exist",
    3: "it does not exist",
    5: "it is not executable, or not to this user",
    8: "the system is short of memory",
    32: "somebody is writing to it",
    193: "it is not a program of Windows, or not one for this processor",
    206: "its arguments are too long",
    740: "it wants to be run as an administrator",
    1455: "the system is short of memory",
}


class ChildProcess:
    """A process that is fed and read without ever waiting for it. ``started`` (100 ns since 1601) identifies it
    together with ``pid``.

    All that it starts ends with it when this process ends, however that does. Call ``close`` and then ``wait`` when it
    has ended; what it has left behind then may go on. Only ``wake`` and ``kill`` are for other threads, too.
    """

    def __init__(
        self, argv: Sequence[str], environment: Mapping[str, str], stdin: bytes, sink: Callable[[bytes], object]
    ) -> None:
        """Start a program with ``stdin`` to read; ``sink`` gets what it prints. Raises OSError or ValueError."""
        import threading  # here: most runners never run a hook

        from .children.pipes import PipeReader, PipeWriter

        self._lock = threading.Lock()  # of the handles
        self._open = True
        self._killed = False
        self._sink = sink
        with ExitStack() as resources:
            self._waker = _event(resources, None, manual=False)
            name = rf"Local\forewarn-stop-{os.urandom(16).hex()}"
            self._stop = _event(resources, name, manual=True)
            self._job = Job()
            resources.callback(self._job.close)
            self._process = _spawn(argv, {**environment, STOP_EVENT: name})
            self.pid = self._process.pid
            try:
                self._handle = api.kernel32.OpenProcess(QUERY | SYNCHRONIZE, False, self.pid)
                if not self._handle:
                    raise api.error()
                resources.callback(api.kernel32.CloseHandle, self._handle)
                self.started = created(self._handle)
                self._job.begin(self.pid)
                self._writer = PipeWriter(cast(IO[bytes], self._process.stdin), stdin)
                self._reader = PipeReader(cast(IO[bytes], self._process.stdout), self.wake)
                self._writer.start()
                self._reader.start()
            except BaseException:  # nobody else would end it
                self._process.kill()  # as long as it is in no job
                self._job.terminate(_KILLED_CODE)
                raise
            self._resources = resources.pop_all()

    def poll(self) -> int | None:
        """Return its exit code, -1 if ``kill`` has ended it, or None while it runs."""
        code = self._process.poll()
        return -1 if self._killed and code == _KILLED_CODE else code

    def serve(self, seconds: float) -> None:
        """Read what there is, after a wait of at most ``seconds``; its end and ``wake`` end the wait."""
        handles = [self._waker]
        if self._process.returncode is None:
            handles.append(self._handle)
        else:
            seconds = min(seconds, _POLL_SECONDS)
        milliseconds = min(int(max(0.0, seconds) * 1000) + 1, _LONGEST_WAIT_MILLISECONDS)
        array = (api.HANDLE * len(handles))(*handles)
        api.kernel32.WaitForMultipleObjects(len(handles), ctypes.byref(array), False, milliseconds)
        self._take()

    def wake(self) -> None:
        """End the wait of ``serve``, once."""
        with self._lock:
            if self._open:
                api.kernel32.SetEvent(self._waker)

    def request_end(self) -> None:
        """Set the event that FOREWARN_STOP_EVENT names."""
        api.kernel32.SetEvent(self._stop)

    def kill(self) -> None:
        """End all processes of the job."""
        with self._lock:
            if self._open:
                self._killed = True
                self._job.terminate(_KILLED_CODE)

    def has_processes(self) -> bool:
        """Return whether the job has processes."""
        return self._job.has_processes()

    def finish(self) -> None:
        """Read what is left, without waiting for what was left behind."""
        for _piece in range(_LAST_PIECES):
            ended = self._reader.ended
            if not self._take() and (ended or not self._await_piece()):
                break

    def close(self) -> None:
        """Close the pipes and let go of the job."""
        self._reader.cancel()
        self._writer.cancel()
        with self._lock:
            self._open = False
            self._resources.close()

    def wait(self) -> None:
        """Wait for its end."""
        self._process.wait()

    def _take(self) -> bool:
        """Return whether there was anything."""
        pieces = 0
        for pieces, piece in enumerate(self._reader.take(), 1):  # noqa: B007 - counted
            self._sink(piece)
        return bool(pieces)

    def _await_piece(self) -> bool:
        """Return whether another piece came, or the end, within a moment."""
        return bool(api.kernel32.WaitForSingleObject(self._waker, int(_LAST_PIECE_SECONDS * 1000)) == 0)


def _event(resources: ExitStack, name: str | None, *, manual: bool) -> int:
    """Return the handle of a new event. Raises OSError."""
    handle = api.kernel32.CreateEventW(None, manual, False, name)
    if not handle:
        raise api.error()
    resources.callback(api.kernel32.CloseHandle, handle)
    return int(handle)


def _spawn(argv: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a process, suspended: in Windows' directory, with a console of its own and no window.

    So no Ctrl-C on the runner's console reaches it. Of this process it inherits its pipes alone. Raises OSError or
    ValueError.
    """
    import subprocess  # here: most runners never run a hook

    from .children.command_line import command_line, is_script
    from .programs import SYSTEM_ROOT

    if is_script(argv[0]):
        os.stat(argv[0])  # noqa: PTH116 - what reads it would start without it
    program, line = command_line(argv, SYSTEM_ROOT)
    # pylint: disable-next=ansible-bad-function # a service of its own, no module that has run_command
    return subprocess.Popen(  # noqa: S603 - the program was checked, and no argument is more than a word
        line,
        executable=program,
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=SYSTEM_ROOT,
        env=environment,
        creationflags=subprocess.CREATE_NO_WINDOW | CREATE_SUSPENDED,
    )


def why_not_started(program: str, error: Exception) -> str:
    """Return a sentence about why a process could not be started."""
    text = str(error)
    if isinstance(error, OSError):
        text = _WHY_NOT.get(getattr(error, "winerror", None) or 0) or error.strerror or text
    return f"{program} could not be started: {text}"


def describe_exit(code: int) -> str:
    """Return how a process ended, from what ``ChildProcess.poll`` returned."""
    if code < 0:
        return "it was ended"
    return f"it ended with exit code {code if code < 0x8000_0000 else f'0x{code:08X}'}"  # an error of Windows
