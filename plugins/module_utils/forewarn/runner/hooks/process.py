# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Child processes: how one is started and identified, its pipes, and its process group."""

from __future__ import annotations

import codecs
import errno
import os
import select
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from .commands import Command

if TYPE_CHECKING:
    import subprocess

    from ...hook_kinds.common.masking import Masker

OUTPUT_PART_BYTES = 8 * 1024  # of the output's beginning, and as many of its end
_PIECE_BYTES = 64 * 1024
_LAST_PIECES = 64  # read after a hook has ended: processes that it left behind may print for ever
_ENVIRON_READS, _ENVIRON_PAUSE_SECONDS = 20, 0.01  # at an environment that is empty
_CONTINUATION = bytes(range(0x80, 0xC0))  # bytes within a UTF-8 character

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


class ProcessIdentity(NamedTuple):
    """What the kernel reports of a process. ``start`` is in clock ticks since boot."""

    state: str
    group: int
    start: int


def spawn(command: Command) -> subprocess.Popen[bytes]:
    """Start a process: leader of a session and group of its own, in ``/``, with no signal blocked.

    Its standard output and error are one pipe. Afterwards the calling thread blocks all signals. Raises OSError or
    ValueError.
    """
    import subprocess  # here: most runners never run a hook

    # As UTF-8, whatever the locale.
    argv = [_as_bytes(word) for word in command.argv]
    environment = {_as_bytes(name): _as_bytes(value) for name, value in command.environment.items()}
    child_stdin, stdin, stdout, child_stdout = _pipes()
    # A process inherits the blocked signals of its parent's thread, and Popen does not undo that.
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    try:
        # pylint: disable-next=ansible-bad-function # a service of its own, no module that has run_command
        process = subprocess.Popen(  # noqa: S603 - the program was checked, and no shell has a part in it
            argv,
            bufsize=0,
            stdin=child_stdin,
            stdout=child_stdout,
            stderr=subprocess.STDOUT,
            cwd="/",
            env=environment,
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
    process.stdin, process.stdout = open(stdin, "wb", buffering=0), open(stdout, "rb", buffering=0)  # noqa: PTH123, SIM115 - descriptors, which Streams closes
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


def identity(pid: int) -> ProcessIdentity | None:
    """Return what the kernel reports of a process, or None without such a process or without /proc."""
    try:
        # The name, in brackets, may hold anything.
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return ProcessIdentity(fields[0].decode(), int(fields[2]), int(fields[19]))
    except (OSError, ValueError, IndexError):
        return None


def signal_group(process_group: int, number: int) -> bool:
    """Send a signal to each process of a group; 0 only checks. Return whether there is any."""
    try:
        os.killpg(process_group, number)
    except ProcessLookupError:
        return False
    except PermissionError:  # they run as another user now
        return True
    return True


def group_exists(process_group: int) -> bool:
    """Return whether a process of a group still runs: one that has ended stays in it until its parent waits for it."""
    if not signal_group(process_group, 0):
        return False
    members = _members(process_group)
    return members is None or bool(members)


def group_is_of_hook(process_group: int, started: int) -> bool:
    """Return whether a group without its leader has processes that a hook started: they have its environment.

    Linux shows no environment of a process that is about to begin another program, so this may take 0.2 s.
    """
    if not signal_group(process_group, 0):
        return False
    numbers = [number for number, found in _members(process_group) or () if found.start >= started]
    for attempt in range(_ENVIRON_READS):
        if attempt:
            time.sleep(_ENVIRON_PAUSE_SECONDS)  # the kernel says nothing when a program has begun
        environments = [_environment(number) for number in numbers]
        if any(b"FOREWARN_ATTEMPT=" in one for one in environments if one):
            return True
        if b"" not in environments:
            break
    return False


def _environment(pid: int) -> bytes | None:
    """Return the environment that a process was given, None if it has ended or is another user's."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return None


def _members(process_group: int) -> list[tuple[int, ProcessIdentity]] | None:
    """Return the running processes of a group, or None without a /proc that we can read."""
    try:
        numbers = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    except OSError:
        return None
    known = [(number, found) for number in numbers if (found := identity(number)) is not None]
    return [each for each in known if each[1].group == process_group and each[1].state not in "ZX"] if known else None


def exit_descriptor(pid: int) -> int | None:
    """Return a descriptor to poll for the end of a child, or None if the system has none (before Linux 5.3)."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


class Output:
    """The output of a process: its first and its last part, in little memory."""

    def __init__(self, secrets: tuple[bytes, ...] = ()) -> None:
        self._masker = _masker(secrets) if secrets else None
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out = 0

    def add(self, piece: bytes) -> None:
        """Add a piece. Secrets are masked before anything is cut."""
        self._append(piece if self._masker is None else self._masker.feed(piece))

    def end(self) -> None:
        """Note that nothing follows."""
        if self._masker is not None:
            self._append(self._masker.flush())
            self._masker = None

    def _append(self, piece: bytes) -> None:
        room = OUTPUT_PART_BYTES - len(self._head)
        self._head += piece[:room]
        self._tail += piece[room:]
        surplus = len(self._tail) - OUTPUT_PART_BYTES
        if surplus > 0:
            del self._tail[:surplus]
            self._left_out += surplus

    def text(self) -> str:
        """Return it as text, with a line where bytes were left out. What is not UTF-8 is replaced."""
        if not self._left_out:
            return (self._head + self._tail).decode("utf-8", "replace")
        # No half characters at the cuts.
        head = codecs.getincrementaldecoder("utf-8")("replace").decode(bytes(self._head))
        tail = self._tail.lstrip(_CONTINUATION).decode("utf-8", "replace")
        return f"{head}\n[… {self._left_out} bytes left out …]\n{tail}"


class Streams:
    """Writes to a process and reads its output, without ever waiting for it.

    ``wakers`` are descriptors that end a wait, each once. To be closed.
    """

    def __init__(self, process: subprocess.Popen[bytes], command: Command, wakers: tuple[int, ...]) -> None:
        self.output = Output(command.secrets)
        self._process = process
        self._left = memoryview(command.stdin)
        self._poller = select.poll()
        self._open: set[int] = set()
        for descriptor in wakers:
            self._poller.register(descriptor, select.POLLIN)
        for pipe, mask in ((process.stdin, select.POLLOUT), (process.stdout, select.POLLIN)):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
                self._poller.register(pipe.fileno(), mask)
                self._open.add(pipe.fileno())
        self._stdin = -1 if process.stdin is None else process.stdin.fileno()
        self._stdout = -1 if process.stdout is None else process.stdout.fileno()

    def serve(self, seconds: float) -> None:
        """Read and write what is possible, after a wait of at most ``seconds``."""
        for descriptor, _events in self._poller.poll(int(max(0.0, seconds) * 1000) + 1):
            if descriptor == self._stdin:
                self._feed()
            elif descriptor == self._stdout:
                self._read()
            else:
                self._poller.unregister(descriptor)

    def finish(self) -> None:
        """Read what is left, without waiting."""
        for _piece in range(_LAST_PIECES):
            if self._stdout not in self._open or not self._read():
                break
        self.output.end()

    def close(self) -> None:
        """Close the pipes."""
        for descriptor in list(self._open):
            self._close(descriptor)

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
        self.output.add(piece)
        if not piece:
            self._close(self._stdout)
        return bool(piece)

    def _close(self, descriptor: int) -> None:
        self._poller.unregister(descriptor)
        self._open.remove(descriptor)
        pipe = self._process.stdin if descriptor == self._stdin else self._process.stdout
        if pipe is not None:
            pipe.close()


def _masker(secrets: tuple[bytes, ...]) -> Masker:
    from ...hook_kinds.common.masking import Masker  # here: few hooks have a secret

    return Masker(secrets)


def _as_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")  # how Python spells paths that are not UTF-8
