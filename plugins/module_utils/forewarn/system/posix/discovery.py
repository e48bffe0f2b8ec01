# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The endpoint of a VM without 169.254.169.254 (SE-04): DHCP option 245, in the lease files of DHCP clients."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Callable

from ..common.dhcp_lease import Lease, address, endpoint_of, routes_service

_MAX_FILE_BYTES = 1024 * 1024
_ROUTE_OPTIONS = (
    *("rfc3442-classless-static-routes", "classless-static-routes", "unknown-121", "option-121"),
    *("ms-classless-static-routes", "unknown-249", "option-249", "private-249"),
)
_ENDPOINT_OPTIONS = ("unknown-245", "option-245", "private-245")
_EXPIRY = re.compile(r"\d (\d{4})/(\d\d)/(\d\d) (\d\d):(\d\d):(\d\d)", re.ASCII)
_HEX_PAIRS = re.compile(r"[0-9a-fA-F]{1,2}(?::[0-9a-fA-F]{1,2})+", re.ASCII)
_HEX_DIGITS = re.compile(r"(?:[0-9a-fA-F]{2})+", re.ASCII)
_ESCAPE = re.compile(r"\\([0-7]{3}|.)", re.ASCII | re.DOTALL)
_STATEMENT = re.compile(r'#[^\n]*|"(?:\\.|[^"\\])*"?|[;{}]|[^;{}"#]+', re.DOTALL)


def discover_endpoint(root: Path = Path("/"), now: datetime | None = None) -> str | None:
    """Return the endpoint in the lease files below ``root``, None if no lease replaces the default.

    Files that are missing, unreadable or malformed are skipped. The first source with a valid lease counts, and of its
    leases the last one in the file that was changed last. ``now`` is an aware time. Raises nothing.
    """
    now = now or datetime.now(timezone.utc)
    for patterns, parse in _SOURCES:
        leases = [_parse_file(path, parse, now) for path in _files(root, patterns)]
        found = [lease for lease in leases if lease is not None and lease.address is not None]
        if found:
            return endpoint_of(found)
    return None


def parse_dhclient(text: str, now: datetime) -> Lease | None:
    """Return the last lease in a dhclient file that has an option 245 and has not expired at ``now``."""
    found = None
    for statements in _dhclient_leases(text):
        options = {}
        expired = False
        for statement in statements:
            word, _space, rest = statement.partition(" ")
            if word == "option":
                name, _space, value = rest.partition(" ")
                options[name] = value.strip()
            elif word == "expire":
                expired = _has_expired(rest.strip(), now)
        lease = _lease_from_options(options)
        if lease.address is not None and not expired:
            found = lease
    return found


def parse_networkd(text: str, now: datetime) -> Lease | None:  # noqa: ARG001 - networkd deletes a lease that expires
    """Return the lease in a file of systemd-networkd."""
    values = dict(line.partition("=")[::2] for line in text.splitlines())
    routes = [route.partition(",")[0] for route in values.get("ROUTES", "").split()]
    return Lease(_address(values.get("OPTION_245", "").strip()), "169.254.169.254/32" in routes)


def parse_cloud_init(text: str, now: datetime) -> Lease | None:  # noqa: ARG001 - the file is in /run, so it is from this boot
    """Return the lease in a JSON file of cloud-init's dhclient hook (names with underscores). Raises ValueError."""
    data = json.loads(text)
    if not isinstance(data, dict):
        return None
    options = {name.replace("_", "-"): value for name, value in data.items() if isinstance(value, str)}
    return _lease_from_options(options)


_Parse = Callable[[str, datetime], "Lease | None"]
# Tried in this order: the leases of a running client, and the one that cloud-init got before the network was up.
_SOURCES: tuple[tuple[tuple[str, ...], _Parse], ...] = (
    (("run/systemd/netif/leases/*",), parse_networkd),
    (
        (
            "var/lib/dhcp/*.lease*",
            "var/lib/dhclient/*.lease*",
            "var/lib/NetworkManager/dhclient-*.lease",
            "run/dhclient*.lease*",
        ),
        parse_dhclient,
    ),
    (("run/cloud-init/dhclient.hooks/*.json",), parse_cloud_init),
)


def _files(root: Path, patterns: tuple[str, ...]) -> list[Path]:
    """Return the files that match, the one that was changed last at the end."""
    found: list[tuple[float, Path]] = []
    for path in {path for pattern in patterns for path in root.glob(pattern)}:
        with suppress(OSError):  # it is gone, or its directory can be listed, but not entered
            state = path.stat()
            if stat.S_ISREG(state.st_mode):
                found.append((state.st_mtime, path))
    return [path for _changed_at, path in sorted(found)]


def _parse_file(path: Path, parse: _Parse, now: datetime) -> Lease | None:
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_FILE_BYTES).decode("utf-8", "replace")
        return parse(text, now)
    except (OSError, ValueError, RecursionError):
        return None


def _lease_from_options(options: dict[str, str]) -> Lease:
    address = next((_address(options[name]) for name in _ENDPOINT_OPTIONS if name in options), None)
    return Lease(address, any(_routes_service(options[name]) for name in _ROUTE_OPTIONS if name in options))


def _dhclient_leases(text: str) -> Iterator[list[str]]:
    """Yield the statements of each complete ``lease { … }``; white space outside quotes becomes one blank."""
    statements: list[str] | None = None
    current: list[str] = []
    for match in _STATEMENT.finditer(text):
        part = match.group()
        if part == "{":
            # A new lease begins here, even if the previous closing brace is missing.
            if " ".join("".join(current).split()) == "lease":
                statements = []
            current = []
        elif part == "}":
            if statements is not None:
                yield statements
            statements, current = None, []
        elif part == ";":
            if statements is not None:
                statements.append("".join(current).strip())
            current = []
        elif not part.startswith("#"):
            current.append(part if part.startswith('"') else re.sub(r"\s+", " ", part))


def _has_expired(text: str, now: datetime) -> bool:
    """Return whether an ``expire`` time (UTC) has passed; an unreadable one counts as passed."""
    if text == "never":
        return False
    word, _space, seconds = text.partition(" ")
    try:
        if word == "epoch":
            return not float(seconds) > now.timestamp()  # nan is neither
        match = _EXPIRY.fullmatch(text)
        if not match:
            return True
        year, month, day, hour, minute, second = (int(part) for part in match.groups())
        return datetime(year, month, day, hour, minute, second, tzinfo=timezone.utc) <= now
    except ValueError:
        return True


def _address(value: str) -> str | None:
    """Parse an IPv4 address in any spelling of a lease: ``a8:3f:81:10``, ``a83f8110``, or four escaped characters."""
    return address(_octets(value))


def _octets(value: str) -> bytes | None:
    if len(value) >= 2 and value[0] == value[-1] == '"':
        value = value[1:-1]
    if len(value) > 4:  # four characters are the bytes themselves, even if one of them is a colon
        if _HEX_PAIRS.fullmatch(value):
            return bytes(int(pair, 16) for pair in value.split(":"))
        if _HEX_DIGITS.fullmatch(value):
            return bytes.fromhex(value)
    # If all bytes are printable, a client writes them as text, with quotes and backslashes escaped.
    try:
        return _ESCAPE.sub(_unescape, value).encode("latin-1")
    except UnicodeEncodeError:
        return None


def _unescape(match: re.Match[str]) -> str:
    code = match.group(1)
    return chr(int(code, 8) & 255) if len(code) == 3 else code


def _routes_service(value: str) -> bool:
    """Return whether an option 121 or 249 (RFC 3442), in decimal or in hexadecimal, routes 169.254.169.254."""
    if re.fullmatch(r"\d{1,3}(?:[, ]\d{1,3})*", value, re.ASCII):
        numbers = [int(number) for number in re.split("[, ]", value)]
        octets = bytes(numbers) if max(numbers) < 256 else None
    else:
        octets = _octets(value)
    return routes_service(octets)
