# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""etcd as a store, over the JSON gateway of its API v3. A key's ``mod_revision`` is its version."""

from __future__ import annotations

import builtins
import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from ...imds.errors import GARBAGE
from .address import Address
from .etcd_answers import Header, encode, header_of, is_expired, object_of, refusal, rows_of, swapped_of, token_of
from .https import PersistentConnection, StoreReply
from .store import LOGIN, LOST_DATA, StoredValue, StoreFault, check_swap
from .tls import TlsFiles

ATTEMPT_SECONDS, WHOLE_SECONDS = 2.0, 5.0
# Without Accept, etcd 3.4 takes a request without token for one of the user that the server's own certificate names.
_HEADERS = {"Accept": "application/json", "Content-Type": "application/json", "User-Agent": "forewarn"}

_T = TypeVar("_T")


class Etcd:
    """A cluster at several endpoints; the one that answered last is asked first. Not thread-safe.

    ``password`` is called at each login, and raises StoreFault where there is none. An attempt at one endpoint takes at
    most ``timeout_seconds``, a request ``whole_seconds``. A write that was sent and not clearly answered is never sent
    again: etcd may have applied it, even after a 503.
    """

    def __init__(
        self,
        endpoints: Sequence[Address],
        files: TlsFiles | None = None,
        user: str | None = None,
        password: Callable[[], str] = lambda: "",
        timeout_seconds: float = ATTEMPT_SECONDS,
        whole_seconds: float = WHOLE_SECONDS,
    ) -> None:
        self.name = "etcd at " + ", ".join(endpoint.where for endpoint in endpoints)
        self._connections = [PersistentConnection(endpoint, files or TlsFiles()) for endpoint in endpoints]
        self._user, self._password = user, password
        self._tokens: dict[PersistentConnection, str] = {}  # for each member: others may not know its tokens
        self._attempt_seconds, self._whole_seconds = timeout_seconds, whole_seconds
        self._newest: Header | None = None

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        for connection in self._connections:
            connection.close()

    def read(self, key: str) -> StoredValue:
        """Return the newest value: a majority of the members confirms it. Raises StoreFault."""

        def read(answer: Mapping[str, Any]) -> StoredValue:
            found = rows_of(answer)
            if not found:
                return StoredValue(None, "")
            if [row.key for row in found] != [key]:
                raise ValueError("is about another key")
            return StoredValue(found[0].value, found[0].mod_revision)

        return self._request("/v3/kv/range", {"key": encode(key)}, read)

    def list(self, prefix: str) -> builtins.list[str]:
        """Return the keys that begin with a prefix, sorted. Raises StoreFault."""

        def read(answer: Mapping[str, Any]) -> builtins.list[str]:
            found = sorted(row.key for row in rows_of(answer))
            if not all(key.startswith(prefix) for key in found):
                raise ValueError("is about other keys")
            return found

        end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        request = {"key": encode(prefix), "range_end": encode(end), "keys_only": True}
        return self._request("/v3/kv/range", request, read)

    def swap(self, key: str, value: bytes | None, version: str) -> str | None:
        """Write or remove if the key still has ``version``. Raises StoreFault, which may be ``unsure``."""
        check_swap(key, value, version)

        def new_version(answer: Mapping[str, Any]) -> str | None:
            if not swapped_of(answer):
                return None
            return "" if value is None else str(header_of(answer).revision)

        change: Mapping[str, Any] = {"request_delete_range": {"key": encode(key)}}
        if value is not None:
            change = {"request_put": {"key": encode(key), "value": encode(value)}}
        unchanged = {"key": encode(key), "target": "MOD", "result": "EQUAL", "mod_revision": version or "0"}
        return self._request("/v3/kv/txn", {"compare": [unchanged], "success": [change]}, new_version, write=True)

    def _request(
        self, path: str, request: Mapping[str, Any], parse: Callable[[Mapping[str, Any]], _T], write: bool = False
    ) -> _T:
        """Ask one endpoint after another until one answers. Raises StoreFault."""
        deadline = time.monotonic() + self._whole_seconds
        body = json.dumps(request).encode("ascii")
        faults: builtins.list[StoreFault] = []
        while len(faults) < len(self._connections) and not (faults and time.monotonic() >= deadline):
            connection = self._connections[0]
            until = min(deadline, time.monotonic() + self._attempt_seconds)
            try:
                return self._attempt(connection, path, body, parse, until)
            except StoreFault as fault:
                fault.unsure = fault.unsure and write
                if fault.kind == LOGIN and fault.lasting:  # the others would say the same
                    raise
                connection.close()
                self._connections.append(self._connections.pop(0))
                if fault.unsure:
                    raise
                faults.append(fault)
        raise _joint_fault(faults)

    def _attempt(
        self,
        connection: PersistentConnection,
        path: str,
        body: bytes,
        parse: Callable[[Mapping[str, Any]], _T],
        deadline: float,
    ) -> _T:
        """Ask one endpoint. Raises StoreFault, which is ``unsure`` if the request may have had an effect."""
        known = connection in self._tokens
        reply = self._send(connection, path, body, deadline)
        if known and is_expired(reply):
            del self._tokens[connection]
            reply = self._send(connection, path, body, deadline)
        if reply.status != 200:
            if is_expired(reply):
                self._tokens.pop(connection, None)
            raise refusal(reply, connection.where)
        try:
            answer = object_of(reply.body)
            header, found = header_of(answer), parse(answer)
        except ValueError as error:
            raise StoreFault(f"the answer of {connection.where} {error}.", kind=GARBAGE, unsure=True) from error
        self._notice(header, connection.where)
        return found

    def _send(self, connection: PersistentConnection, path: str, body: bytes, deadline: float) -> StoreReply:
        headers = _HEADERS
        if self._user is not None:
            if connection not in self._tokens:
                self._tokens[connection] = self._login(connection, self._user, deadline)
            headers = {**_HEADERS, "Authorization": self._tokens[connection]}
        return connection.exchange("POST", path, headers, body, deadline)

    def _login(self, connection: PersistentConnection, user: str, deadline: float) -> str:
        body = json.dumps({"name": user, "password": self._password()}).encode("ascii")
        try:
            reply = connection.exchange("POST", "/v3/auth/authenticate", _HEADERS, body, deadline)
            if reply.status != 200:
                raise refusal(reply, connection.where)
            return token_of(object_of(reply.body))
        except StoreFault as fault:
            fault.unsure = False
            raise
        except ValueError as error:
            raise StoreFault(f"the answer of {connection.where} {error}.", kind=GARBAGE) from error

    def _notice(self, header: Header, where: str) -> None:
        """Raise StoreFault if an answer shows that data may have been lost."""
        text, newest = "", self._newest or header
        if header.cluster != newest.cluster:
            text = f"{where} now belongs to another cluster of etcd: what was in the store may have been lost."
        elif header.revision < newest.revision:
            text = f"{where} has gone back to an older state: what was in the store may have been lost."
        if text:
            hint = "Find out whether etcd was restored or set up anew; then restart the runner."
            raise StoreFault(text, hint, kind=LOST_DATA, unsure=True, lasting=True)
        self._newest = header


def _joint_fault(faults: Sequence[StoreFault]) -> StoreFault:
    """Return one fault for those of several endpoints."""
    if len(faults) == 1:
        return faults[0]
    last = faults[-1]
    text = "; ".join(fault.message.rstrip(".") for fault in faults) + "."
    lasting = all(fault.lasting for fault in faults)
    return StoreFault(text, last.hint, kind=last.kind, status=last.status, lasting=lasting)
