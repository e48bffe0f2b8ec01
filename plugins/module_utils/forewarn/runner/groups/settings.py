# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of a group and its store in the runner's configuration file."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from ...errors import InputError
from ...policy.structure import is_local_url
from ...system.credentials import PROVIDE
from ..state.secret_file import read_secret
from .address import Address, parse_address
from .documents import GROUP_WORDS, is_group
from .store import LOGIN, Store, StoreFault

_ETCD_ONLY = ("certificate_file", "key_file", "user", "password")
_BLOB_ONLY = ("sas", "identity")
_CREDENTIAL = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,255}", re.ASCII)
_CLIENT_ID = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}", re.ASCII)
_SOURCE_HINT = 'Write it like {"credential": "NAME"} or {"file": "/path"}.'


class SecretSource(NamedTuple):
    """Where a secret is: a credential, or a file. One of them is None."""

    credential: str | None
    file: str | None

    def path(self, credentials_directory: str | None) -> str:
        """Return the file that holds it. Raises InputError where the runner has no credentials."""
        if self.file is not None:
            return self.file
        if credentials_directory is None:
            raise InputError(
                f"there is no credential {self.credential}: the runner has none.",
                f"To give it one, {PROVIDE.format(self.credential)}.",
            )
        return str(Path(credentials_directory, self.credential or ""))


class StoreSettings(NamedTuple):
    """Either the endpoints of etcd, or the container in Azure. All paths are absolute.

    ``identity``: "" is the VM's system-assigned one, another text the client id of a user-assigned one.
    """

    etcd: tuple[Address, ...] = ()
    blob: Address | None = None
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    user: str | None = None
    password: SecretSource | None = None
    sas: SecretSource | None = None
    identity: str | None = None

    def files(self) -> dict[str, str]:
        """Return the paths of its files, by the setting."""
        named = {"ca_file": self.ca_file, "certificate_file": self.certificate_file, "key_file": self.key_file}
        for name, secret in (("password: file", self.password), ("sas: file", self.sas)):
            named[name] = None if secret is None else secret.file
        return {name: path for name, path in named.items() if path is not None}


class GroupSettings(NamedTuple):
    """The group of this VM, and where its VMs meet. ``members`` are their names, () where they are not listed."""

    name: str
    members: tuple[str, ...]
    store: StoreSettings


def group_settings(
    name: str | None, members: Sequence[str] | None, store: Mapping[str, Any] | None, paths: type[PurePath] = Path
) -> GroupSettings:
    """Return what ``group``, ``group_members`` and ``group_store`` of the configuration file mean, if one of them is
    there. ``paths`` are those of the VM's system. Raises InputError.
    """
    if name is None or store is None:
        missing = "group" if name is None else "group_store"
        raise InputError(f"{missing} is missing.", "A group needs both: its name, and the store in which its VMs meet.")
    if not is_group(name):
        raise InputError(f"group is {name!r}.", f"The name of a group has {GROUP_WORDS}.")
    lowered = [member.lower() for member in members or ()]
    twice = next((member for member in lowered if lowered.count(member) > 1), None)
    if twice is not None:
        raise InputError(f"group_members has {twice} twice.", "A share of the group counts each VM once.")
    return GroupSettings(name, tuple(lowered), store_settings(store, paths))


def store_settings(data: Mapping[str, Any], paths: type[PurePath] = Path) -> StoreSettings:
    """Return the settings that an object of the configuration file means. ``paths`` are those of the VM's system.

    Raises InputError.
    """
    unknown = sorted(set(data) - set(_READERS))
    if unknown:
        raise InputError(f"the store has no setting {unknown[0]!r}.", f"Its settings are {', '.join(_READERS)}.")
    if ("etcd" in data) == ("blob" in data):
        raise InputError("a store has exactly one of etcd and blob.")
    kind, others = ("etcd", _BLOB_ONLY) if "etcd" in data else ("blob", _ETCD_ONLY)
    for name in others:
        if name in data:
            raise InputError(f"{name} does not belong to a store with {kind}.")
    for first, second in (("certificate_file", "key_file"), ("user", "password")):
        if (first in data) != (second in data):
            raise InputError(f"{first} and {second} go together: one of them is missing.")
    if kind == "blob" and ("sas" in data) == ("identity" in data):
        raise InputError("a store with blob has exactly one of sas and identity, to log in.")
    settings = StoreSettings(**{name: read(data[name], name) for name, read in _READERS.items() if name in data})
    for name, path in settings.files().items():
        if not paths(path).is_absolute():
            raise InputError(f"{name} is not an absolute path.")
    return settings


def open_store(settings: StoreSettings, credentials_directory: str | None, identity_endpoint: str) -> Store:
    """Return the store, which is not asked yet; the caller closes it.

    ``credentials_directory`` is systemd's, or None; ``identity_endpoint`` is where VMs get tokens of their identity:
    that of the Scheduled Events service. Raises InputError.
    """
    # Only here: they load OpenSSL, which a runner without a store does without.
    from .tls import TlsFiles

    files = TlsFiles(settings.ca_file, settings.certificate_file, settings.key_file)
    if settings.blob is None:
        from .etcd import Etcd

        password = secret_reader(settings.password, credentials_directory)
        return Etcd(settings.etcd, files, settings.user, password)
    from .azure_blob import AzureBlob
    from .azure_login import AzureLogin, IdentityLogin, SasLogin

    login: AzureLogin = SasLogin(secret_reader(settings.sas, credentials_directory))
    if settings.identity is not None:
        login = IdentityLogin(identity_endpoint, settings.identity or None)
    return AzureBlob(settings.blob, files, login)


def secret_reader(source: SecretSource | None, credentials_directory: str | None) -> Callable[[], str]:
    """Return what reads a secret each time anew, so that another one works without a restart. Raises InputError."""
    path = "" if source is None else source.path(credentials_directory)

    def read() -> str:
        try:
            return read_secret(path).decode("utf-8")
        except InputError as error:
            raise StoreFault(error.message, error.hint, kind=LOGIN, lasting=True) from error
        except UnicodeDecodeError:  # which has the secret in it
            raise StoreFault(f"the secret {path} is not UTF-8.", kind=LOGIN, lasting=True) from None

    return read


def _endpoints(value: object, _name: str) -> tuple[Address, ...]:
    if not isinstance(value, list) or not value:
        raise InputError("etcd is not a list of URLs.", 'Write it like ["https://etcd-1.example.com:2379"].')
    found = []
    for position, url in enumerate(value, 1):
        address = store_address(f"etcd, URL {position}", url)
        if address.path:
            raise InputError(f"etcd, URL {position} has a path, and takes none.")
        if not re.search(r":[0-9]+/?$", url):
            raise InputError(f"etcd, URL {position} has no port.", "Add it; that of etcd is 2379 as a rule.")
        found.append(address)
    if len(set(found)) < len(found):
        raise InputError("etcd has the same URL twice.")
    return tuple(found)


def _container(value: object, name: str) -> Address:
    address = store_address(name, value)
    if address.path.count("/") not in (1, 2):
        raise InputError("blob has no container.", "Write it like https://ACCOUNT.blob.core.windows.net/CONTAINER.")
    return address


def store_address(what: str, url: object) -> Address:
    """Return the address. Raises InputError, which never shows the URL: a secret may have been put into it."""
    if not isinstance(url, str):
        raise InputError(f"{what} is not a text.")
    if "?" in url or "@" in url:
        raise InputError(f"{what} has a login in it.", "Put that into password or sas.")
    try:
        address = parse_address(url)
    except ValueError as error:
        raise InputError(f"{what} is no URL that can be used: {error}.") from error
    if not address.secure and not is_local_url(url):
        raise InputError(f"{what} is http, which carries secrets in the clear.", "Use https.")
    return address


def file_path(value: object, name: str) -> str:
    """Return the value of a setting that is a path. Raises InputError."""
    if not isinstance(value, str) or "\0" in value:
        raise InputError(f"{name} is not an absolute path.")
    return value


def _user(value: object, name: str) -> str:
    if not (isinstance(value, str) and value and value.isprintable()):
        raise InputError(f"{name} is not the name of a user.")
    return value


def secret_source(value: object, name: str) -> SecretSource:
    """Return the value of a setting that says where a secret is. Raises InputError."""
    if not isinstance(value, dict) or len(value) != 1 or not value.keys() <= {"credential", "file"}:
        raise InputError(f"{name} has to be an object with exactly one of credential and file.", _SOURCE_HINT)
    if "file" in value:
        return SecretSource(None, file_path(value["file"], f"{name}: file"))
    credential = value["credential"]
    if not (isinstance(credential, str) and _CREDENTIAL.fullmatch(credential)):
        raise InputError(f"{name}: credential is not the name of a credential.", _SOURCE_HINT)
    return SecretSource(credential, None)


def identity_name(value: object, name: str) -> str:
    """Return the value of a setting that selects a managed identity, "" for the system-assigned. Raises InputError."""
    if value is True:
        return ""
    if not (isinstance(value, str) and _CLIENT_ID.fullmatch(value)):
        raise InputError(f"{name} is neither true nor the client id of a managed identity.")
    return value


# The function that reads each setting, by its name.
_READERS: Mapping[str, Callable[[object, str], Any]] = {
    "etcd": _endpoints,
    "blob": _container,
    "ca_file": file_path,
    "certificate_file": file_path,
    "key_file": file_path,
    "user": _user,
    "password": secret_source,
    "sas": secret_source,
    "identity": identity_name,
}
