# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""forewarn.pyz: the part of this package that a VM needs, as one file that Python runs (docs/runner.md).

The same sources give the same entries, on any machine and at any time. Only their compression depends on the zlib
of the machine that builds. To its version a build adds a digest of these sources, so that two builds of one version
can be told apart.
"""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from .atomic_file import replace_file
from .errors import InputError

# What a VM runs, without what is left out of it. The checker of imports has this list too, and a test compares them.
CONTENTS = ("atomic_file", "errors", "events", "texts", "system", "hook_kinds", "imds", "policy", "runner", "cli")
LEFT_OUT = ("cli.policy", "cli.fleet", "cli.emulate", "cli.bundle", "cli.completion")
_KINDS = "hook_kinds"
OLDEST_PYTHON = (3, 8)
# Every Python must get as far as the message, even Python 2: no newer syntax here, and only ASCII.
MAIN = f"""\
# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import sys

if sys.version_info < {OLDEST_PYTHON}:
    sys.stderr.write(
        "error: forewarn needs Python {OLDEST_PYTHON[0]}.{OLDEST_PYTHON[1]} or newer, and %s is Python %d.%d.\\n"
        % ((sys.executable,) + tuple(sys.version_info[:2]))
    )
    raise SystemExit(2)

from forewarn.system.early_signals import keep_reloads

keep_reloads()

from forewarn.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
"""
_FIRST = "forewarn/__init__.py"
_ITS_VERSION = re.compile(rb'^__version__ = "([^"]+)', re.MULTILINE)
_DIGITS = 12
_SHEBANG = b"#!/usr/bin/env python3\n"
_MODE = 0o755


class Bundle(NamedTuple):
    """A file that was built: its size in bytes, its SHA-256 in hexadecimal, and the version that it calls itself by."""

    path: Path
    size: int
    sha256: str
    version: str


def build(source: Path, target: Path, kinds: Collection[str] | None = None) -> Bundle:
    """Build the runner from the directory of this package, whatever its name, and replace the target atomically.

    Of the kinds of hooks it has those that are named, or all. Raises InputError if the directory lacks something, or
    the target cannot be written.
    """
    files = _sources(source, kinds)
    content = archive({"__main__.py": MAIN.encode("ascii"), **files})
    replace_file(target, content, _MODE)  # whatever the umask: nobody but its owner may change what a VM runs
    return Bundle(target, len(content), hashlib.sha256(content).hexdigest(), _version(files))


def version() -> str:
    """Return the version of a runner that is built from this package, such as ``1.2.3+0123456789ab``.

    It ends with build metadata (Semantic Versioning, 10): a digest of the sources. Raises InputError as ``build`` does.
    """
    return _version(_sources(Path(__file__).resolve().parent, None))


def _version(files: Mapping[str, bytes]) -> str:
    found = _ITS_VERSION.search(files[_FIRST])
    return "" if found is None else found.group(1).decode("utf-8", "replace")


def _sources(package: Path, kinds: Collection[str] | None) -> dict[str, bytes]:
    """Return the files of the runner by their names in the bundle. Raises InputError."""
    files: dict[str, bytes] = {}
    left_out = []
    for path in _modules(package):
        name = f"forewarn/{path.relative_to(package).as_posix()}"
        try:
            files[name] = path.read_bytes()
        except OSError as error:
            hint = "The package that the runner is built from has to be whole: install it again."
            raise InputError(f"{path}: {error.strerror}.", hint) from error
        if kinds is not None and path.parent.name == _KINDS and not _ships(path.stem, kinds):
            left_out.append(name)
    files[_FIRST] = _ITS_VERSION.sub(rb"\g<0>+" + _digest(files).encode(), files[_FIRST], count=1)
    return {name: content for name, content in files.items() if name not in left_out}


def _digest(files: Mapping[str, bytes]) -> str:
    """Return what tells builds of one version apart; which kinds of hooks a VM needs makes no difference."""
    listed = "".join(f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files))
    return hashlib.sha256(listed.encode()).hexdigest()[:_DIGITS]


def archive(files: Mapping[str, bytes]) -> bytes:
    """Return files, given by name, as a ZIP file that Python runs (PEP 441)."""
    content = io.BytesIO(_SHEBANG)
    content.seek(0, io.SEEK_END)
    with zipfile.ZipFile(content, "w") as bundle:
        for name, data in sorted(files.items()):
            entry = zipfile.ZipInfo(name)  # dated 1980-01-01, whenever it is built
            entry.external_attr = 0o100644 << 16
            bundle.writestr(entry, data, zipfile.ZIP_DEFLATED)
    return content.getvalue()


def _modules(package: Path) -> Iterator[Path]:
    left_out = [package.joinpath(*name.split(".")) for name in LEFT_OUT]
    yield package / "__init__.py"
    for path in (package / name for name in CONTENTS):
        if not path.is_dir():
            yield path.with_suffix(".py")
            continue
        for module in {path / "__init__.py", *path.rglob("*.py")}:
            if not any(one in (module.with_suffix(""), *module.parents) for one in left_out):
                yield module


def _ships(module: str, kinds: Collection[str]) -> bool:
    """Return whether a module of ``hook_kinds`` is of one of these kinds, or of all."""
    return module in ("__init__", *kinds) or module.startswith(tuple(f"{kind}_" for kind in kinds))
