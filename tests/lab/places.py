# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host's place on this machine: namespace, control group, disk. What is left of a killed run is removed.

169.254.169.254 exists inside the namespaces alone. In this machine's own it may be Azure's real service, where a
request of a test would be a real one: nothing below uses the address before it has seen that the namespace is another.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from tools.sites.waiting import PATIENCE_SECONDS

from .machine import LabError, control_groups, environment, run

METADATA = "169.254.169.254"
_PLACES = Path("/run/forewarn-lab")
_NAMESPACES = Path("/run/netns")
_NUMBERS = range(1, 64)
_BRIDGE = "bridge0"
_PATIENCE = PATIENCE_SECONDS  # seconds for processes to be gone, or to stand still
_LISTENER = Path(__file__).with_name("listen.py")


def own_network() -> tuple[int, int]:
    """Return what identifies this process's network namespace."""
    status = Path("/proc/self/ns/net").stat()
    return status.st_dev, status.st_ino


class Place:
    """One of the numbered places, held by this process until ``leave``; the kernel lets go of it at any end."""

    def __init__(self, number: int, lock: TextIO) -> None:
        self.number = number
        self.directory = _PLACES / str(number)
        self.root = self.directory / "root"
        self.namespace = _NAMESPACES / f"forewarn-lab-{number}"
        # Hosts in one control group would share the groups of their units, and kill each other's processes.
        self.group = control_groups() / f"forewarn-lab-{number}"
        self.address = f"10.231.{number}.2"
        self.gateway = f"10.231.{number}.1"
        self._link = f"fwlab{number}"
        self._lock = lock

    @classmethod
    def take(cls) -> Place:
        """Return a free place. Places of runs that were killed are cleared on the way. Raises LabError."""
        with _nobody_else_clears():
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
        """Remove everything, and free the place."""
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

    def make_hub(self) -> None:
        """Make the network of a place without a host: a bridge in a namespace, to which hosts are joined."""
        name = self.namespace.name
        run("ip", "netns", "add", name)
        run("ip", "-n", name, "link", "add", _BRIDGE, "type", "bridge")
        run("ip", "-n", name, "link", "set", _BRIDGE, "up")

    def join(self, hub: Place, address: str) -> None:
        """Lay a second cable, from a hub to eth1 here. ``address`` has its prefix length: ``10.232.0.1/24``."""
        name, center, link = self.namespace.name, hub.namespace.name, self._link
        run("ip", "-n", center, "link", "add", link, "type", "veth", "peer", "name", "eth1", "netns", name)
        run("ip", "-n", center, "link", "set", link, "master", _BRIDGE, "up")
        run("ip", "-n", name, "address", "add", address, "dev", "eth1")
        run("ip", "-n", name, "link", "set", "eth1", "up")

    def plug(self, plugged: bool) -> None:
        """Pull the second cable out, or plug it in again: what is killed meanwhile says goodbye to nobody."""
        run("ip", "-n", self.namespace.name, "link", "set", "eth1", "up" if plugged else "down")

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

    def make_group(self) -> None:
        """Make the control group anew: in one that was killed, Linux 6.18 kills what systemd 257 starts there."""
        self._remove_group()
        self.group.mkdir()

    def processes(self) -> list[int]:
        """Return every process of the host that runs here, by this machine's numbers."""
        found: list[int] = []
        for directory, _directories, _files in os.walk(self.group):
            with contextlib.suppress(OSError):  # the group of a unit that has just ended
                found += map(int, Path(directory, "cgroup.procs").read_text().split())
        return sorted(found)

    def sent(self) -> int:
        """Return how many bytes were sent to the host through its cable so far, all protocols included."""
        return int(Path(f"/sys/class/net/{self._link}/statistics/tx_bytes").read_text())

    def stand_still(self, still: bool) -> None:
        """Freeze the host's processes, or let them go on; return once all of them do. Raises LabError."""
        (self.group / "cgroup.freeze").write_text("1" if still else "0")
        self._wait_for("frozen", still)

    def cut_power(self) -> None:
        """Kill the host, if one runs here; return once every process of it has ended. Raises LabError.

        What has ended may still be listed, as a zombie: until its parent asks for it, which is process 1 of this
        machine where the lab's own was killed, and when that does is its own affair. It holds nothing any more.
        """
        if self.group.exists():
            with contextlib.ExitStack() as stack:
                ends = self._ends(stack)
                (self.group / "cgroup.kill").write_text("1")
                # That the group is empty is said a moment before a process has ended.
                self._wait_for("populated", False)
                _wait_for_ends(ends)

    def clear(self) -> None:
        """Remove everything that is here: processes, their group, namespace, cable, mount, files."""
        self.cut_power()
        if self.namespace.exists():
            run("ip", "netns", "delete", self.namespace.name)
        if Path(f"/sys/class/net/{self._link}").exists():  # its other end went with the namespace, most likely it too
            run("ip", "link", "delete", self._link, check=False)
        self.eject_disk()
        propagated = Path("/run/systemd/nspawn/propagate", self.namespace.name)
        if propagated.exists():  # a host whose power was cut leaves it
            propagated.rmdir()
        self._remove_group()

    def _must_be_another(self) -> None:
        if _identity(self.namespace) in (None, own_network()):
            raise LabError(
                f"{self.namespace} is missing, or this machine's own network: {METADATA} is not touched there"
            )

    def _ends(self, stack: contextlib.ExitStack) -> list[int]:
        """Return a descriptor for each process, which can be read once that has ended; the stack closes them."""
        descriptors = {}
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                descriptors[pid] = os.pidfd_open(pid)
                stack.callback(os.close, descriptors[pid])
        still = self.processes()  # a number that was another's by then is not here
        return [descriptor for pid, descriptor in descriptors.items() if pid in still]

    def _remove_group(self) -> None:
        if self.group.exists():
            for directory, _directories, _files in os.walk(self.group, topdown=False):
                Path(directory).rmdir()

    def _wait_for(self, event: str, wanted: bool) -> None:
        deadline = time.monotonic() + _PATIENCE
        while f"{event} {int(wanted)}" not in (self.group / "cgroup.events").read_text().splitlines():
            if time.monotonic() > deadline:
                raise LabError(f"{self.group}: it has not come to '{event} {int(wanted)}': {self.processes()}")
            time.sleep(0.01)  # until the next look


def sweep() -> None:
    """Clear every place whose owner was killed."""
    with _nobody_else_clears():
        for path in sorted(_PLACES.glob("*.lock")):
            with path.open("w") as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                Place(int(path.stem), lock).clear()


@contextlib.contextmanager
def _nobody_else_clears() -> Iterator[None]:
    """Let one process at a time clear places: a place whose lock is taken is then a lab's, not one half cleared."""
    _PLACES.mkdir(mode=0o700, exist_ok=True)
    with (_PLACES / "clearing").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _wait_for_ends(descriptors: list[int]) -> None:
    """Wait until the process of each descriptor has ended. Raises LabError."""
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    deadline = time.monotonic() + _PATIENCE
    left = len(descriptors)
    while left:
        ended = poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
        if not ended:
            raise LabError(f"{left} processes of a host that was killed have not ended within {_PATIENCE:g} s")
        for descriptor, _events in ended:
            poll.unregister(descriptor)
        left -= len(ended)


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what identifies a namespace, or None."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
