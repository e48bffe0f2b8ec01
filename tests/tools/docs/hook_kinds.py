# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes what follows from the declarations of the kinds of hooks: their part of policy.schema.json, and docs/hooks.

Run it in tests when a declaration has changed, and then tests/tools/docs/policy_reference.py:

    python -m tools.docs.hook_kinds
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from forewarn import hook_kinds
from forewarn.hook_kinds.common.declaration import (
    BOOLEAN,
    CHOICE,
    COMMAND,
    DURATION,
    INTEGER,
    TEXTS,
    HookKind,
    Option,
    Requirements,
)
from forewarn.policy.decision import HOOK_TIMEOUT_SECONDS

from .policy_reference import REPOSITORY, SCHEMA

PAGES = REPOSITORY / "docs" / "hooks"
_LICENCE = f"<!-- {'SPDX'}-License-Identifier: GPL-3.0-or-later -->"  # so that no tool takes it for this file's
_PLAIN = ("run", "unit", "http")


def schema() -> str:
    """Return policy.schema.json with the kinds as they are declared now."""
    text = SCHEMA.read_text(encoding="utf-8")
    alternatives = ", ".join(f'{{"required": ["{name}"]}}' for name in (*_PLAIN, *hook_kinds.NAMES))
    text, count = re.subn(
        r'("oneOf": )\[{"required": \["run"\]}, {"required": \["unit"\]}, {"required": \["http"\]}.*\]',
        rf"\1[{alternatives}]",
        text,
    )
    references = "".join(f',\n        "{name}": {{"$ref": "#/$defs/kinds/{name}"}}' for name in hook_kinds.NAMES)
    text, again = re.subn(
        r'("examples": \["never".*\]\n        })(?:,\n        "\w+": {"\$ref": "#/\$defs/kinds/\w+"})*\n',
        lambda match: f"{match.group(1)}{references}\n",
        text,
    )
    if (count, again) != (1, 1):
        raise ValueError("policy.schema.json no longer has the lines that this tool replaces")
    head = re.split(r',\n    "kinds": {|\n  }\n}\n\Z', text)[0]
    kinds = ",\n".join(_kind_schema(kind) for kind in hook_kinds.available())
    return f'{head},\n    "kinds": {{\n{kinds}\n    }}\n  }}\n}}\n'


def pages() -> dict[Path, str]:
    """Return the page of each kind by its path, and the page that lists them."""
    found = {PAGES / f"{kind.name}.md": _page(kind) for kind in hook_kinds.available()}
    rows = [
        f"| [{kind.name}]({kind.name}.md) | {kind.systems_text} | {kind.summary} |" for kind in hook_kinds.available()
    ]
    table = "\n".join(["| Kind | Runs on | What it does |", "| --- | --- | --- |", *rows])
    index = (PAGES / "README.md").read_text(encoding="utf-8")
    found[PAGES / "README.md"] = re.sub(
        r"(<!-- kinds: .* -->\n)(?:.*\n)*?(<!-- end of kinds -->)",
        lambda match: f"{match[1]}{table}\n{match[2]}",
        index,
    )
    return found


def _kind_schema(kind: HookKind) -> str:
    """Return the schema of a kind's options, an option on each line."""
    timeout = {
        "$ref": "#/$defs/duration",
        "title": "Timeout",
        "description": "The time after which the hook fails. NotBefore can cut it short.",
        "default": _duration(kind.timeout_seconds),
    }
    options: dict[str, Any] = {option.name: _option_schema(option) for option in kind.options}
    options.update(timeout=timeout, retry={"$ref": "#/$defs/hook/properties/retry"})
    properties = ",\n".join(f'          "{name}": {_json(value)}' for name, value in options.items())
    required = [option.name for option in kind.options if option.required]
    head = {"title": kind.name, "description": kind.summary, "type": "object", "additionalProperties": False}
    if required:
        head["required"] = required
    if kind.one_of:
        head["oneOf"] = [{"required": [name]} for name in kind.one_of]
    lines = "".join(f'        "{name}": {_json(value)},\n' for name, value in head.items())
    return f'      "{kind.name}": {{\n{lines}        "properties": {{\n{properties}\n        }}\n      }}'


def _option_schema(option: Option) -> dict[str, Any]:
    found: dict[str, Any] = {"title": option.name, "description": option.description}
    if option.type in TEXTS:
        found.update(type="string", minLength=1)
    elif option.type == COMMAND:
        found.update(type="array", minItems=1, items={"type": ["string", "number"]})
    elif option.type == BOOLEAN:
        found.update(type="boolean")
    elif option.type == INTEGER:
        found.update(type="integer", minimum=option.minimum, maximum=option.maximum)
    elif option.type == DURATION:
        found["$ref"] = "#/$defs/duration"
    elif option.type == CHOICE:
        found["enum"] = list(option.choices)
    if option.default is not None:
        found["default"] = _written(option, option.default)
    found["examples"] = [_written(option, option.example)]
    return found


def _page(kind: HookKind) -> str:
    needs = kind.needs(kind.with_defaults(_example(kind)))
    lines = [
        _LICENCE,
        "<!-- Written by tests/tools/docs/hook_kinds.py -->",
        f"# {kind.name}",
        "",
        kind.summary,
        "",
        "```yaml",
        "prepare:",
        f"  - {kind.name}: {_yaml(_example(kind))}",
        "```",
        "",
        "| | |",
        "| --- | --- |",
        f"| Runs on | {kind.systems_text} |",
        f"| Prepare | {kind.prepares} |",
        f"| Recover | {kind.recovers} |",
        f"| Effect | {kind.effect} |",
        f"| Twice | {kind.repeatable} |",
        f"| It needs | {_needs(kind, needs)} |",
        f"| Tried with | {kind.tried_with} |",
        "",
        f"[Options](../policy-reference.md#hooks{kind.name})",
        "",
    ]
    return "\n".join(lines)


def _needs(kind: HookKind, needs: Requirements) -> str:
    programs = ", ".join(f"`{name}`" for name in needs.programs)
    parts = [f"the programs {programs}"] if programs else []
    parts += [f"the socket `{path}`" for path in needs.sockets]
    parts += [f"the unit `{unit}`" for unit in needs.units]
    parts += [f"the service `{name}`" for name in needs.services]
    sandbox = " and ".join(f"`{name}`" for name in needs.sandbox)
    parts += [f"{sandbox} in the [sandbox](README.md)"] if sandbox else []
    text = f"{', '.join(parts)}. " if parts else ""
    return text[:1].upper() + text[1:] + kind.requirements


def _example(kind: HookKind) -> dict[str, Any]:
    wanted = {option.name for option in kind.options if option.required} | set(kind.one_of[:1])
    shown = [option for option in kind.options if option.name in wanted] or kind.options[:1]
    return {option.name: _written(option, option.example) for option in shown}


def _written(option: Option, value: Any) -> Any:
    """Return a value as a policy has it."""
    return _duration(value) if option.type == DURATION else value


def _yaml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_yaml(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(_yaml, value))}]"
    if isinstance(value, str) and re.fullmatch(r"[\w./:@-]+", value):
        return value
    return json.dumps(value, ensure_ascii=False)


def _duration(seconds: float) -> str:
    return f"{seconds / 60:g}m" if seconds >= HOOK_TIMEOUT_SECONDS and seconds % 60 == 0 else f"{seconds:g}s"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def main() -> None:
    """Write them."""
    SCHEMA.write_text(schema(), encoding="utf-8")
    PAGES.mkdir(exist_ok=True)
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
