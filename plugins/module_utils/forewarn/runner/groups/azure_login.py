# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Logins to Azure Blob Storage: a shared access signature (SAS), or the VM's managed identity."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple, Union
from urllib.parse import quote

from ...imds.endpoint import parse_endpoint
from ...imds.errors import GARBAGE, HTTP
from .address import Address
from .https import PersistentConnection
from .store import LOGIN, StoreFault
from .tls import TlsFiles

_TOKEN_TARGET = "/metadata/identity/oauth2/token?api-version=2018-02-01&resource=https%3A%2F%2Fstorage.azure.com%2F"  # noqa: S105 - no secret
_SAS = re.compile(r"[A-Za-z0-9%&=._~+/:,-]+", re.ASCII)
_TOKEN = re.compile(r"[\x21-\x7e]{1,65536}")
_SECONDS = re.compile(r"[0-9]{1,12}", re.ASCII)
_EARLY_SECONDS = 300.0  # so long before its end, a token is renewed


class Credentials(NamedTuple):
    """What a request carries: a part of its query, and headers. Either is a secret."""

    query: str
    headers: Mapping[str, str]


class SasLogin:
    """The text that ``read`` returns; it raises StoreFault where there is none.

    ``hint`` says what a login needs to be allowed everything that a store does.
    """

    hint = "The SAS must be valid now, and have the permissions r, c, w, d and l on the container."

    def __init__(self, read: Callable[[], str]) -> None:
        self._read = read
        self._sas = ""

    def credentials(self, deadline: float) -> Credentials:  # noqa: ARG002 - a file takes no time
        """Return what the next request carries. Raises StoreFault."""
        self._sas = self._sas or self._read_sas()
        return Credentials(self._sas, {})

    def renew(self, invalid: bool) -> bool:  # noqa: ARG002 - another may be allowed more
        """Read it again, as it was refused; return whether it is another one. Raises StoreFault."""
        refused, self._sas = self._sas, self._read_sas()
        return refused != self._sas

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def _read_sas(self) -> str:
        sas = self._read().lstrip("?")
        if "sig=" not in sas or not _SAS.fullmatch(sas):
            raise StoreFault("the secret is not a SAS, like sv=…&sr=c&sp=rcwdl&…&sig=….", kind=LOGIN, lasting=True)
        return sas


class IdentityLogin:
    """Tokens of the VM's managed identity: the system-assigned one, or that with ``client_id``.

    ``endpoint`` is that of the Scheduled Events service, which also gives out tokens; no request to it goes through a
    proxy. Raises InputError if it is not well formed.
    """

    hint = "The VM's identity needs the role Storage Blob Data Contributor on the container."

    def __init__(self, endpoint: str, client_id: str | None = None) -> None:
        place = parse_endpoint(endpoint)
        self._connection = PersistentConnection(Address(place.host, place.port, False, place.prefix), TlsFiles())
        self._target = place.prefix + _TOKEN_TARGET
        if client_id is not None:
            self._target += "&client_id=" + quote(client_id, safe="")
        self._token = ""
        self._renewal = self._end = 0.0  # when, on the monotonic clock

    def credentials(self, deadline: float) -> Credentials:
        """Return a token that is still valid. ``deadline`` is of the monotonic clock. Raises StoreFault."""
        if not self._token or time.monotonic() >= self._renewal:
            try:
                self._fetch(deadline)
            except StoreFault:
                if not self._token or time.monotonic() >= self._end:
                    raise
        return Credentials("", {"Authorization": f"Bearer {self._token}"})

    def renew(self, invalid: bool) -> bool:
        """Forget the token if it was refused as ``invalid``, and not only for a request; return whether it was.

        To be allowed more, it need not be another one.
        """
        if invalid:
            self._token = ""
        return invalid

    def close(self) -> None:
        """Close the connection to the endpoint."""
        self._connection.close()

    def _fetch(self, deadline: float) -> None:
        where = self._connection.where
        try:
            reply = self._connection.exchange("GET", self._target, {"Metadata": "true"}, None, deadline)
        except StoreFault as fault:
            fault.unsure = False
            raise
        if reply.status != 200:
            lasting = reply.status in (400, 403)
            hint = "Does the VM have this managed identity?" if lasting else ""
            text = f"{where} gave no token of the VM's identity: it answered {reply.status}."
            raise StoreFault(text, hint, kind=LOGIN if lasting else HTTP, status=reply.status, lasting=lasting)
        try:
            answer = json.loads(reply.body)
            token = answer["access_token"]
            if not _TOKEN.fullmatch(token):
                raise ValueError("not a token")
            seconds = _lifetime(answer)
        except (ValueError, TypeError, LookupError, RecursionError):
            raise StoreFault(f"the answer of {where} is not a token.", kind=GARBAGE) from None  # it may be half of one
        self._token = token
        self._end = time.monotonic() + seconds
        self._renewal = self._end - min(_EARLY_SECONDS, seconds / 2)


AzureLogin = Union[SasLogin, IdentityLogin]


def _lifetime(answer: Mapping[str, object]) -> float:
    """Return for how many seconds a token is valid. Raises ValueError.

    The times are texts as a rule. ``expires_in`` may count from when a token was made, which was kept since.
    """
    found = {}
    for name, now in (("expires_in", 0.0), ("expires_on", time.time())):
        text = str(answer.get(name, ""))
        if _SECONDS.fullmatch(text):
            found[name] = float(text) - now
    return min(found.values())
