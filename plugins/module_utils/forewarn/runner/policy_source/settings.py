# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The setting ``policy_source`` of the runner's configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import InputError
from ..groups.address import Address, parse_address
from ..groups.settings import SecretSource, file_path, identity_name, secret_source, store_address

INTERVAL_SECONDS, SHORTEST_INTERVAL, LONGEST_INTERVAL = 60.0, 10.0, 86400.0


class SourceSettings(NamedTuple):
    """Where newer policies come from, and how to get there. ``url`` is without a slash at its end.

    ``identity``: "" is the VM's system-assigned one, another text the client id of a user-assigned one, None for none.
    """

    url: str
    interval: float = INTERVAL_SECONDS
    identity: str | None = None
    sas: SecretSource | None = None
    ca_file: str | None = None
    proxy: str | None = None


def source_settings(value: str | Mapping[str, Any]) -> SourceSettings:
    """Return what ``policy_source`` means: an address, or an object. Raises InputError."""
    given = {"url": value} if isinstance(value, str) else value
    unknown = sorted(set(given) - set(_READERS))
    if unknown:
        raise InputError(f"policy_source has no setting {unknown[0]!r}.", f"Its settings are {', '.join(_READERS)}.")
    if "url" not in given:
        raise InputError("policy_source has no url.", "Write it like https://policies.example.com/web/policy.json.")
    if "identity" in given and "sas" in given:
        raise InputError("policy_source has both identity and sas.", "Use one of them to log in.")
    settings = SourceSettings(**{name: read(given[name], name) for name, read in _READERS.items() if name in given})
    for path in (settings.ca_file, None if settings.sas is None else settings.sas.file):
        if path is not None and not Path(path).is_absolute():
            raise InputError(f"policy_source: {path} is not an absolute path.")
    return settings


def _url(value: object, name: str) -> str:
    address = store_address(f"policy_source: {name}", value)
    if not address.path:
        hint = "Write it like https://policies.example.com/web/policy.json."
        raise InputError("policy_source: url names a server and no file.", hint)
    if address.host.startswith("169.254.") or address.host.lower().startswith("fe80:"):
        raise InputError("policy_source: url is a link-local address, where the platform's own services are.")
    return str(value).rstrip("/")


def _interval(value: object, name: str) -> float:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not SHORTEST_INTERVAL <= value <= LONGEST_INTERVAL:  # type: ignore[operator]  # it is one
        raise InputError(
            f"policy_source: {name} is not a number of seconds from {SHORTEST_INTERVAL:g} to {LONGEST_INTERVAL:g}."
        )
    return float(value)  # type: ignore[arg-type]  # likewise


def _proxy(value: object, name: str) -> str:
    try:
        address: Address = parse_address(value if isinstance(value, str) else "")
    except ValueError as error:
        raise InputError(f"policy_source: {name} is no URL that can be used: {error}.") from error
    if address.secure or address.path:
        raise InputError(f"policy_source: {name} is {value!r}.", "Write it like http://proxy.example.com:3128.")
    return str(value)


# The function that reads each setting, by its name.
_READERS: Mapping[str, Callable[[object, str], Any]] = {
    "url": _url,
    "interval": _interval,
    "identity": identity_name,
    "sas": secret_source,
    "ca_file": file_path,
    "proxy": _proxy,
}
