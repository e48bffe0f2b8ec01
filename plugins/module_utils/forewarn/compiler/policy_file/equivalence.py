# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether two texts of a policy are compiled to the same, wherever its parts are in the file."""

from __future__ import annotations

from typing import Any

from ...events import LATEST_API_VERSION
from ..yaml.tree import YamlFile
from .rules import compile_file

_PLACES = ("line", "column")


def compiles_alike(path: str, one: str, other: str) -> bool:
    """Return whether two texts of the policy file ``path`` are the same in an artifact, but for lines and columns.

    A text with mistakes is compared by what could be compiled of it.
    """
    return bool(_compile(path, one) == _compile(path, other))


def _compile(path: str, text: str) -> Any:
    file = YamlFile.from_bytes(path, text.encode("utf-8"))
    return _drop_places(compile_file(file, LATEST_API_VERSION))


def _drop_places(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _drop_places(value) for key, value in data.items() if key not in _PLACES}
    return [_drop_places(item) for item in data] if isinstance(data, (list, tuple)) else data
