# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Results of a control node on disk: for the other processes of a run, one for each host, and for later runs."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from .. import __version__
from ..atomic_file import replace_file
from ..errors import InputError
from ..system.locks import lock
from ..system.trust import is_private_directory

MOST = 32  # results of a kind that are kept, the last used ones
_PACKAGE = Path(__file__).parents[1]

Result = TypeVar("Result")


class Cache:
    """Results below ``home`` if only this user can write to it, otherwise below ``run``, which this run alone uses."""

    def __init__(self, home: Path, run: Path) -> None:
        self.run = run
        self._kept = home if is_private_directory(home) else run

    def once(
        self,
        kind: str,
        of: object,
        make: Callable[[], bytes],
        read: Callable[[bytes], Result],
        belongs: Callable[[bytes], bool] = lambda _: True,
    ) -> Result:
        """Return what ``read`` makes of a result: of a kept one, or of what ``make`` returns now.

        ``of`` is a JSON value that identifies a result of this kind; versions of this package do not share results. One
        process of a run makes a result while the others wait. It is kept if ``belongs`` confirms that it is the result
        of ``of``: files may have changed meanwhile. A result that cannot be kept, or cannot be read again (ValueError,
        KeyError, InputError), is made again. Raises what ``make`` raises.
        """
        path = self._kept / kind / digest([self._package(), of])
        with suppress(OSError, ValueError, KeyError, InputError):
            return _find(path, read)
        with self.locked(f"{kind}-{path.name}"):
            with suppress(OSError, ValueError, KeyError, InputError):  # another process may have been faster
                return _find(path, read)
            content = make()
            if belongs(content):
                _store(path, content)
        return read(content)

    def _package(self) -> str:
        """Return a digest of what computes results, found out once in a run: it takes a while, and hosts are many."""
        path = self.run / "forewarn-package"
        with suppress(OSError):
            return path.read_text(encoding="ascii")
        found = digest([__version__, sys.version, _package_state()])
        with suppress(InputError):
            replace_file(path, found.encode("ascii"))
        return found

    @contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """Wait until no other process of this run is inside."""
        with (self.run / f"forewarn-{name}.lock").open("w") as file:
            lock(file.fileno(), wait=True)
            yield


def digest(of: object) -> str:
    """Return the SHA-256 of a JSON value in hexadecimal."""
    return hashlib.sha256(json.dumps(of).encode()).hexdigest()


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file's content in hexadecimal. Raises OSError."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _find(path: Path, read: Callable[[bytes], Result]) -> Result:
    result = read(path.read_bytes())
    os.utime(path)  # it was used
    return result


def _store(path: Path, content: bytes) -> None:
    with suppress(OSError, InputError):
        path.parent.mkdir(mode=0o700, exist_ok=True)
        replace_file(path, content)
        known = sorted(path.parent.iterdir(), key=lambda file: file.stat().st_mtime, reverse=True)
        for old in known[MOST:]:
            old.unlink(missing_ok=True)


def _package_state() -> list[tuple[str, int, int]]:
    """Return a value that changes with any file of the package that computes results."""
    files = sorted(file for file in _PACKAGE.rglob("*") if file.suffix in (".py", ".json"))
    states = [(str(file.relative_to(_PACKAGE)), file.stat()) for file in files]
    return [(name, state.st_mtime_ns, state.st_size) for name, state in states]
