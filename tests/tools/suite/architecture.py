# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A checker of imports: packages import only from layers below, by relative imports; no modules import each other; no
command imports another; and what goes to a VM imports the standard library alone. docs/ARCHITECTURE.md says why.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

# Part (a module or package directly below ``forewarn``) -> the parts it may import. Each may import itself, and
# ``forewarn`` for its version.
MAY_IMPORT: Mapping[str, frozenset[str]] = {
    part: frozenset(below.split())
    for part, below in {
        "errors": "",
        "atomic_file": "errors system",
        "events": "errors",
        "texts": "",
        "system": "errors texts",
        "adhoc": "errors events system texts imds policy",
        "pages": "texts",
        "imds": "errors events system texts",
        "policy": "errors events system texts",
        "hook_kinds": "errors system texts atomic_file",
        "compiler": "errors events system texts policy hook_kinds",
        "runner": "errors events system texts policy imds hook_kinds",
        "emulator": "errors events system",
        "analysis": "errors events texts policy compiler pages",
        "bundle": "errors atomic_file",
        "fleet": "errors events system texts atomic_file policy hook_kinds compiler analysis bundle pages",
        "cli": "errors events system texts atomic_file policy hook_kinds imds compiler runner emulator analysis bundle "
        "fleet",
    }.items()
}
# What a VM runs, without what is left out of it.
STANDARD_LIBRARY_ONLY = (
    "atomic_file",
    "errors",
    "events",
    "texts",
    "system",
    "hook_kinds",
    "imds",
    "policy",
    "runner",
    "cli",
)
LEFT_OUT = ("cli.policy", "cli.fleet", "cli.emulate", "cli.bundle", "cli.completion")
SENT_BY_ANSIBLE = ("adhoc.task",)  # to a VM, with its own modules: not part of the runner
# The standard library of the Python that runs the tests, less what not every Python from 3.8 to 3.13 has.
_NOT_EVERYWHERE = frozenset(
    {"tomllib", "zoneinfo", "graphlib"}  # new
    | {"binhex", "asynchat", "asyncore", "distutils", "imp", "smtpd", "aifc", "audioop", "cgi", "cgitb", "chunk"}
    | {"crypt", "imghdr", "lib2to3", "mailcap", "msilib", "nis", "nntplib", "ossaudiodev", "pipes", "sndhdr", "spwd"}
    | {"sunau", "telnetlib", "uu", "xdrlib"}
)
_STANDS_IN = {
    "zoneinfo": "policy.functions.timevalues"
}  # where a module of ours takes the place of what Python 3.8 lacks
_STANDARD_LIBRARY = sys.stdlib_module_names - _NOT_EVERYWHERE


def module_names(package: Path) -> dict[str, Path]:
    """Return the modules of the package by their names below it: ``""`` for itself, ``policy``, ``policy.engine``."""
    modules = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return modules


def is_standard_library_only(module: str) -> bool:
    """Return whether a module, named as ``module_names`` does, is one that a VM runs."""
    if any(f"{module}.".startswith(f"{name}.") for name in LEFT_OUT):
        return False
    names = (*STANDARD_LIBRARY_ONLY, *SENT_BY_ANSIBLE)
    return module in ("", "adhoc") or any(f"{module}.".startswith(f"{name}.") for name in names)


def violations(package: Path) -> list[str]:
    """Return the breaches of rules in the package's files, one ``file:line: text`` each."""
    found = []
    modules = module_names(package)
    for module, path in modules.items():
        part = module.partition(".")[0]
        name = path.relative_to(package)
        if part and part not in MAY_IMPORT:
            found.append(f"{name}:1: {part!r} is not in the table of layers")
            continue
        tree = ast.parse(path.read_bytes(), filename=str(path))
        for line, text in _check(tree, module, part, _package_of(module, path), package.name, modules):
            found.append(f"{name}:{line}: {text}")
    return [*found, *_imported_commands(package, modules)]


def _imported_commands(package: Path, modules: Mapping[str, Path]) -> Iterator[str]:
    """Yield the imports of commands, which are the modules of cli that define ``add_arguments``.

    What several commands share is a module of its own: a command can change without a look at the others.
    """
    trees = {name: ast.parse(path.read_bytes()) for name, path in modules.items() if name.startswith("cli.")}
    commands = {
        name
        for name, tree in trees.items()
        if any(isinstance(node, ast.FunctionDef) and node.name == "add_arguments" for node in tree.body)
    }
    for name, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.level:
                for target in commands & {*_targets(node, _package_of(name, modules[name]), modules)}:
                    yield f"{modules[name].relative_to(package)}:{node.lineno}: imports the command {target}"


def cycle(package: Path) -> list[str]:
    """Return the modules of one cycle of imports, the first one again at the end; empty if there is no cycle.

    Those in functions and for the type checker alone count as well: who reads one of two modules must read the other.
    """
    modules = module_names(package)
    imports = {
        module: {
            target
            for node in ast.walk(ast.parse(path.read_bytes(), filename=str(path)))
            if isinstance(node, ast.ImportFrom) and node.level
            for target in _targets(node, _package_of(module, path), modules)
        }
        for module, path in modules.items()
    }
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def _package_of(module: str, path: Path) -> list[str]:
    """Return the names of the packages, below ``forewarn``, that relative imports of a module start from."""
    return (module.split(".") if module else [])[: None if path.name == "__init__.py" else -1]


def _targets(node: ast.ImportFrom, here: list[str], modules: Mapping[str, Path]) -> Iterator[str]:
    """Yield the modules that a relative import names."""
    base = here[: len(here) + 1 - node.level] + (node.module.split(".") if node.module else [])
    for alias in node.names:
        target = ".".join([*base, alias.name])
        # Anything else is a name in the module, not a module.
        yield target if target in modules or target in MAY_IMPORT else ".".join(base)


def _check(
    tree: ast.Module, module: str, part: str, here: list[str], package: str, modules: Mapping[str, Path]
) -> Iterator[tuple[int, str]]:
    functions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    deferred = {inner for function in functions for inner in ast.walk(function)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from ((node.lineno, text) for text in _absolute(alias.name, module, package))
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from ((node.lineno, text) for text in _absolute(node.module or "", module, package))
        elif isinstance(node, ast.ImportFrom):
            if node.level > len(here) + 1:
                yield node.lineno, "a relative import that leaves the package"
                continue
            for target in _targets(node, here, modules):
                yield from ((node.lineno, text) for text in _relative(target, module, part, node in deferred))
        elif (
            isinstance(node, ast.Call)
            and part not in ("cli", "hook_kinds")
            and _called(node) in ("__import__", "import_module")
        ):
            yield (
                node.lineno,
                "an import by a computed name, which nothing can check: only cli and hook_kinds may have one",
            )


def _absolute(target: str, module: str, package: str) -> Iterator[str]:
    top = target.partition(".")[0]
    if top in (package, "ansible_collections"):
        yield f"imports {target} absolutely: Ansible gives the package another name than pip does"
    elif is_standard_library_only(module) and top not in _STANDARD_LIBRARY and _STANDS_IN.get(top) != module:
        yield f"imports {target}, which is not in the standard library of each Python from 3.8 to 3.13"


def _relative(target: str, module: str, part: str, deferred: bool) -> Iterator[str]:
    wanted = target.partition(".")[0]
    if wanted not in ("", part, *MAY_IMPORT.get(part, ())):
        yield f"{part or 'the package itself'} must not import {wanted}"
    elif is_standard_library_only(module) and not is_standard_library_only(target) and not deferred:
        yield f"is to run on a VM, where {target} is not: import it in the function that needs it"


def _called(node: ast.Call) -> str:
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""
