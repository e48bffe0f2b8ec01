# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The address of a store: where it is."""

from __future__ import annotations

import re
from typing import NamedTuple

_URL = re.compile(
    r"(https?)://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(?::([0-9]{1,5}))?((?:/[A-Za-z0-9._~$-]+)*)/?", re.ASCII
)
_LABEL = re.compile(r"[A-Za-z0-9_-]{1,63}", re.ASCII)


class Address(NamedTuple):
    """A server, and a path on it: empty, or with a slash before each part. ``host`` is without brackets."""

    host: str
    port: int
    secure: bool
    path: str

    @property
    def where(self) -> str:
        """The server as people write it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(url: str) -> Address:
    """Return the parts of ``http[s]://HOST[:PORT][/PATH]``. Raises ValueError for anything else."""
    match = _URL.fullmatch(url)
    if match is None:
        raise ValueError("not of the form https://HOST[:PORT][/PATH]")
    scheme, host, port, path = match.groups()
    if not host.startswith("[") and not all(_LABEL.fullmatch(label) for label in host.rstrip(".").split(".")):
        raise ValueError("not a host name or an address")
    number = int(port or (443 if scheme == "https" else 80))
    if not 1 <= number <= 65535:
        raise ValueError(f"port {number} is not between 1 and 65535")
    return Address(host.strip("[]"), number, scheme == "https", path)
