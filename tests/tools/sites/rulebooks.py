# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The real ansible-rulebook, in a virtual environment of its own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tools.sites.requirements import lacking
from tools.sites.waiting import wait_until

REQUIREMENTS = ("ansible-rulebook==1.3.2", "ansible-core>=2.19,<2.20")


def installed(repository: Path) -> Path:
    """Return the directory of ansible-rulebook. Its virtual environment is made once, in half a minute."""
    venv = repository / ".cache" / "ansible-rulebook" / "venv"
    missing = "" if shutil.which("java") else "Java 17 or newer, on which ansible-rulebook's engine runs"
    if not missing and not (venv / "bin" / "ansible-rulebook").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(venv)], check=True)
        command = [str(venv / "bin" / "pip"), "install", "-qq", "--no-compile", *REQUIREMENTS]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            shutil.rmtree(venv)
            missing = " and ".join(REQUIREMENTS) + " from PyPI"
    if missing:
        lacking("programs", f"needs {missing}")
    return venv / "bin"


class Rulebook:
    """A running ansible-rulebook and the lines that it has printed."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.lines.extend(self.process.stdout)

    def hear(self, text: str) -> None:
        """Wait for a line with that text."""
        try:
            wait_until(lambda: self.process.poll() is not None or self.count(text))
        except AssertionError as error:
            raise AssertionError(f"no {text!r} in {''.join(self.lines)}") from error
        assert self.count(text), "".join(self.lines)

    def listens(self, port: int) -> None:
        """Wait until it accepts connections at a port of loopback."""

        def connected() -> bool:
            with socket.socket() as client:
                return client.connect_ex(("127.0.0.1", port)) == 0

        wait_until(lambda: self.process.poll() is not None or connected())
        assert self.process.poll() is None, "".join(self.lines)

    def count(self, text: str) -> int:
        """Return how many lines have that text."""
        return sum(text in line for line in self.lines)

    def close(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.wait(30)
        self._reader.join(10)


@contextmanager
def running(programs: Path, arguments: Sequence[str], directory: Path, collections_path: Path) -> Iterator[Rulebook]:
    """Run ansible-rulebook, whose programs are in ``programs``, with these arguments in a directory."""
    environ = {
        **{name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")},
        "PATH": f"{programs}:{os.environ['PATH']}",
        "ANSIBLE_COLLECTIONS_PATH": str(collections_path),
        "ANSIBLE_HOME": str(directory / "home"),
        "PYTHONUNBUFFERED": "1",
    }
    process = subprocess.Popen(
        [str(programs / "ansible-rulebook"), *arguments],
        cwd=directory,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    rulebook = Rulebook(process)
    try:
        yield rulebook
    finally:
        rulebook.close()
