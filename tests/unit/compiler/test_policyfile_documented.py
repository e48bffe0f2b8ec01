# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The schema, the documentation and the policies that the repository ships agree with the compiler."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from forewarn import hook_kinds
from forewarn.compiler import policies
from forewarn.compiler.cel import expression
from forewarn.compiler.cel.environment import policy_declarations
from forewarn.compiler.cel.types import BOOL
from forewarn.compiler.findings import CODES
from forewarn.compiler.policies import compile_policies
from forewarn.compiler.testing.policytest import run_tests
from forewarn.compiler.yaml.schema import load as load_schema

SCHEMAS = ("policy.schema.json", "policy-test.schema.json")


def described(root: dict[str, Any], schema: dict[str, Any]) -> str:
    """Return what an editor shows of a property: its own description, or that of what it refers to."""
    while "description" not in schema and "$ref" in schema:
        target: Any = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        schema = target
    return str(schema.get("description", ""))


def properties(schema: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each property that a schema declares, wherever, with its place."""
    if isinstance(schema, list):
        for item in schema:
            yield from properties(item, path)
    elif isinstance(schema, dict):
        for key, value in schema.items():
            if key == "properties":
                for name, one in value.items():
                    yield f"{path}.{name}", one
                    yield from properties(one, f"{path}.{name}")
            elif key not in (
                "dependentSchemas",
                "if",
                "then",
                "else",
                "examples",
                "default",
                "enum",
            ):  # they declare nothing
                yield from properties(value, path if key in ("$defs", "items") else f"{path}.{key}")


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_schemas_describe_every_key(name: str) -> None:
    """An editor shows these texts: whole sentences, of which each begins with a capital letter or a value."""
    from jsonschema import Draft202012Validator

    schema = load_schema(name)
    Draft202012Validator.check_schema(schema)
    found = list(properties(schema))
    assert len(found) > 70
    for place, one in found:
        text = described(schema, one)
        assert re.fullmatch(r"[A-Za-z{].{12,}\.", text), f"{place}: {text!r}"
        first = text.partition(" ")[0]
        is_value = first.endswith(":")  # approve: ask the service …
        assert first[0].isupper() or is_value or first in ("systemd",), f"{place}: {text!r}"
        assert "  " not in text, place


def test_descriptions_of_one_thing_are_alike() -> None:
    """What a test, a step and a decision have in common is explained in the same words."""
    defs = load_schema("policy-test.schema.json")["$defs"]
    for key in defs["decision"]["properties"].keys() & defs["test"]["properties"].keys():
        assert defs["decision"]["properties"][key] == defs["test"]["properties"][key], key
    event = defs["event"]["properties"]
    for key, one in event["value"]["properties"].items():
        assert event[key] == one, key


def test_documentation_names_the_schemas_in_its_first_line(repository: Path) -> None:
    for page, name in (("policies.md", 0), ("policies.md", 1), ("policy-reference.md", 0)):
        line = f"# yaml-language-server: $schema={load_schema(SCHEMAS[name])['$id']}\n"
        assert line in (repository / "docs" / page).read_text()


def test_shipped_policies_satisfy_the_schema(repository: Path) -> None:
    """An editor's YAML reader is not ours; what we ship must satisfy both."""
    from jsonschema import Draft202012Validator

    for path in sorted((repository / "policies").glob("*.yml")):
        name = "policy-test.schema.json" if ".test." in path.name else "policy.schema.json"
        errors = list(Draft202012Validator(load_schema(name)).iter_errors(yaml.safe_load(path.read_text())))
        assert errors == [], path


def rows_of(repository: Path) -> dict[str, list[str]]:
    """Return the rows of docs/findings.md: code -> meaning and example."""
    text = (repository / "docs" / "findings.md").read_text()
    rows = [line.strip("|").split(" | ") for line in text.splitlines() if line.startswith("| `")]
    return {row[0].strip().strip("`"): [cell.strip() for cell in row[1:]] for row in rows}


def test_every_code_is_documented(repository: Path) -> None:
    """docs/findings.md gives each code the meaning that the compiler gives it."""
    meanings = {code: cells[0] for code, cells in rows_of(repository).items()}
    assert meanings == {**CODES, **expression.CODES}


def test_every_code_can_be_reported() -> None:
    sources = Path(policies.__file__).parent.rglob("*.py")
    text = "".join(path.read_text() for path in sources if path.name not in ("findings.py", "expression.py"))
    for code in CODES:
        assert f'"{code}"' in text, f"nothing reports {code}"


def test_the_documented_examples_of_expressions_have_the_code(repository: Path) -> None:
    declarations = policy_declarations("2020-07-01", {}, {}, {})
    tried = 0
    for code, (_meaning, example) in rows_of(repository).items():
        if code in expression.CODES and example.startswith("`") and example.count("`") == 2 and example.endswith("`"):
            found = expression.check(example.strip("`"), declarations, BOOL).findings
            assert code in [finding.code for finding in found], example
            tried += 1
    assert tried > 10


def test_the_examples_of_the_documentation_work(tmp_path: Path, repository: Path) -> None:
    """The first YAML block of docs/policies.md is a policy, the first below 'Tests' are its tests."""
    before, after = (repository / "docs" / "policies.md").read_text().split("\n## Tests\n")
    policy, tests = before.split("```yaml\n")[1], after.split("```yaml\n")[1]
    (tmp_path / "web-tier.yml").write_text(policy.split("```")[0])
    (tmp_path / "web-tier.test.yml").write_text(tests.split("```")[0])
    outcome = run_tests([tmp_path / "web-tier.test.yml"])
    assert (outcome.findings, [result.mismatches for result in outcome.failed]) == ([], [])
    assert not outcome.coverage[0].missing


def test_the_matches_of_the_documentation_compile(tmp_path: Path, repository: Path) -> None:
    text = (repository / "docs" / "policies.md").read_text()
    matches = [block.split("```")[0] for block in text.split("```yaml\n") if block.startswith("    - id: ")]
    assert len(matches) == 4
    for match in matches:
        (tmp_path / "p.yml").write_text("name: p\nrule:\n  match:\n" + match)
        assert compile_policies([tmp_path / "p.yml"]).findings == []


def test_the_documentation_names_every_key(repository: Path) -> None:
    text = (repository / "docs" / "policies.md").read_text()
    schema = load_schema("policy.schema.json")
    tests = load_schema("policy-test.schema.json")["$defs"]
    places = [
        schema,
        *(schema["$defs"][name] for name in ("param", "import", "match", "hook")),
        tests["test"],
        tests["input"],
    ]
    for place in places:
        for key in place["properties"]:
            assert key in text or key in hook_kinds.NAMES, key
