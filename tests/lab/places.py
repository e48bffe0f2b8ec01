# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host's place on this machine: number, network namespace, disk. What is left of a killed run is removed.

169.254.169.254 exists inside the namespaces alone. In this machine's own it may be Azure's real service, where a
request of a test would be a real one: nothing below uses the address before it has seen that the namespace is another.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from .machine import LabError, environment, run

METADATA = "169.254.169.254"
_PLACES = Path("/run/forewarn-lab")
_NAMESPACES = Path("/run/netns")
_NUMBERS = range(1, 64)
_PATIENCE = 20.0  # seconds for processes that were killed to be gone
_LISTENER = Path(__file__).with_name("listen.py")


def own_network() -> tuple[int, int]:
    """Return what tells this process's network namespace from others."""
    status = Path("/proc/self/ns/net").stat()
    return status.st_dev, status.st_ino


class Place:
    """One of the numbered places, held by this process until ``leave``; the kernel lets go of it at any end."""

    def __init__(self, number: int, lock: TextIO) -> None:
        self.number = number
        self.directory = _PLACES / str(number)
        self.root = self.directory / "root"
        self.namespace = _NAMESPACES / f"forewarn-lab-{number}"
        self.address = f"10.231.{number}.2"
        self.gateway = f"10.231.{number}.1"
        self._link = f"fwlab{number}"
        self._lock = lock

    @classmethod
    def take(cls) -> Place:
        """Return a place that nobody has. Those of runs that were killed are cleared on the way. Raises LabError."""
        _PLACES.mkdir(mode=0o700, exist_ok=True)
        for number in _NUMBERS:
            lock = (_PLACES / f"{number}.lock").open("w")
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.close()
                continue
            place = cls(number, lock)
            place.clear()
            return place
        raise LabError(f"all {len(_NUMBERS)} places for hosts are taken: look at {_PLACES}")

    def leave(self) -> None:
        """Remove everything, and let others have the place."""
        self.clear()
        self._lock.close()

    def connect(self) -> None:
        """Make the network: a namespace, a cable to it, and the metadata address inside."""
        name, link = self.namespace.name, self._link
        run("ip", "netns", "add", name)
        self._must_be_another()
        run("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", name)
        run("ip", "address", "add", f"{self.gateway}/30", "dev", link)
        run("ip", "link", "set", link, "up")
        run("ip", "-n", name, "address", "add", f"{self.address}/30", "dev", "eth0")
        run("ip", "-n", name, "address", "add", f"{METADATA}/32", "dev", "lo")
        for device in ("lo", "eth0"):
            run("ip", "-n", name, "link", "set", device, "up")

    def listen(self) -> socket.socket:
        """Return a socket that listens on the metadata address, port 80, inside the namespace. Raises LabError."""
        self._must_be_another()
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.settimeout(30)
            command = ["ip", "netns", "exec", self.namespace.name, sys.executable, "-I", str(_LISTENER)]
            number = theirs.fileno()
            command += [str(number), ":".join(map(str, own_network()))]
            done = subprocess.run(
                command, pass_fds=[number], env=environment(), capture_output=True, text=True, timeout=30, check=False
            )
            if done.returncode:
                raise LabError(f"nothing listens on {METADATA} of place {self.number}: {done.stderr.strip()}")
            _data, descriptors, _flags, _address = socket.recv_fds(ours, 1, 1)
        return socket.socket(fileno=descriptors[0])

    def insert_disk(self, image: Path) -> None:
        """Make the root directory: what is written lands beside the image, not in it."""
        upper, work = self.directory / "upper", self.directory / "work"
        for directory in (upper, work, self.root):
            directory.mkdir(parents=True)
        upper.chmod(0o755)  # it is the host's root directory
        layers = f"lowerdir={image},upperdir={upper},workdir={work}"
        run("mount", "-t", "overlay", "-o", layers, f"forewarn-lab-{self.number}", self.root)

    def eject_disk(self) -> None:
        """Remove the disk, and what was written to it."""
        if self.root.is_mount():
            run("umount", self.root)
        if self.directory.exists():
            shutil.rmtree(self.directory)

    def processes(self) -> list[int]:
        """Return the processes of the host that runs here, by this machine's numbers; its first process first."""
        first = self._first_process()
        if first is None:
            return []
        same = _identity(Path(f"/proc/{first}/ns/pid"))
        return [first, *(pid for pid in _pids() if pid != first and _identity(Path(f"/proc/{pid}/ns/pid")) == same)]

    def cut_power(self) -> None:
        """Kill the host, if one runs here. Raises LabError if it does not go."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            # With a host's first process the kernel ends all others. What supervises it ends by itself.
            remaining = [pid for pid in (self._first_process(), *self._supervisors()) if pid is not None]
            if not remaining:
                return
            if time.monotonic() > deadline:
                raise LabError(f"processes of place {self.number} do not end: {remaining}")
            _kill(remaining[0])
            time.sleep(0.02)

    def clear(self) -> None:
        """Remove everything that is here: processes, namespace, cable, mount, files."""
        self.cut_power()
        if self.namespace.exists():
            run("ip", "netns", "delete", self.namespace.name)
        if Path(f"/sys/class/net/{self._link}").exists():  # its other end went with the namespace, most likely it too
            run("ip", "link", "delete", self._link, check=False)
        self.eject_disk()

    def _must_be_another(self) -> None:
        if _identity(self.namespace) in (None, own_network()):
            raise LabError(
                f"{self.namespace} is missing, or this machine's own network: {METADATA} is not touched there"
            )

    def _first_process(self) -> int | None:
        """Return the host's process 1: it is in our namespace, and in one of processes in which it is number 1."""
        network = _identity(self.namespace)
        if network is None:
            return None
        return next((pid for pid in _pids() if _identity(Path(f"/proc/{pid}/ns/net")) == network and _leads(pid)), None)

    def _supervisors(self) -> Iterator[int]:
        """Return the systemd-nspawn of this place."""
        option = f"--network-namespace-path={self.namespace}".encode()
        for pid in _pids():
            with suppress(OSError):  # it has ended
                if option in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                    yield pid


def sweep() -> None:
    """Clear every place whose owner was killed."""
    for path in sorted(_PLACES.glob("*.lock")) if _PLACES.exists() else ():
        with path.open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            Place(int(path.stem), lock).clear()


def _pids() -> list[int]:
    return sorted(int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal())


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what tells a namespace from others, None if there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _leads(pid: int) -> bool:
    """Tell whether it is process 1 of a namespace below ours."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return False
    numbers = next(line.split()[1:] for line in lines if line.startswith("NSpid:"))
    return len(numbers) > 1 and numbers[-1] == "1"


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
