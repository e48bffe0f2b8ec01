# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parameters of random policies: their types, and declarations with limits that many values break, and without any."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import yaml

DECLARED: Mapping[str, tuple[str, ...]] = {
    "n": (
        "default: 9",
        "default: 9, min: 0, max: 60",
        "default: 9, max: 61",
        "default: 5, min: 5",
        "enum: [9, 30, 60]",
    ),
    "m": ("default: 1", "default: 3, min: 2", "default: 1, max: 2", "default: 2, enum: [1, 2, 3]", "min: 0"),
    "d": ("default: 5m", "default: 5m, min: 1m, max: 10m", "default: 5m, max: 30m", "default: 5m, enum: [5m, 15m]"),
    "e": ("default: 5m", "default: 5m, min: 1m, max: 10m", "default: 30m, min: 1s"),
    "until": (
        "default: '2026-06-15T12:00:00Z'",
        "default: '2026-06-15T12:00:00Z', max: '2030-01-01T00:00:00Z'",
        "default: '2026-06-15T12:00:00Z', min: '2020-01-01T00:00:00Z'",
        "default: '2300-01-01T00:00:00Z'",
    ),
    "s": (
        "default: web",
        'default: "\\u00c9"',
        "default: 'C:\\x', enum: ['C:\\x', '\\u{41}', A]",
        "default: web, enum: [web, WEB, db]",
        "default: ''",
        "enum: [Freeze, Reboot]",
    ),
    "zone": (
        "default: UTC, enum: [UTC, Europe/Berlin]",
        "enum: [America/New_York, '+05:30']",
        "default: Europe/Berlin, enum: [Europe/Berlin, Nowhere]",
        "default: UTC",
    ),
    "r": ("default: 0.5", "default: 0.0, min: -1.0, max: 1.0", "default: 0.5, min: 0.0"),
    "b": ("default: false", "default: true"),
    "names": ("default: [web_0]", "default: []"),
    "numbers": ("default: [9]", "default: [1, 5]"),
    "map": ("default: {role: web}", "default: {}"),
}
_TYPES = {
    **dict.fromkeys(("n", "m"), "int"),
    **dict.fromkeys(("d", "e"), "duration"),
    "until": "timestamp",
    **dict.fromkeys(("s", "zone"), "string"),
    "r": "double",
    "b": "bool",
    "names": "list(string)",
    "numbers": "list(int)",
    "map": "map(string, string)",
}


def declaration(name: str, chance: random.Random) -> dict[str, Any]:
    """Return one of the declarations of a parameter."""
    entry = {"name": name, "type": _TYPES[name], **yaml.safe_load(f"{{{chance.choice(DECLARED[name])}}}")}
    as_text = entry["type"] == "timestamp"  # not as YAML's own times
    return {key: str(value) if as_text else value for key, value in entry.items()}
