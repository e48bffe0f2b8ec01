# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The policy reference is what its script generates from the schema."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from tools.docs.policy_reference import PAGE, SCHEMA, reference


def keys(schema: Any) -> Iterator[str]:
    """Yield the keys that a schema allows, wherever."""
    if isinstance(schema, dict):
        if schema.get("additionalProperties") is False:
            yield from schema["properties"]
        for value in schema.values():
            yield from keys(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from keys(value)


def test_it_is_current() -> None:
    assert PAGE.read_text() == reference(), "run tests/tools/docs/policy_reference.py"


def test_it_has_every_key_each_with_a_meaning() -> None:
    page = reference()
    for key in keys(json.loads(SCHEMA.read_text())):
        assert re.search(rf"^\| `{key}`(, required)? \| .+ \|$", page, re.MULTILINE), key
    assert re.findall(r"^\| .*\|  \|$", page, re.MULTILINE) == []
