# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The endpoint of a VM without 169.254.169.254 (SE-04): DHCP option 245, which Windows keeps in the registry.

The DHCP client writes the options of an interface one after another: code, class, length, whether it is the vendor's
own, when it expires (seconds since 1970), each a little-endian number of four bytes, and then the data, filled up to a
multiple of four bytes.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from ..common.dhcp_lease import Lease, address, endpoint_of, routes_service

_INTERFACES = r"SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\Interfaces"
_OPTION = struct.Struct("<5L")
_ENDPOINT, _ROUTES = 245, (121, 249)
_MOST_INTERFACES = 1000


def discover_endpoint() -> str | None:
    """Return the endpoint in the leases of this machine, None if none replaces the default. Raises nothing.

    What is missing, malformed or has expired is skipped. Of several leases the one that was obtained last counts.
    """
    found = sorted(_leases(time.time()), key=lambda dated: dated[0])
    return endpoint_of([lease for _obtained, lease in found if lease.address is not None])


def _leases(now: float) -> Iterator[tuple[int, Lease]]:
    """Yield when each lease was obtained, and the lease."""
    import winreg

    with suppress(OSError), winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, _INTERFACES) as interfaces:
        for number in range(_MOST_INTERFACES):  # OSError after the last one
            with winreg.OpenKey(interfaces, winreg.EnumKey(interfaces, number)) as key:
                lease = parse(_value(key, "DhcpInterfaceOptions"), now)
                obtained = _value(key, "LeaseObtainedTime")
                if lease is not None and _value(key, "EnableDHCP") == 1:
                    yield (obtained if isinstance(obtained, int) else 0), lease


def _value(key: Any, name: str) -> object:
    """Return a value of a key, or None."""
    import winreg

    with suppress(OSError):
        return winreg.QueryValueEx(key, name)[0]
    return None


def parse(content: object, now: float) -> Lease | None:
    """Return the lease in the options of an interface, None without an option 245 that is valid ``now``."""
    if not isinstance(content, bytes):
        return None
    options: dict[int, bytes] = {}
    place = 0
    while place + _OPTION.size <= len(content):
        code, _class, length, vendors_own, expiry = _OPTION.unpack_from(content, place)
        place += _OPTION.size
        if length > len(content) - place:
            return None
        if length and not vendors_own and expiry > now:
            options[code] = content[place : place + length]
        place += length + -length % 4
    if _ENDPOINT not in options:
        return None
    return Lease(address(options[_ENDPOINT]), any(routes_service(options.get(code)) for code in _ROUTES))
