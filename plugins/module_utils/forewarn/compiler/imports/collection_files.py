# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds installed Ansible collections where ansible-core looks for them, and their versions."""

from __future__ import annotations

import json
import os
import re
import sys
from contextlib import suppress
from pathlib import Path

from ...errors import InputError
from ..yaml.tree import YamlFile, text_of
from .errors import ImportedFileError

NAME = re.compile(r"[a-z_][a-z0-9_]*\.[a-z_][a-z0-9_]*")  # as the schema of policies has it

_DEFAULT = "~/.ansible/collections:/usr/share/ansible/collections"
_DIRECTORY = "ansible_collections"


def find_collection(name: str) -> Path:
    """Return the directory of a collection. Raises ImportedFileError where it is not installed."""
    if not NAME.fullmatch(name):
        raise ImportedFileError(f"{name} is not the name of a collection")
    for root in _roots():
        found = root.joinpath(*name.split("."))
        if os.path.isdir(found):  # noqa: PTH112 - Path.is_dir raises where a directory may not be entered
            return found
    raise ImportedFileError(
        f"the collection {name} is not installed in {_configured()}",
        f"run 'ansible-galaxy collection install {name}', or set ANSIBLE_COLLECTIONS_PATH to where it is",
    )


def version_of(collection: Path) -> str | None:
    """Return the version of a collection, by its ``MANIFEST.json`` or else its ``galaxy.yml``; None if not known."""
    with suppress(OSError, ValueError, RecursionError):
        manifest = json.loads((collection / "MANIFEST.json").read_bytes())
        info = manifest.get("collection_info") if isinstance(manifest, dict) else None
        version = info.get("version") if isinstance(info, dict) else None
        if isinstance(version, str):
            return version
    with suppress(InputError):
        return text_of(YamlFile.read(collection / "galaxy.yml").get("version"))
    return None


def _configured() -> str:
    return os.environ.get("ANSIBLE_COLLECTIONS_PATH") or os.environ.get("ANSIBLE_COLLECTIONS_PATHS") or _DEFAULT


def _roots() -> list[Path]:
    """Return the directories that collections are in, in the order in which ansible-core asks them."""
    ours = [parent for parent in Path(__file__).parents if parent.name == _DIRECTORY]  # where this collection is
    paths = [Path(os.path.expanduser(path)) for path in _configured().split(":") if path]  # noqa: PTH111 - does not raise
    paths += [*ours, *(Path(path) for path in sys.path if path)]
    roots = [path if path.name == _DIRECTORY else path / _DIRECTORY for path in paths]
    return [root for root in dict.fromkeys(roots) if os.path.isdir(root)]  # noqa: PTH112 - likewise
