# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real etcd on loopback, with TLS and users: one member or three, which can be killed, frozen and started again.

Skips the test where there is no ``etcd``.
"""

from __future__ import annotations

import base64
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests
from forewarn.runner.groups.address import Address
from forewarn.runner.groups.etcd import Etcd
from forewarn.runner.groups.tls import TlsFiles
from tools.servers.listener_client import free_port
from tools.sites.requirements import lacking
from tools.sites.waiting import wait_until

HERE = "127.0.0.1"
USER, PASSWORD = "forewarn", "forewarn-pw"
PREFIX = "forewarn/"  # the keys that the user may use
PROGRAMS = {"etcd": "etcd-server", "openssl": "openssl"}  # and the Debian packages that bring them
TOKEN_SECONDS = 2  # for so long is an unused token valid
_ACCEPT = {"Accept": "application/json"}


class Member:
    """One process of etcd, which keeps its data while it is not running. ``within`` are words before its command.

    It listens at ``host``, and at the addresses ``also``.
    """

    def __init__(
        self, name: str, directory: Path, host: str = HERE, within: Sequence[str] = (), also: Sequence[str] = ()
    ) -> None:
        self.name = name
        self.hosts = (host, *also)
        self.address = Address(host, free_port(), True, "")
        self.url = f"https://{self.address.where}"
        self.peer_url = f"https://{host}:{free_port()}"
        self._within = within
        self.data = directory / name
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, members: Sequence[Member]) -> None:
        """Start it, as one of these members."""
        files = ("cert-file=server.crt", "key-file=server.key", "trusted-ca-file=ca.crt", "client-cert-auth")
        options = (
            *(f"name={self.name}", f"data-dir={self.data}", "logger=zap", "bcrypt-cost=4"),
            "listen-client-urls=" + ",".join(f"https://{host}:{self.address.port}" for host in self.hosts),
            f"advertise-client-urls={self.url}",
            *(f"listen-peer-urls={self.peer_url}", f"initial-advertise-peer-urls={self.peer_url}"),
            "initial-cluster=" + ",".join(f"{member.name}={member.peer_url}" for member in members),
            *(f"auth-token-ttl={TOKEN_SECONDS}", *files, *(f"peer-{option}" for option in files)),
        )
        with (self._directory / f"{self.name}.log").open("ab") as log:
            command = [*self._within, "etcd", *(f"--{option}" for option in options)]
            self._process = subprocess.Popen(command, cwd=self._directory, stdout=log, stderr=log)

    def kill(self) -> None:
        """End it at once, whatever its state."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(30)

    @property
    def runs(self) -> bool:
        """Whether its process has not ended."""
        return self._process is not None and self._process.poll() is None

    def freeze(self) -> None:
        """Stop it in the middle of everything, all threads of it; its sockets stay open. Do nothing if it has ended."""
        self._signal(signal.SIGSTOP)
        if self._process is not None and self.runs:
            os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def thaw(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)


class EtcdCluster:
    """All members, and how clients log in to them."""

    def __init__(self, directory: Path, members: Sequence[Member], users: bool) -> None:
        self._has_users = users
        self.directory = directory
        self.files = TlsFiles(*(str(directory / name) for name in ("ca.crt", "client.crt", "client.key")))
        self.members = list(members)

    def begin(self) -> None:
        """Start all members, which have no data."""
        for member in self.members:
            self.start(member)
        self.settle()
        if self._has_users:
            _add_users(lambda path, **request: self.call(self.members[0], path, **request))

    def start(self, member: Member) -> None:
        """Start a member again."""
        member.start(self.members)

    def settle(self) -> None:
        """Wait until every member is healthy, which includes that it knows a leader."""
        wait_until(lambda: all(map(self._is_healthy, self.members)), pause=0.05, what="etcd does not become healthy")

    def store(self, members: Sequence[Member] | None = None, **options: Any) -> Etcd:
        """Return a client of some members, or of all."""
        defaults: dict[str, Any] = {"files": self.files}
        if self._has_users:
            defaults.update(user=USER, password=lambda: PASSWORD)
        return Etcd([member.address for member in members or self.members], **{**defaults, **options})

    def settings(self) -> dict[str, Any]:
        """Return the cluster as ``group_store`` of a runner's configuration."""
        names = ("ca_file", "certificate_file", "key_file")
        found: dict[str, Any] = {"etcd": [member.url for member in self.members]}
        found.update(zip(names, (self.files.ca_file, self.files.certificate_file, self.files.key_file)))
        if self._has_users:
            secret = self.directory / "password"
            secret.write_text(PASSWORD)
            secret.chmod(0o600)
            found.update(user=USER, password={"file": str(secret)})
        return found

    def root_token(self, member: Member) -> str:
        """Return a token with which a member lets everything be done."""
        return str(self.call(member, "auth/authenticate", name="root", password="root-pw").json()["token"])

    def leader(self) -> Member:
        """Return the member that leads."""

        def leaders() -> list[Member]:
            return [member for member in self.members if self._leads(member)]

        return wait_until(leaders, what="no member leads")[0]

    def call(self, member: Member, path: str, token: str | None = None, **request: Any) -> requests.Response:
        """Ask a member, whatever it answers."""
        headers = _ACCEPT if token is None else {**_ACCEPT, "Authorization": token}
        url = f"{member.url}/v3/{path}"
        return requests.post(url, json=request, headers=headers, timeout=10, **self._tls())

    def get(self, member: Member, path: str) -> str:
        """Return what a member answers at a path, such as its metrics."""
        return requests.get(f"{member.url}/{path}", timeout=10, **self._tls()).text

    def _tls(self) -> dict[str, Any]:
        return {"verify": self.files.ca_file, "cert": (self.files.certificate_file, self.files.key_file)}

    def _leads(self, member: Member) -> bool:
        token = self.root_token(member) if self._has_users else None
        status = self.call(member, "maintenance/status", token).json()
        return bool(status.get("leader") == status["header"]["member_id"])

    def _is_healthy(self, member: Member) -> bool:
        try:
            answer = requests.get(f"{member.url}/health", timeout=2, **self._tls())
            return bool(answer.json() == {"health": "true"})
        except requests.RequestException:
            return False


@contextmanager
def etcd_cluster(
    directory: Path, size: int, users: bool = True, members: Sequence[Member] | None = None
) -> Iterator[EtcdCluster]:
    """Run a cluster, whose user may use the keys that begin with ``PREFIX``; its members are gone afterwards.

    ``members`` are they, unless they are to listen at loopback.
    """
    if shutil.which("etcd") is None:
        lacking("programs", "there is no etcd (Debian: etcd-server; .ci/run installs the program alone)")
    found = members or [Member(f"m{number}", directory) for number in range(size)]
    make_certificates(directory, {host for member in found for host in member.hosts})
    cluster = EtcdCluster(directory, found, users)
    try:
        cluster.begin()
        yield cluster
    finally:
        for member in cluster.members:
            member.kill()


def _add_users(call: Callable[..., requests.Response]) -> None:
    permission = {"permType": "READWRITE", "key": _base64(PREFIX), "range_end": _base64(PREFIX[:-1] + "0")}
    for path, request in (
        ("auth/user/add", {"name": "root", "password": "root-pw"}),
        ("auth/user/grant", {"user": "root", "role": "root"}),
        ("auth/role/add", {"name": "vm"}),
        ("auth/role/grant", {"name": "vm", "perm": permission}),
        ("auth/user/add", {"name": USER, "password": PASSWORD}),
        ("auth/user/grant", {"user": USER, "role": "vm"}),
        ("auth/enable", {}),
    ):
        answer = call(path, **request)
        assert answer.status_code == 200, f"{path}: {answer.text}"


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def make_certificates(directory: Path, hosts: Collection[str]) -> None:
    """Make an authority, a certificate for the servers, one for clients, and one for clients with a common name."""
    addresses = ",".join(f"IP:{host}" for host in sorted(hosts))
    key = ("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2")
    uses = ("-addext", "keyUsage=critical,keyCertSign")  # Python 3.13 insists on it
    _openssl(directory, *key, "-x509", "-subj", "/CN=ca", "-keyout", "ca.key", "-out", "ca.crt", *uses)
    for name, subject, extensions in (
        ("server", "/CN=etcd", f"extendedKeyUsage=serverAuth,clientAuth\nsubjectAltName={addresses}"),
        ("client", "/O=vm", "extendedKeyUsage=clientAuth"),
        ("named", "/CN=vm", "extendedKeyUsage=clientAuth"),
    ):
        (directory / f"{name}.ext").write_text(f"{extensions}\nauthorityKeyIdentifier=keyid\n")
        _openssl(directory, *key, "-subj", subject, "-keyout", f"{name}.key", "-out", f"{name}.csr")
        signer = ("-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", f"{name}.ext")
        _openssl(directory, "x509", "-req", "-in", f"{name}.csr", "-out", f"{name}.crt", *signer)


def _openssl(directory: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=directory, check=True, capture_output=True)
