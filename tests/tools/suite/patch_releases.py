# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What patch releases of Python brought: who uses it fails on a host whose distribution keeps an older one.

A name is written as ``tarfile.data_filter``, a parameter as ``tarfile.TarFile.extractall(filter)``.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

from tools.sites.commands import run_program

_SECURITY_2023 = "3.8.17 3.9.17 3.10.12 3.11.4"
_SECURITY_2024 = "3.8.20 3.9.20 3.10.15 3.11.10 3.12.6"
_SECURITY_2025 = "3.9.23 3.10.18 3.11.13 3.12.11 3.13.4"
_EXPAT = "3.8.19 3.9.19 3.10.14 3.11.9 3.12.3"
_DIGITS = "3.8.14 3.9.14 3.10.7"
# By the releases that brought it; it is in every release of later Pythons. From "Notable changes" in CPython's "What's
# new", from "Added in version" and "Changed in version" in its library reference (up to 3.13.18), and from additions()
# between 3.9.2 and 3.9.18, 3.11.2 and 3.11.7, 3.12.1 and 3.12.7, 3.13.0 and 3.13.18.
ADDED = {
    "decimal.HAVE_CONTEXTVAR": "3.8.3",
    "email.errors.HeaderWriteError": "3.8.20 3.9.20 3.10.15 3.11.10 3.12.5",
    "email.policy.Policy(verify_generated_headers)": "3.8.20 3.9.20 3.10.15 3.11.10 3.12.5",
    "email.utils.getaddresses(strict)": _SECURITY_2024,
    "email.utils.parseaddr(strict)": _SECURITY_2024,
    "email.utils.supports_strict_parsing": _SECURITY_2024,
    "errno.ENOTCAPABLE": "3.11.1",
    "ftplib.FTP.trust_server_pasv_ipv4_address": "3.8.9 3.9.3",
    "html.parser.HTMLParser(scripting)": "3.13.10",
    "os.path.ALLOW_MISSING": _SECURITY_2025,
    "shutil.unpack_archive(filter)": _SECURITY_2023,
    "sys.get_int_max_str_digits": _DIGITS,
    "sys.set_int_max_str_digits": _DIGITS,
    "tarfile.AbsoluteLinkError": _SECURITY_2023,
    "tarfile.AbsolutePathError": _SECURITY_2023,
    "tarfile.FilterError": _SECURITY_2023,
    "tarfile.LinkFallbackError": _SECURITY_2025,
    "tarfile.LinkOutsideDestinationError": _SECURITY_2023,
    "tarfile.OutsideDestinationError": _SECURITY_2023,
    "tarfile.SpecialFileError": _SECURITY_2023,
    "tarfile.TarFile.extract(filter)": _SECURITY_2023,
    "tarfile.TarFile.extractall(filter)": _SECURITY_2023,
    "tarfile.TarFile.extraction_filter": _SECURITY_2023,
    "tarfile.TarInfo.replace": _SECURITY_2023,
    "tarfile.data_filter": _SECURITY_2023,
    "tarfile.fully_trusted_filter": _SECURITY_2023,
    "tarfile.tar_filter": _SECURITY_2023,
    "urllib.parse.parse_qs(separator)": "3.8.8 3.9.2",
    "urllib.parse.parse_qsl(separator)": "3.8.8 3.9.2",
    "xml.etree.ElementTree.XMLParser.flush": _EXPAT,
    "xml.etree.ElementTree.XMLPullParser.flush": _EXPAT,
    "xml.parsers.expat.xmlparser.GetReparseDeferralEnabled": _EXPAT,
    "xml.parsers.expat.xmlparser.SetAllocTrackerActivationThreshold": "3.13.10",
    "xml.parsers.expat.xmlparser.SetAllocTrackerMaximumAmplification": "3.13.10",
    "xml.parsers.expat.xmlparser.SetBillionLaughsAttackProtectionActivationThreshold": "3.13.14",
    "xml.parsers.expat.xmlparser.SetBillionLaughsAttackProtectionMaximumAmplification": "3.13.14",
    "xml.parsers.expat.xmlparser.SetReparseDeferralEnabled": _EXPAT,
}

# Prints the public names of modules, and the parameters of functions, as far as this Python tells them.
_INTERFACE = """
import importlib, inspect, json, sys

def names(place, owner, found):
    for name, value in list(vars(owner).items()):
        if name.startswith("_") and name != "__init__" or inspect.ismodule(value):
            continue
        full = place if name == "__init__" else place + "." + name
        found.setdefault(full, [])
        if inspect.isclass(value):
            if value.__module__ == getattr(owner, "__module__", owner.__name__) and value is not owner:
                names(full, value, found)
        elif callable(value):
            try:
                found[full] = list(inspect.signature(value).parameters)
            except (TypeError, ValueError):
                pass

found = {}
for module in json.loads(sys.argv[1]):
    try:
        names(module, importlib.import_module(module), found)
    except ImportError:
        pass  # not of every platform
print(json.dumps(found))
"""


def additions(older: str, newer: str, modules: Collection[str]) -> list[str]:
    """Return what these modules have by one interpreter, a path, and not by another."""
    before, after = (_interface(interpreter, modules) for interpreter in (older, newer))
    parameters = (
        f"{name}({parameter})"
        for name, found in after.items()
        for parameter in found
        if name in before and before[name] and parameter not in before[name] and not parameter.startswith("_")
    )
    return sorted({*(after.keys() - before.keys()), *parameters})


def _interface(interpreter: str, modules: Collection[str]) -> dict[str, list[str]]:
    done = run_program(interpreter, "-I", "-S", "-W", "ignore", "-c", _INTERFACE, json.dumps(sorted(modules)))
    assert done.returncode == 0, done.stderr
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


class File:
    """What a file of Python imports and names."""

    def __init__(self, path: Path) -> None:
        self.path = path
        tree = ast.parse(path.read_text(encoding="utf-8"))
        self.modules = _modules(tree)  # by their whole names, with those above them
        self._words = list(_words(tree))

    def uses(self, names: Collection[str]) -> list[str]:
        """Return which of the names it uses, ``path:line: name`` each.

        Whose attribute it is, is not known: that of any object counts in a file that imports the name's module.
        """
        wanted: dict[str, list[str]] = {}  # last part, or "function(parameter" -> names
        for name in names:
            if any(name.startswith(f"{module}.") for module in self.modules):
                wanted.setdefault(name.rpartition(".")[2].rstrip(")"), []).append(name)
        return [f"{self.path}:{line}: {name}" for line, word in self._words for name in wanted.get(word, ())]

    def standard_modules(self) -> set[str]:
        """Return the modules of the standard library that it imports."""
        return {name for name in self.modules if name.split(".")[0] in sys.stdlib_module_names}


def _modules(tree: ast.AST) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    parts = (name.split(".") for name in found)
    return {".".join(part[: length + 1]) for part in parts for length in range(len(part))}


def _words(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.lineno, node.attr
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.Call) and isinstance(node.func, (ast.Attribute, ast.Name)):
            function = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
            yield from ((node.lineno, f"{function}({keyword.arg}") for keyword in node.keywords)
