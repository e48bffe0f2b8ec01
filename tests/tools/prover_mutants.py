# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes single changes in analysis/smt and analysis/symbolic, and prints which of them no test notices.

Each change is made in a copy of the package, which a fast selection of tests imports instead. Changes that make no
difference are in prover_mutants_equivalent.txt, with the reason.

    python -m tools.prover_mutants [--most N] [--only PACKAGE/FILE[:LINE]] [--processes N] [--list]
"""

from __future__ import annotations

import argparse
import ast
import importlib
import multiprocessing
import multiprocessing.connection
import os
import resource
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

REPOSITORY = Path(__file__).resolve().parents[2]
UNIT = REPOSITORY / "tests" / "unit" / "analysis"
ANALYSIS = REPOSITORY / "plugins" / "module_utils" / "forewarn" / "analysis"
EQUIVALENT = Path(__file__).with_name("prover_mutants_equivalent.txt")
# The tests that run for a change in a package, after those of its module: the fastest first, since a failure ends them.
TESTS = {
    "smt": (
        "tests/unit/analysis/test_proof.py",
        "tests/unit/analysis/test_smt_witness.py",
        "tests/unit/analysis/test_smt_translation.py",
        "tests/integration/test_smt_cel_spec.py",
        "tests/integration/test_smt_policies.py",
        "tests/integration/test_smt_open_inputs.py",
        "tests/integration/test_smt_events.py",
    ),
    "symbolic": (
        "tests/unit/analysis/test_symbolic_concrete.py",
        "tests/unit/analysis/test_symbolic_domains.py",
        "tests/unit/analysis/test_symbolic_limits.py",
        "tests/unit/analysis/test_symbolic_regions.py",
        "tests/unit/analysis/test_symbolic_resources.py",
        "tests/unit/analysis/test_space.py",
        "tests/unit/analysis/test_map_words.py",
        "tests/unit/analysis/test_coverage.py",
        "tests/unit/analysis/test_table.py",
        "tests/integration/test_proof_classes.py",
    ),
}
_LIMITS = {"FOREWARN_SMT_EXPRESSIONS": "40", "FOREWARN_SMT_POLICIES": "10", "FOREWARN_SMT_CASES": "8"}
_UNCHANGED = (
    "forewarn.compiler.policyfile",
    "forewarn.policy.engine",
    "forewarn.events",
    "forewarn.compiler.expression",
)
SECONDS = 120  # of CPU time for one change, a multiple of what the tests take: a change may never end
MOST = {"smt": 200, "symbolic": 60}  # changes of each package, evenly spread
_COMPARISONS: dict[type[ast.cmpop], tuple[str, ...]] = {
    ast.Lt: ("<=", ">="),
    ast.LtE: ("<", ">"),
    ast.Gt: (">=", "<="),
    ast.GtE: (">", "<"),
    ast.Eq: ("!=",),
    ast.NotEq: ("==",),
    ast.Is: ("is not",),
    ast.IsNot: ("is",),
    ast.In: ("not in",),
    ast.NotIn: ("in",),
}
_OPERATORS: dict[type[ast.operator], tuple[str, ...]] = {
    ast.Add: ("-",),
    ast.Sub: ("+",),
    ast.Mult: ("+",),
    ast.FloorDiv: ("*",),
    ast.Mod: ("+",),
    ast.Div: ("*",),
}
_CALLS = {"conj": "disj", "disj": "conj", "implies": "conj"}
_NOT_MEANT = ("require", "boolean", "integer", "real", "named", "Function", "set", "Int", "Bool", "cast")


class Mutant(NamedTuple):
    """One change: what stands at an offset of a file is replaced."""

    file: str  # with its package: smt/calls.py
    line: int
    start: int
    end: int
    old: str
    new: str

    @property
    def package(self) -> str:
        """The package it is in."""
        return self.file.partition("/")[0]

    def name(self) -> str:
        """Return what it is where lines move: the file, the line's text and the change."""
        line = " ".join((ANALYSIS / self.file).read_text(encoding="utf-8").splitlines()[self.line - 1].split())
        return f"{self.file}: {line} | {' '.join(self.old.split())} → {' '.join(self.new.split())}"


class _Reader(ast.NodeVisitor):
    """Collects the changes of one file."""

    def __init__(self, file: str, source: str) -> None:
        self.file, self.source = file, source
        self.found: list[Mutant] = []
        self._offsets = [0]
        for line in source.encode().splitlines(keepends=True):
            self._offsets.append(self._offsets[-1] + len(line))
        self._bytes = source.encode()

    def _span(self, node: ast.AST) -> tuple[int, int]:
        assert isinstance(node, (ast.expr, ast.stmt, ast.arg))
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._offsets[node.lineno - 1] + node.col_offset, self._offsets[
            node.end_lineno - 1
        ] + node.end_col_offset

    def _text(self, node: ast.AST) -> str:
        start, end = self._span(node)
        return self._bytes[start:end].decode()

    def _add(self, node: ast.AST, new: str) -> None:
        start, end = self._span(node)
        old = self._bytes[start:end].decode()
        self.found.append(Mutant(self.file, self._bytes[:start].count(b"\n") + 1, start, end, old, new))

    def visit_Compare(self, node: ast.Compare) -> None:  # ast's name
        if len(node.ops) == 1:
            left, right = self._text(node.left), self._text(node.comparators[0])
            for new in _COMPARISONS.get(type(node.ops[0]), ()):
                self._add(node, f"{left} {new} {right}")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:  # ast's name
        if not isinstance(node.left, ast.JoinedStr) and not isinstance(node.right, (ast.JoinedStr, ast.Tuple)):
            for new in _OPERATORS.get(type(node.op), ()):
                self._add(node, f"({self._text(node.left)}) {new} ({self._text(node.right)})")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:  # ast's name
        new = " or " if isinstance(node.op, ast.And) else " and "
        self._add(node, new.join(f"({self._text(one)})" for one in node.values))
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:  # ast's name
        if isinstance(node.op, (ast.Not, ast.USub)) and not isinstance(node.operand, ast.Constant):
            self._add(node, f"({self._text(node.operand)})")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:  # ast's name
        if isinstance(node.value, bool):
            self._add(node, str(not node.value))
        elif isinstance(node.value, int):
            self._add(node, str(node.value + 1))
            if node.value > 0:
                self._add(node, str(node.value - 1))

    def visit_IfExp(self, node: ast.IfExp) -> None:  # ast's name
        self._add(node, f"({self._text(node.body)})")
        self._add(node, f"({self._text(node.orelse)})")
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:  # ast's name
        if self._text(node.test) == "TYPE_CHECKING":
            return
        self._add(node.test, "False")
        self.generic_visit(node)

    def visit_Tuple(self, node: ast.Tuple) -> None:  # ast's name
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:  # ast's name
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        texts = [self._text(one) for one in node.args]
        if name in _NOT_MEANT or name == "isinstance":
            return
        if name == "neg" and len(texts) == 1:
            self._add(node, f"({texts[0]})")
        if name in _CALLS:
            self._add(node.func, _CALLS[name])
        if name in ("conj", "disj") and len(node.args) == 1 and isinstance(node.args[0], ast.Tuple):
            parts = [self._text(one) for one in node.args[0].elts]
            for left_out in range(len(parts)):
                kept = [one for number, one in enumerate(parts) if number != left_out]
                self._add(node.args[0], f"({''.join(one + ', ' for one in kept)})")
        if name in ("ite", "If") and len(texts) == 3:
            self._add(node, f"{self._text(node.func)}({texts[0]}, {texts[2]}, {texts[1]})")
        if name == "between" and len(texts) == 3:
            self._add(node, f"between(None, {texts[1]}, {texts[2]})")
            self._add(node, f"between({texts[0]}, {texts[1]}, None)")
        if name in ("implies", "floor_div") and len(texts) == 2:
            self._add(node, f"{name}({texts[1]}, {texts[0]})")
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:  # ast's name
        if not isinstance(node.slice, ast.Name):
            self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:  # ast's name
        for statement in node.body:
            self.visit(statement)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:  # ast's name
        if node.value is not None:
            self.visit(node.value)

    def visit_Raise(self, node: ast.Raise) -> None:  # ast's name
        """Leave messages as they are."""

    def visit_AugAssign(self, node: ast.AugAssign) -> None:  # ast's name
        if isinstance(node.op, ast.Add):
            self._add(node, "pass")
        self.visit(node.value)

    def visit_Expr(self, node: ast.Expr) -> None:  # ast's name
        if isinstance(node.value, ast.Call) and getattr(node.value.func, "attr", "") in ("append", "add"):
            self._add(node, "pass")
        self.generic_visit(node)


def mutants(package: str) -> Iterator[Mutant]:
    """Yield every change of a package, file by file."""
    for path in sorted((ANALYSIS / package).glob("*.py")):
        source = path.read_text(encoding="utf-8")
        reader = _Reader(f"{package}/{path.name}", source)
        reader.visit(ast.parse(source))
        yield from dict.fromkeys(reader.found)


def changed(source: str, mutant: Mutant) -> str:
    """Return the source of a file with a change."""
    raw = source.encode()
    return (raw[: mutant.start] + mutant.new.encode() + raw[mutant.end :]).decode()


def equivalent() -> dict[str, str]:
    """Return the changes that make no difference, with the reasons: a line of each, the second one indented."""
    found: dict[str, str] = {}
    name = ""
    for line in EQUIVALENT.read_text(encoding="utf-8").splitlines():
        if line.startswith("    "):
            found[name] = line.strip()
        elif line and not line.startswith("#"):
            name = line
    return found


def _prepare() -> None:
    """Import what the tests need and the changes do not concern, so that each process begins with it."""
    for name in ("pytest", "z3", "cvc5", "selenium.webdriver", "hypothesis", "psutil", "conftest", *_UNCHANGED):
        importlib.import_module(name)


def _run(mutant: Mutant | None, package: str, directory: Path, direct: bool) -> None:
    """Run the tests of a package with a change, in a process of its own; its exit code is pytest's.

    With ``direct``, only the unit tests of the changed module.
    """
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    import forewarn.analysis  # not its modules, which import what is changed
    import pytest  # only here

    for name in TESTS:
        shutil.copytree(ANALYSIS / name, directory / name, ignore=shutil.ignore_patterns("__pycache__"))
    if mutant is not None:
        target = directory / mutant.file
        target.write_text(changed(target.read_text(encoding="utf-8"), mutant), encoding="utf-8")
    forewarn.analysis.__path__.insert(0, str(directory))
    for name in [name for name in sys.modules if name.startswith(("forewarn.analysis.", "tools.", "test_"))]:
        del sys.modules[name]
    sys.dont_write_bytecode = True
    os.environ.update(_LIMITS)
    os.chdir(REPOSITORY)
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    module = "*" if mutant is None else Path(mutant.file).stem
    own = [str(one.relative_to(REPOSITORY)) for one in UNIT.glob(f"test_{package}_{module}.py")]
    for tests in (own, () if direct else [one for one in TESTS[package] if one not in own]):
        code = int(pytest.main(["-q", "-x", "-n0", "-p", "no:cacheprovider", *tests])) if tests else 0
        if code:
            os._exit(code)
    os._exit(0)


def survivors(asked: Sequence[Mutant], place: Path, processes: int, direct: bool) -> Iterator[tuple[Mutant, bool]]:
    """Yield each change as soon as it is known whether no test notices it."""
    fork = multiprocessing.get_context("fork")
    waiting = list(enumerate(asked))[::-1]
    running: dict[Any, tuple[Any, Mutant]] = {}  # by what shows that a process has ended
    while waiting or running:
        while waiting and len(running) < processes:
            number, mutant = waiting.pop()
            process = fork.Process(target=_run, args=(mutant, mutant.package, place / str(number), direct))
            process.start()
            running[process.sentinel] = process, mutant
        for ended in multiprocessing.connection.wait(list(running)):
            process, mutant = running.pop(ended)
            process.join()
            yield mutant, process.exitcode == 0


def _pass_unchanged(package: str, place: Path, direct: bool) -> bool:
    process = multiprocessing.get_context("fork").Process(target=_run, args=(None, package, place / package, direct))
    process.start()
    process.join()
    return process.exitcode == 0


def main(arguments: list[str]) -> int:
    """Return 1 if a change survives that is not known to make no difference."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--most", type=int, help="changes of each package")
    parser.add_argument("--only", default="", help="PACKAGE/FILE[:LINE], or the beginning of one")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--direct", action="store_true", help="run only the unit tests of the changed module")
    parser.add_argument("--list", action="store_true", help="print the changes, and make none")
    options = parser.parse_args(arguments)
    chosen: list[Mutant] = []
    for package, most in MOST.items():
        every = [one for one in mutants(package) if f"{one.file}:{one.line}:".startswith(options.only)]
        count = min(options.most or most, len(every))
        chosen += (every[number * len(every) // count] for number in range(count))
    known = equivalent()
    asked = [one for one in chosen if one.name() not in known]
    if options.list:
        print("\n".join(one.name() for one in chosen))
        return 0
    _prepare()
    alive = 0
    with tempfile.TemporaryDirectory() as place:
        for package in sorted({one.package for one in asked}):
            if not _pass_unchanged(package, Path(place), options.direct):
                print(f"the tests of {package} fail without any change", file=sys.stderr)
                return 2
        found = survivors(asked, Path(place), options.processes, options.direct)
        for number, (mutant, survived) in enumerate(found, 1):
            if survived:
                alive += 1
                print(f"survives: {mutant.name()}", flush=True)
            if number % 20 == 0:
                print(f"{number} of {len(asked)}, {alive} survive", file=sys.stderr, flush=True)
    print(f"{len(asked)} changes: {alive} survive; {len(chosen) - len(asked)} more are equivalent")
    return 1 if alive else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
