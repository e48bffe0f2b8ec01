# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decides which requests the control API accepts, by the host names in them.

A web page can make its own name point to 127.0.0.1 once a visitor has loaded it (DNS rebinding). The browser then takes
the emulator for the page's own server, and lets the page read and write there. Such requests carry the page's name in
Host and Origin (RFC 9110, 7.2; RFC 6454, 7).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from ..errors import InputError

_NAME = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*\.?", re.ASCII)


class AllowedHosts:
    """The names and addresses by which the control API may be addressed: those of loopback, and ``more``.

    Names are compared whole, in any case; ports do not count. Raises InputError for what is neither name nor address.
    """

    def __init__(self, more: Iterable[str] = ()) -> None:
        # 0.0.0.0 and :: name no host: requests to a server that listens there carry another name.
        self._more = {_checked(name) for name in more} - {"0.0.0.0", "::"}  # noqa: S104 - left out, not listened on

    def complaint(self, headers: Mapping[str, str]) -> str | None:
        """Return the reason to refuse a request with these headers (names in lower case), or None to accept it."""
        host = headers.get("host", "")
        if not self._allows(_host_of(f"//{host}")):
            return self._refusal("Host", host)
        origin = headers.get("origin")
        if origin is not None and not self._allows(_host_of(origin)):
            return self._refusal("Origin", origin)
        return None

    @staticmethod
    def _refusal(header: str, value: str) -> str:
        return (
            f"The control API does not answer to the {header} {value[:80]!r}: only to loopback addresses and names, to "
            f"the address that it listens on, and to names given with --allow-host."
        )

    def _allows(self, host: str | None) -> bool:
        if not host:
            return False
        if host in self._more or host == "localhost" or host.endswith(".localhost"):  # RFC 6761, 6.3
            return True
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return False


def _host_of(url: str) -> str | None:
    """Return the host in ``//HOST[:PORT]`` or an origin, in its normal spelling, or None."""
    try:
        parts = urlsplit(url)
        _port = parts.port  # raises ValueError if it is not a number
        host = parts.hostname
    except ValueError:
        return None
    return _normal(host) if host and "@" not in parts.netloc else None


def _normal(host: str) -> str:
    try:
        return str(ipaddress.ip_address(host.removeprefix("[").removesuffix("]")))
    except ValueError:
        return host.lower().rstrip(".")


def _checked(name: str) -> str:
    host = _normal(name)
    try:
        ipaddress.ip_address(host)
    except ValueError as error:
        if not _NAME.fullmatch(host):
            raise InputError(
                f"{name!r} is not the name or address of a host.", "Write it without scheme and port."
            ) from error
    return host
