# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The layers hold, and their checker finds a package where they do not."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from tools.suite.architecture import MAY_IMPORT, cycle, module_names, violations


def test_the_package_keeps_the_rules_of_imports(package: Path) -> None:
    assert len(module_names(package)) > 10, "the walk found the package"
    assert violations(package) == []


def test_the_table_of_layers_has_no_cycle() -> None:
    layers: dict[str, int] = {}
    while len(layers) < len(MAY_IMPORT):
        ready = [each for each, below in MAY_IMPORT.items() if each not in layers and below <= layers.keys()]
        assert ready, "packages that import each other"
        layers.update({each: max((layers[below] + 1 for below in MAY_IMPORT[each]), default=0) for each in ready})


def test_no_modules_import_each_other(package: Path) -> None:
    assert cycle(package) == []


def test_no_two_classes_have_the_same_name(package: Path) -> None:
    modules: dict[str, list[str]] = {}
    for module, path in module_names(package).items():
        for node in ast.walk(ast.parse(path.read_bytes())):
            # What differs between systems has the same name on each: one of them is the class that others see.
            if isinstance(node, ast.ClassDef) and not _is_counterpart(package, module, node.name):
                modules.setdefault(node.name, []).append(module)
    assert len(modules) > 200, "the walk found the classes"
    assert {name: where for name, where in modules.items() if len(where) > 1} == {}


def _is_counterpart(package: Path, module: str, name: str) -> bool:
    """Return whether the module of Windows has the class in the place of that of POSIX."""
    return module.startswith("system.windows.") and any(
        isinstance(node, ast.ClassDef) and node.name == name
        for other in (package / "system" / "posix").glob("*.py")
        for node in ast.parse(other.read_bytes()).body
    )


@pytest.mark.parametrize(
    "source",
    [
        "from . import engine",
        "from .engine import decide",
        "def late():\n    from .engine import decide",
        "from . import middle",
    ],
)
def test_a_cycle_of_modules_is_found(tmp_path: Path, source: str) -> None:
    (tmp_path / "policy").mkdir()
    sources = {"__init__": "", "engine": "from .program import run", "middle": "from .engine import x", "program": ""}
    for name, text in sources.items():
        (tmp_path / "policy" / f"{name}.py").write_text(text)
    assert cycle(tmp_path) == []
    (tmp_path / "policy/program.py").write_text(source)
    assert {"policy.engine", "policy.program"} <= set(cycle(tmp_path))
    (tmp_path / "policy/program.py").write_text("if TYPE_CHECKING:\n    from .engine import decide")
    assert {"policy.engine", "policy.program"} <= set(cycle(tmp_path))


@pytest.mark.parametrize(
    ("path", "source", "text"),
    [
        ("events.py", "from .policy import engine", "events must not import policy"),
        ("events.py", "from . import policy", "events must not import policy"),
        ("events.py", "from .policy.engine import decide", "events must not import policy"),
        ("policy/engine.py", "from ..imds import client", "policy must not import imds"),
        ("policy/engine.py", "def late():\n    from ..cli import main", "policy must not import cli"),
        ("policy/engine.py", "if False:\n    from .. import runner", "policy must not import runner"),
        ("runner/loop.py", "from ..emulator.server import EmulatorServer", "runner must not import emulator"),
        ("emulator/server.py", "from ..imds.client import Client", "emulator must not import imds"),
        ("compiler/check.py", "from ..analysis import x", "compiler must not import analysis"),
        ("imds/deep/er.py", "from ...policy import x", "imds must not import policy"),
        ("__init__.py", "from .events import Event", "the package itself must not import events"),
        ("policy/engine.py", "from forewarn.events import Event", "imports forewarn.events absolutely"),
        ("compiler/check.py", "import forewarn", "imports forewarn absolutely"),
        (
            "compiler/check.py",
            "from ansible_collections.forewarn.azure.plugins.module_utils.forewarn import events",
            "imports ansible_collections",
        ),
        ("policy/engine.py", "from .... import x", "leaves the package"),
        ("runner/loop.py", "import requests", "imports requests, which is not in the standard library"),
        ("runner/loop.py", "def late():\n    from yaml import load", "imports yaml"),
        ("runner/loop.py", "import tomllib", "imports tomllib"),
        ("imds/dhcp.py", "import distutils.util", "imports distutils.util"),
        ("cli/main.py", "import yaml", "imports yaml"),
        (
            "cli/run/command.py",
            "from ...compiler import policies",
            "is to run on a VM, where compiler.policies is not",
        ),
        ("cli/run/command.py", "from ..policy import check", "is to run on a VM, where cli.policy.check is not"),
        ("cli/run/command.py", "from ..hook import show", "imports the command cli.hook.show"),
        ("cli/policy/eval.py", "def late():\n    from ..hook.show import known", "imports the command cli.hook.show"),
        ("policy/engine.py", "import importlib\nimportlib.import_module('yaml')", "by a computed name"),
        ("policy/engine.py", "__import__('yaml')", "by a computed name"),
        ("attic/junk.py", "", "'attic' is not in the table"),
    ],
)
def test_an_offence_is_found(tmp_path: Path, path: str, source: str, text: str) -> None:
    root = tmp_path / "forewarn"
    for file in ("__init__.py", "cli/policy/check.py", "compiler/policies.py", "policy/__init__.py", path):
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).touch()
    (root / "cli/hook").mkdir(exist_ok=True)
    (root / "cli/hook/show.py").write_text("def add_arguments(parser):\n    pass\n")
    assert violations(root) == [f for f in violations(root) if "attic" in f]
    (root / path).write_text(source + "\n")
    (found,) = violations(root)
    assert text in found
    assert found.startswith(f"{path}:{max(1, len(source.splitlines()))}: ")


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("events.py", "import json\nfrom .errors import ServiceError\nfrom . import __version__"),
        ("policy/engine.py", "from ..events import Event\nfrom . import decision\nfrom .decision import Decision"),
        ("runner/loop.py", "import sqlite3\nfrom ..imds.client import Client\nfrom ..policy import engine"),
        ("compiler/check.py", "import yaml\nfrom ..policy.decision import Decision"),
        ("analysis/space.py", "from ..compiler import expression"),
        (
            "cli/main.py",
            "import importlib\nfrom .output.console import Console\nimportlib.import_module('.run', __package__)",
        ),
        ("cli/policy/check.py", "import yaml\nfrom ...analysis import space\nfrom ..output.console import Console"),
        ("cli/run/command.py", "from ...runner import loop\nfrom ..output.console import Console"),
        ("cli/run/command.py", "def compiled():\n    from ...compiler import policies"),
    ],
)
def test_what_is_allowed_passes(tmp_path: Path, path: str, source: str) -> None:
    root = tmp_path / "forewarn"
    (root / path).parent.mkdir(parents=True)
    (root / path).write_text(source + "\n")
    assert violations(root) == []
