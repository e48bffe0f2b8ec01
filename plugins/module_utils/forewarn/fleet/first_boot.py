# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Installs the runner on a VM at its first boot. ``forewarn fleet cloud-init`` writes this file to VMs, as it is.

It runs there alone, with the standard library of Python 3.8 or later: ``first_boot.py URL SHA256``, URL being that of
forewarn.pyz. It may be run again at any time. Nothing is used, nor stays, that has another digest. Exit codes: 0 the
runner runs, 1 it cannot be had or started; what happened is on standard error.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

DIRECTORY = Path("/opt/forewarn")
CONFIG_FILE = Path("/etc/forewarn/config.json")
INSTALLER = "forewarn-install.service"
SERVICE = "forewarn.service"
_LARGEST = 64 * 1024 * 1024
_SECONDS = 600.0  # for which the download is tried; the next boot tries it again
_PAUSE = 5.0
_ANSWER_SECONDS = 30
_PIECE = 65_536
_PASSING = (408, 429)  # of the statuses that begin with 4


class InstallError(Exception):
    """The text says what is wrong, as a sentence."""


def main(arguments: list[str]) -> int:
    """Install and start the runner."""
    url, digest = arguments
    bundle = DIRECTORY / f"forewarn-{digest[:16]}.pyz"
    try:
        CONFIG_FILE.parent.chmod(0o750)
        if not bundle.exists() or hashlib.sha256(bundle.read_bytes()).hexdigest() != digest:
            _install(_download(url, digest), bundle)
        _check_config(bundle)
        _put_in_use(bundle)
        for verb, unit in (("enable", SERVICE), ("restart", SERVICE), ("disable", INSTALLER)):
            if subprocess.call(["systemctl", verb, unit]):  # noqa: S603, S607 - no shell
                raise InstallError(f"systemctl {verb} {unit} fails.")
    except (InstallError, OSError) as error:
        sys.stderr.write(f"Forewarn is not installed: {error}\n")
        return 1
    return 0


def _download(url: str, digest: str) -> bytes:
    """Return what is there, which has this digest. Raises InstallError."""
    end = time.monotonic() + _SECONDS
    while True:
        try:
            content = _content(url)
            break
        except (OSError, http.client.HTTPException) as error:  # also urllib's, and a connection that has broken off
            status = error.code if isinstance(error, urllib.error.HTTPError) else 0
            if time.monotonic() > end or (400 <= status < 500 and status not in _PASSING):
                raise InstallError(f"{url}: {error}. The next boot tries it again.") from error
            sys.stderr.write(f"{url}: {error}. It is tried again in {_PAUSE:g} s.\n")
            time.sleep(_PAUSE)  # nothing else runs in this process
    found = hashlib.sha256(content).hexdigest()
    if found != digest:
        raise InstallError(f"{url} has the SHA-256 {found}, not {digest}.")
    return content


def _content(url: str) -> bytes:
    # Ansible's open_url is not here: this file alone is on the VM.
    with urllib.request.build_opener().open(url, timeout=_ANSWER_SECONDS) as answer:
        announced = answer.headers.get("Content-Length")
        content = bytearray()
        while piece := answer.read(_PIECE):
            content += piece
            if len(content) > _LARGEST:
                raise InstallError(f"{url} is larger than {_LARGEST} bytes.")
    if announced is not None and len(content) != int(announced):
        raise OSError(f"the connection has broken off after {len(content)} of {announced} bytes")
    return bytes(content)


def _install(content: bytes, target: Path) -> None:
    """Write the file, whole or not at all."""
    descriptor, name = tempfile.mkstemp(prefix=".forewarn.pyz.", dir=str(target.parent))
    draft = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.chmod(0o755)
        draft.replace(target)
    except OSError:
        draft.unlink()
        raise


def _check_config(bundle: Path) -> None:
    """Raise InstallError if the runner would not start. What its hooks lack it reports, and keeps nothing."""
    command = [sys.executable, "-I", "-S", str(bundle), "run", "--check-config", "--config", str(CONFIG_FILE)]
    if subprocess.call(command) not in (0, 1):  # noqa: S603 - no shell
        raise InstallError("the runner refuses its configuration.")


def _put_in_use(bundle: Path) -> None:
    """Have the link name it, by one rename."""
    draft = bundle.with_name(".forewarn.pyz.link")
    if os.path.lexists(draft):
        draft.unlink()
    draft.symlink_to(bundle.name)
    draft.replace(bundle.with_name("forewarn.pyz"))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
