# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes docs/policy-reference.md from the JSON Schema of policy files; run it when the schema has changed."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[3]
SCHEMA = REPOSITORY / "plugins" / "module_utils" / "forewarn" / "compiler" / "policy.schema.json"
PAGE = REPOSITORY / "docs" / "policy-reference.md"
_HEAD = """\
<!-- SPDX-License-Identifier: GPL-3.0-or-later -->
<!-- Written by tests/tools/docs/policy_reference.py from policy.schema.json: change that, and run it. -->
# Policy reference

Every key of a policy file, generated from the schema that `forewarn policy check` uses. Unknown keys are errors.
[Policy files](policies.md) explains how they work together, [findings](findings.md) lists possible mistakes.
Editors find the schema by the first line

```yaml
# yaml-language-server: $schema={address}
```
"""

Schema = dict[str, Any]


class _Reference:
    """Goes through the schema; each object with keys of its own becomes a section, named by how it is reached."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._names: dict[int, str] = {}  # by the identity of a schema
        self._sections: list[tuple[str, Schema]] = []

    def page(self) -> str:
        self._collect(self._root, "The file")
        head = _HEAD.replace("{address}", self._root["$id"])
        return head + "".join(line for name, schema in self._sections for line in self._section(name, schema))

    def _resolve(self, schema: Schema) -> Schema:
        while "$ref" in schema:
            target: Any = self._root
            for part in schema["$ref"].removeprefix("#/").split("/"):
                target = target[part]
            schema = target
        return schema

    def _element(self, schema: Schema) -> tuple[Schema, bool]:
        """Return the schema of a value, or of its items, and whether it is a list."""
        schema = self._resolve(schema)
        return (self._resolve(schema["items"]), True) if "items" in schema else (schema, False)

    def _collect(self, schema: Schema, name: str) -> None:
        if id(schema) in self._names:
            return
        self._names[id(schema)] = name
        self._sections.append((name, schema))
        path = "" if schema is self._root else name.strip("`").removesuffix("[]") + "."
        for key, value in schema["properties"].items():
            element, several = self._element(value)
            if "properties" in element:
                place = "hooks" if element.get("title") == "Hook" else f"{path}{key}"
                self._collect(element, f"`{place}{'[]' if several else ''}`")

    def _section(self, name: str, schema: Schema) -> Iterator[str]:
        yield f"\n## {name}\n\n"
        if "description" in schema:
            yield f"{schema['description']}\n\n"
        yield "| Key | Value | Meaning |\n| --- | --- | --- |\n"
        required = schema.get("required", [])
        for key, value in schema["properties"].items():
            cells = [f"`{key}`" + (", required" if key in required else ""), self._value(value), self._meaning(value)]
            yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"
        notes = list(_notes(schema))
        if notes:
            yield "\n" + "".join(f"- {note}\n" for note in notes)

    def _value(self, schema: Schema) -> str:
        element, several = self._element(schema)
        if id(element) in self._names:
            name = self._names[id(element)]
            text = f"[{name}](#{_anchor(name)})"
        elif "enum" in element:
            text = ", ".join(f"`{value}`" for value in element["enum"])
        elif element.get("title") == "CEL expression":
            text = "CEL expression"
        else:
            types = element.get("type", "any value")
            text = " or ".join(types) if isinstance(types, list) else str(types).replace("array", "list")
        whole = self._resolve(schema)
        if several:
            text = f"list of {text}" + (", at least one" if whole.get("minItems") else "")
        pattern = element.get("x-pattern")
        return f"{pattern} ({text})" if pattern and id(element) in self._names else pattern or text

    def _meaning(self, schema: Schema) -> str:
        whole = {**self._resolve(schema), **schema}
        texts = [whole["description"]] if "description" in whole else []
        if whole.get("default") not in (None, []):
            texts.append(f"Default: `{_yaml(whole['default'])}`.")
        if "examples" in schema and "properties" not in schema:  # those of a section stand below its table
            texts.append("For example " + ", ".join(f"`{_yaml(example)}`" for example in schema["examples"]) + ".")
        return " ".join(texts)


def _notes(schema: Schema) -> Iterator[str]:
    """Yield what the schema demands of combinations of keys."""
    if "oneOf" in schema:
        yield "Exactly one of " + ", ".join(f"`{one['required'][0]}`" for one in schema["oneOf"]) + "."
    for key, others in schema.get("dependentRequired", {}).items():
        yield f"`{key}` needs {', '.join(f'`{other}`' for other in others)} beside it."
    for key, other in schema.get("dependentSchemas", {}).items():
        refused = [name for name, what in other["properties"].items() if what.get("not") == {}]
        yield f"Beside `{key}` there is no {', '.join(f'`{name}`' for name in refused)}."
    for example in schema.get("examples", []):
        yield f"For example `{_yaml(example)}`"


def _anchor(name: str) -> str:
    return re.sub(r"[^\w-]", "", name.lower().replace(" ", "-"))


def _yaml(value: Any) -> str:
    """Write a value on one line as people write it in a policy."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_yaml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_yaml, value)) + "]"
    return value if isinstance(value, str) else json.dumps(value)


def reference() -> str:
    """Return the page."""
    return _Reference(json.loads(SCHEMA.read_text())).page()


if __name__ == "__main__":
    PAGE.write_text(reference())
    sys.stdout.write(f"{PAGE} written\n")
