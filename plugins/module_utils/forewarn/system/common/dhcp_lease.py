# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a DHCP lease says of the service (SE-04).

Every VM on Azure gets option 245, even inside a virtual network. The route decides: if the lease also routes
169.254.169.254, that address serves the VM and option 245 is ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

_SERVICE = bytes((169, 254, 169, 254))


class Lease(NamedTuple):
    """One lease: the address in option 245, or None if it is unusable, and whether it routes 169.254.169.254."""

    address: str | None
    routes_service: bool = False


def endpoint_of(leases: Sequence[Lease]) -> str | None:
    """Return the endpoint of the last lease, None if that does not replace the default."""
    return None if not leases or leases[-1].routes_service else f"http://{leases[-1].address}"


def address(octets: bytes | None) -> str | None:
    """Return the address in an option 245, None for what is none: this network, multicast or broadcast, too."""
    if octets is None or len(octets) != 4 or octets[0] == 0 or octets[0] >= 224:
        return None
    return ".".join(map(str, octets))


def routes_service(octets: bytes | None) -> bool:
    """Return whether an option 121 or 249 (RFC 3442) routes 169.254.169.254."""
    place = 0
    while octets and place < len(octets):
        width = octets[place]
        if width > 32:
            return False
        length = (width + 7) // 8
        destination = octets[place + 1 : place + 1 + length]
        if width == 32 and destination == _SERVICE:
            return True
        place += 1 + length + 4
    return False
