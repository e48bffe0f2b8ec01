# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Azurite on loopback: Azure Blob Storage for tests, over HTTPS, with signatures and with tokens of an identity.

npm installs it once into ``.cache/azurite``. Skips the test where that is not possible.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import hmac
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import requests
from forewarn.runner.groups.address import Address
from forewarn.runner.groups.azure_blob import AzureBlob
from forewarn.runner.groups.azure_login import AzureLogin, SasLogin
from forewarn.runner.groups.tls import TlsFiles
from tools.servers.listener_client import free_port
from tools.servers.webhooks import Answer, make_certificate
from tools.sites.requirements import lacking
from tools.sites.waiting import wait_until

VERSION = "3"
ACCOUNT, CONTAINER = "lab1", "group"
_KEY = base64.b64encode(b"k" * 32).decode()
_API_VERSION = "2021-12-02"
_CACHE = Path(__file__).resolve().parents[3] / ".cache"


class Azurite:
    """One server, which keeps its data while it is not running."""

    def __init__(self, directory: Path) -> None:
        self.address = Address("127.0.0.1", free_port(), True, f"/{ACCOUNT}/{CONTAINER}")
        self.files = TlsFiles(str(make_certificate(directory)))
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = (
            *("--blobHost", self.address.host, "--blobPort", str(self.address.port), "--oauth", "basic"),
            *("--cert", str(self._directory / "ca.pem"), "--key", str(self._directory / "key.pem")),
            *("--location", str(self._directory / "data"), "--silent", "--disableTelemetry"),
        )
        environment = {**os.environ, "AZURITE_ACCOUNTS": f"{ACCOUNT}:{_KEY}"}
        program = installed() / "node_modules/azurite/dist/src/blob/main.js"
        with (self._directory / "log").open("ab") as log:
            command = ["node", str(program), *options]
            self._process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        wait_until(self._answers, pause=0.05, what="Azurite does not answer")

    def stop(self) -> None:
        """End it in order, so that it keeps what it has."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(30)

    def store(self, login: AzureLogin | None = None, **options: Any) -> AzureBlob:
        """Return a client of the container."""
        return AzureBlob(self.address, self.files, login or SasLogin(lambda: sas()), **options)

    def create_container(self) -> None:
        """Create the container."""
        answer = self._call("PUT", "?restype=container")
        assert answer.status_code == 201, answer.text

    def lease(self, key: str) -> None:
        """Hold a lease on a blob, as an administrator can by mistake."""
        answer = self._call("PUT", f"/{key}?comp=lease", x_ms_lease_action="acquire", x_ms_lease_duration="-1")
        assert answer.status_code == 201, answer.text

    def release(self, key: str) -> None:
        """End any lease on a blob."""
        answer = self._call("PUT", f"/{key}?comp=lease", x_ms_lease_action="break", x_ms_lease_break_period="0")
        assert answer.status_code == 202, answer.text

    def _call(self, method: str, rest: str, **headers: str) -> requests.Response:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        sent.update({"x-ms-version": _API_VERSION, "x-ms-date": formatdate(usegmt=True)})
        sent["Authorization"] = f"Bearer {token()}"
        url = f"https://{self.address.where}{self.address.path}{rest}"
        return requests.request(method, url, headers=sent, verify=self.files.ca_file, timeout=10)

    def _answers(self) -> bool:
        try:
            return self._call("GET", "?restype=container").status_code in (200, 404)
        except requests.RequestException:
            return False


@contextmanager
def azurite(directory: Path) -> Iterator[Azurite]:
    """Run Azurite with an empty container; it is gone afterwards."""
    server = Azurite(directory)
    try:
        server.start()
        server.create_container()
        yield server
    finally:
        server.stop()


def sas(permissions: str = "rcwdl", seconds: float = 600) -> str:
    """Return a signature for the container that is valid for so long."""
    end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))
    resource = f"/blob/{ACCOUNT}/{CONTAINER}"
    lines = [permissions, "", end, resource, "", "", "https", _API_VERSION, "c", "", "", "", "", "", "", ""]
    signed = hmac.new(base64.b64decode(_KEY), "\n".join(lines).encode(), hashlib.sha256).digest()
    fields = {"sv": _API_VERSION, "sr": "c", "sp": permissions, "se": end, "spr": "https"}
    return urlencode({**fields, "sig": base64.b64encode(signed).decode()})


def token(seconds: int = 600) -> str:
    """Return a token of an identity; Azurite looks at its claims, not at its signature."""
    now = int(time.time())
    claims = {
        "aud": "https://storage.azure.com/",
        "iss": "https://sts.windows.net/00000000-0000-0000-0000-000000000000/",
    }
    claims.update({"iat": now - 5, "nbf": now - 5, "exp": now + seconds})  # type: ignore[dict-item]  # some are numbers
    parts = (b'{"alg":"RS256","typ":"JWT"}', json.dumps(claims).encode(), b"not verified")
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


def token_answer(seconds: int = 600) -> Answer:
    """Return what the endpoint of the VM's identity answers."""
    fields = {"access_token": token(seconds), "expires_in": str(seconds), "expires_on": str(int(time.time()) + seconds)}
    return Answer(200, {}, json.dumps({**fields, "token_type": "Bearer"}).encode())


def installed() -> Path:
    """Return where Azurite is; npm installs it there at the first time, for which it needs the network."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            lacking("programs", f"there is no {program} (Debian: nodejs npm)")
    place = _CACHE / f"azurite-{VERSION}"
    _CACHE.mkdir(exist_ok=True)
    with (_CACHE / f"{place.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.exists():
            draft = _CACHE / f"{place.name}-new"
            shutil.rmtree(draft, ignore_errors=True)
            options = ("--no-audit", "--no-fund", "--silent", "--prefix", str(draft))
            command = ["timeout", "300", "npm", "install", *options, f"azurite@{VERSION}"]
            done = subprocess.run(command, check=False, capture_output=True)
            if done.returncode != 0:
                lacking(
                    "programs",
                    f"npm cannot install azurite: {done.stderr.decode()[-500:] or 'it has not ended in time'}",
                )
            draft.rename(place)
    return place
