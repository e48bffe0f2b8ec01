# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The libraries that the compiler needs: a VM has none of them, and a control node may lack them."""

from __future__ import annotations

import importlib.util
import sys

from ..errors import InputError

# Module -> the package that provides it.
_PACKAGES = {"celpy": "cel-python", "jsonschema": "jsonschema", "lark": "lark", "yaml": "PyYAML"}


class MissingLibraryError(InputError):
    """A library that the compiler needs is not installed."""


def require_libraries() -> None:
    """Raise MissingLibraryError if libraries are missing; it names all of them, and the Python."""
    missing = [package for module, package in _PACKAGES.items() if not _is_installed(module)]
    if missing:
        raise MissingLibraryError(
            f"compiling policies needs {' and '.join(missing)}, not installed for {sys.executable}",
            f"install with: {sys.executable} -m pip install {' '.join(missing)}; or use an artifact that "
            "'forewarn policy compile' wrote on another machine",
        )


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False
