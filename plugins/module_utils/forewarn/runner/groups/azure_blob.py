# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Azure Blob Storage as a store: each key is a block blob in one container, and the blob's ETag is its version."""

from __future__ import annotations

import builtins
import re
import time
from collections.abc import Mapping
from email.utils import formatdate
from urllib.parse import quote
from xml.etree import ElementTree as ET

from ...imds.errors import GARBAGE, HTTP
from .address import Address
from .azure_login import AzureLogin
from .https import PersistentConnection, StoreReply
from .store import LOGIN, TOO_LARGE, StoredValue, StoreFault, check_swap
from .tls import TlsFiles

ATTEMPT_SECONDS, WHOLE_SECONDS = 2.0, 5.0
_MOST_KEYS = 10_000
_API_VERSION = "2021-12-02"
_ETAG = re.compile(r'"[\x21\x23-\x7e]{1,256}"')
_CHANGED = ("ConditionNotMet", "BlobAlreadyExists", "BlobNotFound")
# What other codes mean. No other text of an answer is ever shown: it may repeat the login.
_MEANING = {
    "AuthenticationFailed": "the login is not accepted",
    "InvalidAuthenticationInfo": "the login is not accepted",
    "NoAuthenticationInformation": "the login is not accepted",
    "AuthorizationFailure": "the login, or this VM's network, may not do this",
    "AuthorizationPermissionMismatch": "the login may not do this",
    "AuthorizationSourceIPMismatch": "the login may not be used from this address",
    "PublicAccessNotPermitted": "it wants a login",
    "UnauthorizedBlobOverwrite": "the login may not replace a blob",
    "ContainerNotFound": "there is no such container",
    "ContainerBeingDeleted": "the container is being deleted",
    "LeaseIdMissing": "somebody holds a lease on the blob",
    "SnapshotsPresent": "the blob has snapshots",
    "ServerBusy": "it is too busy",
    "OperationTimedOut": "it could not do it in time",
}
_NOTHING_DONE = frozenset({400, 401, 403, 404, 405, 409, 411, 412, 413})  # after others, a write may have been applied


class AzureBlob:
    """The container at an address such as ``https://ACCOUNT.blob.core.windows.net/CONTAINER``. Not thread-safe.

    An attempt takes at most ``timeout_seconds``, a request with its login ``whole_seconds``. A write that was sent and
    not clearly answered is never sent again: it may have been applied, even after a 503.
    """

    def __init__(
        self,
        container: Address,
        files: TlsFiles,
        login: AzureLogin,
        timeout_seconds: float = ATTEMPT_SECONDS,
        whole_seconds: float = WHOLE_SECONDS,
    ) -> None:
        host = container.host if container.secure and container.port == 443 else container.where
        self._where = host + container.path
        self.name = f"Azure Blob at {self._where}"
        self._path = container.path
        self._connection = PersistentConnection(container, files)
        self._login = login
        self._attempt_seconds, self._whole_seconds = timeout_seconds, whole_seconds

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        self._connection.close()
        self._login.close()

    def read(self, key: str) -> StoredValue:
        """Return the newest value. Raises StoreFault."""
        reply = self._request("GET", f"/{quote(key)}", "")
        if reply.status == 200:
            return StoredValue(reply.body, self._etag(reply, unsure=False))
        if reply.status == 404 and _code(reply) == "BlobNotFound":
            return StoredValue(None, "")
        raise self._refusal(reply, write=False)

    def swap(self, key: str, value: bytes | None, version: str) -> str | None:
        """Write or remove if the key still has ``version``. Raises StoreFault, which may be ``unsure``."""
        check_swap(key, value, version)
        condition = {"If-Match": version} if version else {"If-None-Match": "*"}
        if value is None:
            reply = self._request("DELETE", f"/{quote(key)}", "", condition, write=True)
            if reply.status == 202:
                return ""
        else:
            headers = {**condition, "x-ms-blob-type": "BlockBlob", "Content-Type": "application/octet-stream"}
            reply = self._request("PUT", f"/{quote(key)}", "", headers, value, write=True)
            if reply.status == 201:
                return self._etag(reply, unsure=True)
        if reply.status in (404, 409, 412) and _code(reply) in _CHANGED:
            return None
        raise self._refusal(reply, write=True)

    def list(self, prefix: str) -> builtins.list[str]:
        """Return the keys that begin with a prefix, sorted. Raises StoreFault."""
        found: builtins.list[str] = []
        marker = ""
        deadline = time.monotonic() + self._whole_seconds
        while True:
            query = f"restype=container&comp=list&prefix={quote(prefix, safe='')}"
            if marker:
                query += f"&marker={quote(marker, safe='')}"
            reply = self._request("GET", "", query, deadline=deadline)
            if reply.status != 200:
                raise self._refusal(reply, write=False)
            try:
                names, marker = _names(reply.body)
            except ValueError as error:
                text = f"the answer of {self._where} is not a list of blobs."
                raise StoreFault(text, kind=GARBAGE) from error
            if not all(name.startswith(prefix) for name in names):
                raise StoreFault(f"the answer of {self._where} is about other blobs.", kind=GARBAGE)
            found += names
            if len(found) > _MOST_KEYS:
                raise StoreFault(f"{self._where} has more than {_MOST_KEYS} such blobs.", kind=TOO_LARGE)
            if not marker:
                return sorted(found)

    def _request(
        self,
        method: str,
        path: str,
        query: str,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        write: bool = False,
        deadline: float | None = None,
    ) -> StoreReply:
        """Return the answer of any status, with another login if that is needed. Raises StoreFault."""
        deadline = deadline or time.monotonic() + self._whole_seconds
        try:
            reply = self._send(method, path, query, headers or {}, body, deadline)
            refused = reply.status in (401, 403)
            if refused and self._login.renew(reply.status == 401 or _code(reply) == "AuthenticationFailed"):
                reply = self._send(method, path, query, headers or {}, body, deadline)
        except StoreFault as fault:
            fault.unsure = fault.unsure and write
            raise
        return reply

    def _send(
        self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes | None, deadline: float
    ) -> StoreReply:
        login = self._login.credentials(deadline)
        until = min(deadline, time.monotonic() + self._attempt_seconds)
        target = self._path + path
        if query or login.query:
            target += "?" + "&".join(part for part in (query, login.query) if part)
        stamps = {"x-ms-version": _API_VERSION, "x-ms-date": formatdate(usegmt=True), "User-Agent": "forewarn"}
        return self._connection.exchange(method, target, {**stamps, **headers, **login.headers}, body, until)

    def _etag(self, reply: StoreReply, unsure: bool) -> str:
        etag = reply.headers.get("etag", "")
        if not _ETAG.fullmatch(etag):
            raise StoreFault(f"the answer of {self._where} has no ETag.", kind=GARBAGE, unsure=unsure)
        return etag

    def _refusal(self, reply: StoreReply, write: bool) -> StoreFault:
        status, meaning = reply.status, _MEANING.get(_code(reply), "")
        text = f"{self._where} answered {status}{': ' if meaning else ''}{meaning}."
        unsure = write and status not in _NOTHING_DONE
        if status in (401, 403):
            return StoreFault(text, self._login.hint, kind=LOGIN, status=status, lasting=True)
        lasting = status in (400, 404, 405) or 300 <= status < 400
        return StoreFault(text, kind=HTTP, status=status, unsure=unsure, lasting=lasting)


def _code(reply: StoreReply) -> str:
    return reply.headers.get("x-ms-error-code", "")


def _names(body: bytes) -> tuple[builtins.list[str], str]:
    """Return the names in a list of blobs, and the marker of its next part, or "". Raises ValueError.

    The size of the body is bounded, and without declarations there are no entities that could make it larger.
    """
    text = body.decode("utf-8-sig")
    if "<!" in text:
        raise ValueError("it has declarations")
    try:
        root = ET.fromstring(text)  # noqa: S314 - as above
    except ET.ParseError as error:
        raise ValueError("it is not XML") from error
    if root.tag != "EnumerationResults" or root.find("Blobs") is None:
        raise ValueError("it is about something else")
    return [name.text or "" for name in root.iterfind("Blobs/Blob/Name")], root.findtext("NextMarker") or ""
