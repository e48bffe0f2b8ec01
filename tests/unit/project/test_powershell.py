# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The scripts in PowerShell, as far as they can be judged where there is none: by a parser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import tree_sitter
import tree_sitter_powershell
from tools.worlds.windows import scripts
from tools.worlds.windows.host import opened

_PARSER = tree_sitter.Parser(tree_sitter.Language(tree_sitter_powershell.language()))
_VARIABLE = re.compile(r"\$(\w+)")
_ASSIGNED = re.compile(r"(?m)^((?:\$\w+(?:, )?)+) = ")
REPOSITORY = Path(__file__).parents[3]
SCRIPTS = sorted(path for part in ("roles", "tests") for path in (REPOSITORY / part).rglob("*.ps1"))


def nodes(node: tree_sitter.Node) -> Iterator[tree_sitter.Node]:
    """Yield a node and all below it."""
    yield node
    for child in node.children:
        yield from nodes(child)


def mistakes(text: str) -> list[str]:
    """Return where a script cannot be parsed."""
    found = nodes(_PARSER.parse(text.encode()).root_node)
    return [f"line {node.start_point[0] + 1}" for node in found if node.is_error or node.is_missing]


def hidden(text: str) -> set[str]:
    """Return the variables of a script that the parameter of a function hides: case makes no difference."""
    tree = _PARSER.parse(text.encode()).root_node
    functions = [node for node in nodes(tree) if node.type == "function_parameter_declaration"]
    parameters = {name for node in functions for name in _VARIABLE.findall((node.text or b"").decode())}
    own = {name for match in _ASSIGNED.finditer(text) for name in _VARIABLE.findall(match[1])}
    return {name for name in own if name.lower() in {each.lower() for each in parameters}}


def test_all_scripts_are_found() -> None:
    assert {"look.ps1", "write.ps1", "smoke.ps1"} <= {path.name for path in SCRIPTS}


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_script_parses_and_hides_no_variable(path: Path) -> None:
    text = path.read_text("utf-8")
    assert (mistakes(text), hidden(text)) == ([], set())


@pytest.mark.parametrize("text", ["function f($a { 1 }", "if ($a) { 1", "$a = @('b'"])
def test_mistakes_are_found(text: str) -> None:
    assert mistakes(text) != []


def test_hidden_variables_are_found() -> None:
    script = "$bundle, $b = 'x', 'y'\nfunction f([string] $Words, [switch] $Bundle) { & $bundle @Words }\n"
    assert hidden(script) == {"bundle"}


@pytest.mark.parametrize("name", ["look", "service", "log"])
def test_simulated_script_answers_under_the_same_names(name: str, tmp_path: Path) -> None:
    """The role reads them, and its tests read those of the simulation."""
    text = (scripts.SCRIPTS / f"{name}.ps1").read_text()
    parameters = dict.fromkeys(_VARIABLE.findall(text.partition("param(")[2].partition("\n)")[0]), "")
    result = re.findall(r"(?m)^    (\w+) = ", text.partition("$Ansible.Result = @{")[2].partition("\n}")[0])
    inline = re.findall(r"\$Ansible\.Result = @\{ (\w+) = ", text)
    with opened(tmp_path / "vm.json") as host:
        assert {*result, *inline} == scripts.run(host, text, parameters, False)["result"].keys()
