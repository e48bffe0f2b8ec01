# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where policies are published: files of this machine, or blobs of a container in Azure."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

from ...atomic_file import replace_file
from ...errors import InputError
from ...runner.groups.address import parse_address
from ...runner.groups.azure_blob import AzureBlob
from ...runner.groups.azure_login import SasLogin
from ...runner.groups.settings import SecretSource, secret_reader
from ...runner.groups.tls import TlsFiles

_SECONDS = 60.0  # for a request


class Files:
    """Files beside a path, such as those that a web server serves."""

    def __init__(self, path: str) -> None:
        self.where = path
        self.name = Path(path).name
        self._directory = Path(path).parent

    def read(self, name: str) -> bytes | None:
        """Return a file, None if there is none. Raises InputError."""
        try:
            return (self._directory / name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InputError(f"{self._directory / name}: {error.strerror}.") from error

    def write(self, name: str, content: bytes) -> None:
        """Replace a file. Raises InputError."""
        replace_file(self._directory / name, content, 0o644)


class Blobs:
    """Blobs beside an address in Azure Blob Storage, such as https://ACCOUNT.blob.core.windows.net/CONTAINER/web.json.

    ``sas_file`` has a shared access signature with the permissions r, c and w. Raises InputError.
    """

    def __init__(self, url: str, sas_file: str, ca_file: str | None) -> None:
        try:
            address = parse_address(url)
        except ValueError as error:
            raise InputError(f"{url}: {error}.", "Put a SAS into --sas-file.") from error
        # An emulator at an IP address has the account in the path.
        depth = 2 if re.fullmatch(r"[0-9.]+|\[.*\]|localhost", address.host) else 1
        parts = address.path.split("/")[1:]
        if len(parts) <= depth:
            hint = "Write it like https://ACCOUNT.blob.core.windows.net/CONTAINER/web/policy.json."
            raise InputError(f"{url} names no blob.", hint)
        self.where = url
        self.name = parts[-1]
        self._prefix = PurePosixPath(*parts[depth:]).parent
        container = address._replace(path="".join(f"/{part}" for part in parts[:depth]))
        login = SasLogin(secret_reader(SecretSource(None, str(Path(sas_file).absolute())), None))
        self._blobs = AzureBlob(container, TlsFiles(ca_file), login, _SECONDS, _SECONDS)
        self._versions: dict[str, str] = {}

    def read(self, name: str) -> bytes | None:
        """Return a blob, None if there is none. Raises InputError or StoreFault."""
        found = self._blobs.read(str(self._prefix / name))
        self._versions[name] = found.version
        return found.value

    def write(self, name: str, content: bytes) -> None:
        """Replace a blob that nobody else has changed since it was read. Raises InputError or StoreFault."""
        if name not in self._versions:
            self.read(name)
        version = self._blobs.swap(str(self._prefix / name), content, self._versions[name])
        if version is None:
            raise InputError(f"{self.where}: somebody else has just changed {name}.", "Look at it, and publish again.")
        self._versions[name] = version
