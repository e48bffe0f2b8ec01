# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A JSON Schema of SARIF 2.1.0, as far as Forewarn uses it. The standard's own also allows other keys."""

from __future__ import annotations


def record(required: dict[str, object], **optional: object) -> dict[str, object]:
    """Return a schema of an object that has no other properties."""
    properties = {**required, **optional}
    return {"type": "object", "required": list(required), "properties": properties, "additionalProperties": False}


# What is used of SARIF 2.1.0 (OASIS standard), as sections 3.13 to 3.54 of its text have it.
TEXT = {"type": "string", "minLength": 1}
LEVEL = {"enum": ["none", "note", "warning", "error"]}
NUMBER = {"type": "integer", "minimum": 1}
PLACE = record(
    {"artifactLocation": record({"uri": {"type": "string", "format": "uri-reference", "pattern": r"^[^\\ ]+$"}})},
    region=record({"startLine": NUMBER}, startColumn=NUMBER, endColumn=NUMBER),
)
RESULT = record(
    {"message": record({"text": TEXT})},
    ruleId=TEXT,
    ruleIndex={"type": "integer", "minimum": -1},
    level=LEVEL,
    locations={"type": "array", "items": record({}, physicalLocation=PLACE)},
    suppressions={"type": "array", "items": record({"kind": {"enum": ["inSource", "external"]}}, justification=TEXT)},
    properties={"type": "object"},
)
RULE = record(
    {"id": TEXT},
    shortDescription=record({"text": TEXT}),
    helpUri={"type": "string", "format": "uri", "pattern": "^https://"},
    help=record({"text": TEXT}),
    defaultConfiguration=record({}, level=LEVEL),
)
DRIVER = record({"name": TEXT}, version=TEXT, rules={"type": "array", "items": RULE, "uniqueItems": True})
RUN = record(
    {"tool": record({"driver": DRIVER})},
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    results={"type": "array", "items": RESULT},
)
SARIF = record(
    {"version": {"const": "2.1.0"}, "runs": {"type": "array", "items": RUN}}, **{"$schema": {"type": "string"}}
)
