# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lab: hosts side by side, and one emulated service that each of them finds at 169.254.169.254.

All VMs see the same documents, as those of one availability set do. The emulator runs in this process, on loopback.
What a host sends to its metadata address arrives at a socket of its namespace, and is passed on to the VM's own port.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from urllib.parse import urlsplit

from forewarn.emulator.client import EmulatorClient
from forewarn.emulator.server import EmulatorServer
from forewarn.emulator.spec import Settings

from . import images
from .hosts import Host, own_name
from .machine import LabError, raise_limits
from .places import Place, sweep

_CHUNK = 65_536
# The hosts' boot id is a mount of systemd-nspawn's, which older systemds lose when they protect /proc in this way; a
# machine has no such mount. The newest release runs with the role's unit as it is.
BOOT_ID_KEPT = ["ProtectKernelTunables=false", "ProtectControlGroups=false"]
SUITES_THAT_LOSE_IT = ("bullseye", "bookworm", images.SOFTWARE)
# Of joined hosts, the first is 10.232.0.1. Each joined lab has a namespace of its own, and so the same addresses.
_JOINED = "10.232.0.{}"
# VMs of a lab, unless named otherwise: one of each Debian release.
HOSTS: Mapping[str, str] = {"web_0": "bullseye", "web_1": "bookworm", "web_2": "trixie"}
# An approved event starts soon, and is listed for a while: tests finish it when they have seen enough.
SETTINGS = Settings(start_delay=0.5, gone_after=600.0)


class Lab:
    """Hosts and their emulated service, ``with Lab({"web_0": "trixie"}) as lab: lab.host("web_0").ssh("uptime")``.

    ``hosts``: resource name -> one of ``images.IMAGES``. ``joined``: they reach each other, by their own names.
    ``image``: the root file system that all of them have, if it is not that of their releases. Raises LabError where a
    host does not start.
    """

    def __init__(
        self,
        hosts: Mapping[str, str] = HOSTS,
        settings: Settings = SETTINGS,
        *,
        joined: bool = False,
        image: Path | None = None,
    ) -> None:
        self._wanted = dict(hosts)
        self._settings = settings
        self._joined = joined
        self._image = image
        self._stack = contextlib.ExitStack()
        self.hosts: list[Host] = []

    def host(self, name: str) -> Host:
        """Return the host of a resource name."""
        return next(host for host in self.hosts if host.name == name)

    def inventory(self) -> str:
        """Return an Ansible inventory of the hosts, in YAML, under their resource names."""
        hosts = {
            host.name: {
                "ansible_host": host.address,
                "ansible_user": host.user,
                "ansible_python_interpreter": host.python,
                "ansible_ssh_private_key_file": str(host.key),
                "ansible_ssh_common_args": " ".join(host.ssh_options),
                **({"forewarn_unit_settings": BOOT_ID_KEPT} if host.suite in SUITES_THAT_LOSE_IT else {}),
            }
            for host in self.hosts
        }
        return json.dumps({"all": {"hosts": hosts}}, indent=2) + "\n"  # JSON is YAML

    def __enter__(self) -> Lab:
        sweep()
        raise_limits()
        file_systems, key = images.root_file_systems(self._wanted.values()), images.key()
        with self._stack:
            server = EmulatorServer(
                vms=list(self._wanted),
                settings=self._settings,
                listeners=dict.fromkeys(self._wanted, ("127.0.0.1", 0)),
            )
            self.server = self._stack.enter_context(server)
            self.emulator = self._stack.enter_context(EmulatorClient(server.url))
            hub = self._hub() if self._joined else None
            names = [own_name(name) for name in self._wanted] if hub else []
            peers = {name: _JOINED.format(number) for number, name in enumerate(names, 1)}
            for name, suite in self._wanted.items():
                host = Host(name, suite, self._image or file_systems[suite], key, Place.take(), peers)
                self._stack.callback(host.remove)  # also where what follows fails
                host.place.connect()
                if hub:
                    host.place.join(hub, f"{host.peer_address}/24")
                self._stack.enter_context(Forwarder(host.place.listen(), server.vm_endpoint(name)))
                self.hosts.append(host)
            self._start_all()
            self._stack = self._stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _hub(self) -> Place:
        hub = Place.take()
        self._stack.callback(hub.leave)
        hub.make_hub()
        return hub

    def _start_all(self) -> None:
        with ThreadPoolExecutor(len(self.hosts)) as pool:
            for started in [pool.submit(host.start) for host in self.hosts]:
                started.result()


class Forwarder:
    """Passes what comes to a listening socket on to an HTTP endpoint, connection by connection."""

    def __init__(self, listener: socket.socket, endpoint: str) -> None:
        parts = urlsplit(endpoint)
        if parts.hostname is None or parts.port is None:
            raise LabError(f"{endpoint} is not an endpoint with a port")
        self._target = (parts.hostname, parts.port)
        self._listener = listener
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> Forwarder:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._thread.join()
        self._listener.close()
        with self._lock:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                incoming, _address = self._listener.accept()
            except OSError:  # closed
                return
            try:
                outgoing = socket.create_connection(self._target, timeout=10)
            except OSError:
                incoming.close()
                continue
            outgoing.settimeout(None)
            for connection in (incoming, outgoing):
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            pair = _Pair()
            with self._lock:
                self._open |= {incoming, outgoing}
            for source, target in ((incoming, outgoing), (outgoing, incoming)):
                threading.Thread(target=self._pass_on, args=(pair, source, target), daemon=True).start()

    def _pass_on(self, pair: _Pair, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(_CHUNK):
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)
        if pair.one_less():
            with self._lock:
                self._open -= {source, target}
            source.close()
            target.close()


class _Pair:
    """The two directions of a connection: the last one that ends closes both sockets."""

    def __init__(self) -> None:
        self._left = 2
        self._lock = threading.Lock()

    def one_less(self) -> bool:
        """Return whether both directions have ended."""
        with self._lock:
            self._left -= 1
            return not self._left


# What the fixture start_lab returns.
Start = Callable[..., Lab]
