# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The service's endpoint: its syntax, and which one applies."""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from typing import NamedTuple

from ..errors import InputError

DEFAULT_ENDPOINT = "http://169.254.169.254"  # SE-01
ENVIRONMENT_VARIABLE = "FOREWARN_ENDPOINT"
AUTO = "auto"

_HINT = "Write it like http://127.0.0.1:8000 or http://127.0.0.1:8000/vm/web_0."
_URL = re.compile(
    r"http://(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(?::(?P<port>\d{1,5}))?(?P<prefix>(?:/[A-Za-z0-9._~%!$&'()*+,;=:@-]+)*)/*",
    re.ASCII,
)
_LABEL = re.compile(r"[A-Za-z0-9_-]{1,63}", re.ASCII)


class Endpoint(NamedTuple):
    """A base address. ``host`` is without brackets; ``prefix`` is empty or a path that starts with a slash."""

    host: str
    port: int
    prefix: str

    @property
    def url(self) -> str:
        """The address in its normal form, without a trailing slash."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == 80 else f":{self.port}"
        return f"http://{host}{port}{self.prefix}"

    @property
    def is_address(self) -> bool:
        """Whether the host is a numeric address, which needs no name lookup."""
        try:
            socket.inet_pton(socket.AF_INET6 if ":" in self.host else socket.AF_INET, self.host)
        except OSError:
            return False
        return True


def parse_endpoint(text: str) -> Endpoint:
    """Parse ``http://HOST[:PORT][/PREFIX]``. Raises InputError for anything else."""
    if text.lower().startswith("https:"):
        raise InputError(f"endpoint {text!r}: the service speaks http only, not https.", _HINT)
    if "@" in text.partition("://")[2].partition("/")[0]:
        raise InputError("endpoint: a user name or password has no place in it: the service knows none.", _HINT)
    if "?" in text or "#" in text:
        raise InputError(f"endpoint {text!r}: '?' and '#' have no place in it; the api-version is added later.", _HINT)
    match = _URL.fullmatch(text)
    if not match:
        raise InputError(f"endpoint {text!r} is not of the form http://HOST[:PORT][/PREFIX].", _HINT)
    host, port, prefix = match.group("host"), int(match.group("port") or 80), match.group("prefix")
    if not 1 <= port <= 65535:
        raise InputError(f"endpoint {text!r}: port {port} is not between 1 and 65535.", _HINT)
    if not host.startswith("[") and not all(_LABEL.fullmatch(label) for label in host.rstrip(".").split(".")):
        raise InputError(f"endpoint {text!r}: {host!r} is not a host name or an address.", _HINT)
    if "/metadata" in prefix:
        raise InputError(
            f"endpoint {text!r}: give the part before /metadata only.",
            f"Write {text[: text.index('/metadata')]} instead.",
        )
    return Endpoint(host.strip("[]"), port, prefix)


def resolve_endpoint(option: str | None, environ: Mapping[str, str]) -> str:
    """Return the endpoint that applies: ``--endpoint``, else FOREWARN_ENDPOINT, else the default.

    With ``auto`` as the value of either, the DHCP leases decide (SE-04): see ``system.discovery``. Raises InputError.
    """
    if option is not None:
        chosen, source = option, "--endpoint"
    elif environ.get(ENVIRONMENT_VARIABLE):
        chosen, source = environ[ENVIRONMENT_VARIABLE], ENVIRONMENT_VARIABLE
    else:
        return DEFAULT_ENDPOINT
    if chosen == AUTO:
        from ..system.discovery import discover_endpoint  # not at the top: seldom used, and the runner must start fast

        return discover_endpoint() or DEFAULT_ENDPOINT
    try:
        return parse_endpoint(chosen).url
    except InputError as error:
        raise InputError(f"{source}: {error.message}", error.hint) from error


def check_endpoint(url: str, allow: bool) -> None:
    """Raise InputError unless the service at ``url`` is on this machine or link-local (SE-01), or ``allow`` is true.

    Only numeric addresses and the name localhost pass: somebody else decides what another name means.
    """
    host = parse_endpoint(url).host
    if allow or host.lower() == "localhost" or _is_near(host):
        return
    raise InputError(
        f"endpoint {url}: {host} is neither link-local nor loopback, and a service there could drain this VM.",
        "Leave --endpoint out to ask http://169.254.169.254, or add --allow-endpoint if you trust that host.",
    )


def _is_near(host: str) -> bool:
    # inet_pton takes one spelling of an address; others also take 0177.1, and do not agree on what it means.
    try:
        packed = socket.inet_pton(socket.AF_INET6 if ":" in host else socket.AF_INET, host)
    except OSError:
        return False
    if len(packed) == 4:
        return packed[0] == 127 or packed[:2] == bytes((169, 254))
    return packed == bytes(15) + b"\x01" or (packed[0] == 0xFE and packed[1] & 0xC0 == 0x80)
