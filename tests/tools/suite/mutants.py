# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes single changes in the prover and in what decides events, and prints which of them no test notices.

Each change is made in a copy of a module, which a fast selection of tests imports instead. How many changes there are
of each package, FOREWARN_SIZE says, and FOREWARN_SEED which: other ones where it is another number. The tests run at
size small, as in CI, unless --tests says otherwise, and always with the seed 0. Changes that make no difference are in
mutants_equivalent.txt, with the reason.

    python -m tools.suite.mutants [PACKAGE...] [--most N] [--only FILE[:LINE]] [--processes N] [--tests SIZE] [--list]
"""

from __future__ import annotations

import argparse
import ast
import faulthandler
import importlib
import multiprocessing
import multiprocessing.connection
import os
import resource
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tools.suite.sizes import NAMES, SEED, SIZE

REPOSITORY = Path(__file__).resolve().parents[3]
FOREWARN = REPOSITORY / "plugins" / "module_utils" / "forewarn"
EQUIVALENT = Path(__file__).with_name("mutants_equivalent.txt")


class Package(NamedTuple):
    """What is changed together: ``files`` are patterns in ``root``, and so begin the names of changes.

    ``own`` are the patterns of the unit tests of a module, which run first. Then come the ``tests`` of the package: the
    fastest first, since a failure ends them. ``unchanged`` are modules that do not use the package: they are imported
    once, for all changes. Packages that many modules use come first, while none of those is imported.
    """

    root: Path
    files: tuple[str, ...]
    own: str
    tests: tuple[str, ...]
    unchanged: tuple[str, ...] = ()


def _tests(names: str) -> tuple[str, ...]:
    """Return the only file of tests of each name, wherever it is."""
    found = []
    for name in names.split():
        (path,) = (REPOSITORY / "tests").rglob(f"test_{name}.py")
        found.append(str(path.relative_to(REPOSITORY)))
    return tuple(found)


_BELOW_ANALYSIS = (
    *("conftest", "forewarn.compiler.policies", "forewarn.policy.engine", "forewarn.events"),
    "forewarn.compiler.cel.expression",
)
PACKAGES: Mapping[str, Package] = {
    "policy": Package(
        FOREWARN,
        (
            "events.py",
            *(f"policy/{name}.py" for name in ("approval", "decision", "builder", "engine", "environment")),
            *(f"policy/{name}.py" for name in ("hook_program", "params", "program", "trace", "view")),
            *(f"policy/functions/{name}.py" for name in ("dynamic", "lists")),
        ),
        "policy/test_{}*.py",
        _tests(
            "engine engine_nested_rules builder limits imported trace forms scopes approval_groups events "
            "events_limits params hook_program approval cel_arguments cel_lists plan content_changes nested_rules "
            "recording_evaluator artifact plain_decisions "
            "events_properties"
        ),
    ),
    "runner": Package(
        FOREWARN,
        (
            *(f"runner/{name}.py" for name in ("approval_gate", "approvals", "controller", "decision_reporter")),
            *(f"runner/{name}.py" for name in ("event_record", "reconciler", "tracker")),
        ),
        "runner/test_{}*.py",
        _tests(
            "tracker event_record restarts not_before_moves nameless hidden_events content_changes "
            "policy_changes loop dry_runs impact shared_hooks leftovers lost_records exchange shadow "
            "recovery_requests hook_recovery hook_scheduler hook_notifications hook_restarts drill "
            "journal_found_late coordinator "
            "command_reports readiness preparation_reasons plan loop_log journal metrics"
        ),
    ),
    "smt": Package(
        FOREWARN / "analysis",
        ("smt/**/*.py",),
        "analysis/smt/test_smt_{}.py",
        _tests(
            "smt_operands smt_terms smt_text_search smt_functions smt_solver smt_cells smt_inputs smt_texts "
            "smt_resources smt_params smt_effort smt_decisions smt_patterns proof smt_witness smt_times "
            "smt_empty_values smt_expressions verify_redundant smt_cel_spec smt_policies smt_open_inputs smt_events"
        ),
        _BELOW_ANALYSIS,
    ),
    "event_space": Package(
        FOREWARN / "analysis",
        ("event_space/*.py", *(f"report/{name}.py" for name in ("conditions", "decisions"))),
        "analysis/event_space/test_event_space_{}.py",
        _tests(
            "event_space_case event_space_domains event_space_param_domains event_space_regions "
            "event_space_resources event_space_expressions event_space map_words coverage table proof_classes"
        ),
        _BELOW_ANALYSIS,
    ),
}
CPU_SECONDS = 240  # for one change, a multiple of what the tests take: a change may never end
SECONDS = 1800  # or wait for ever
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

    package: str
    file: str  # in the root of its package: smt/calls.py
    line: int
    start: int
    end: int
    old: str
    new: str

    @property
    def path(self) -> Path:
        """The module."""
        return PACKAGES[self.package].root / self.file

    def name(self) -> str:
        """Return what it is where lines move: the file, the line's text and the change."""
        line = " ".join(self.path.read_text(encoding="utf-8").splitlines()[self.line - 1].split())
        return f"{self.file}: {line} | {' '.join(self.old.split())} → {' '.join(self.new.split())}"


class _Reader(ast.NodeVisitor):
    """Collects the changes of one file."""

    def __init__(self, package: str, file: str, source: str) -> None:
        self.package, self.file = package, file
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
        line = self._bytes[:start].count(b"\n") + 1
        self.found.append(Mutant(self.package, self.file, line, start, end, old, new))

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
    root, patterns = PACKAGES[package].root, PACKAGES[package].files
    for path in sorted(path for pattern in patterns for path in root.glob(pattern)):
        source = path.read_text(encoding="utf-8")
        reader = _Reader(package, path.relative_to(root).as_posix(), source)
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


def _prepare(package: str) -> None:
    """Import what the tests need and the changes do not concern, so that each process begins with it."""
    for name in ("pytest", "z3", "cvc5", "selenium.webdriver", "hypothesis", "psutil", *PACKAGES[package].unchanged):
        importlib.import_module(name)


def _run(mutant: Mutant | None, package: str, directory: Path, direct: bool) -> None:
    """Run the tests of a package with a change, in a process of its own; its exit code is pytest's.

    With ``direct``, only the unit tests of the changed module.
    """
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    import pytest  # only here

    about = PACKAGES[package]
    # The package "tools" too, which still has its modules as attributes: the sizes among them.
    parts = "forewarn.analysis.", "tools.", "test_"
    for name in [name for name in sys.modules if name == "tools" or name.startswith(parts)]:
        del sys.modules[name]
    if mutant is not None:
        directory.mkdir()
        (directory / mutant.path.name).write_text(changed(mutant.path.read_text(encoding="utf-8"), mutant), "utf-8")
        parent = ".".join(("forewarn", *mutant.path.relative_to(FOREWARN).parts[:-1]))
        importlib.import_module(parent).__path__.insert(0, str(directory))
    sys.dont_write_bytecode = True
    os.chdir(REPOSITORY)
    output = os.open(directory.with_suffix(".log"), os.O_WRONLY | os.O_CREAT)
    os.dup2(output, 1)
    os.dup2(output, 2)
    unit = REPOSITORY / "tests" / "unit"
    patterns = [] if mutant is None else [about.own.format(mutant.path.stem)]
    own = [str(one.relative_to(REPOSITORY)) for pattern in patterns for one in sorted(unit.glob(pattern))]
    options = ["-q", "-x", "-n0", "-p", "no:cacheprovider", "-p", "no:faulthandler"]
    for tests in (own, () if direct else [one for one in about.tests if one not in own]):
        code = int(pytest.main([*options, *tests])) if tests else 0
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
    if process.exitcode:
        print((place / f"{package}.log").read_text(encoding="utf-8", errors="replace"), file=sys.stderr)
    return process.exitcode == 0


def chosen(package: str, most: int, only: str) -> list[Mutant]:
    """Return so many changes of a package, evenly spread; which, the seed says."""
    every = [one for one in mutants(package) if f"{one.file}:{one.line}:".startswith(only)]
    count = min(most, len(every))
    return [every[(SEED + number * len(every) // count) % len(every)] for number in range(count)]


def main(arguments: list[str]) -> int:
    """Return 1 if a change survives that is not known to make no difference."""
    parser = argparse.ArgumentParser()
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help=f"{', '.join(PACKAGES)}; all of them without")
    parser.add_argument("--most", type=int, default=SIZE.mutants, help="changes of each package")
    parser.add_argument("--only", default="", help="FILE[:LINE], or the beginning of one")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--tests", choices=NAMES, default="small", help="the size of the tests")
    parser.add_argument("--direct", action="store_true", help="run only the unit tests of the changed module")
    parser.add_argument("--list", action="store_true", help="print the changes, and make none")
    options = parser.parse_args(arguments)
    if unknown := {*options.packages} - {*PACKAGES}:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    packages = [one for one in PACKAGES if one in (options.packages or PACKAGES)]
    every = {one: chosen(one, options.most, options.only) for one in packages}
    if options.list:
        print("\n".join(mutant.name() for some in every.values() for mutant in some))
        return 0
    with tempfile.TemporaryDirectory() as place:
        # What one change breaks, hypothesis may not try first with the next one.
        os.environ.update(FOREWARN_SIZE=options.tests, FOREWARN_SEED="0", HYPOTHESIS_STORAGE_DIRECTORY=place)
        del sys.modules["tools.suite.sizes"]
        alive = [_alive(one, some, Path(place) / one, options) for one, some in every.items() if some]
    return max(alive, default=0)


def _alive(package: str, some: Sequence[Mutant], place: Path, options: argparse.Namespace) -> int:
    """Print the changes of a package that survive. Return 1 if there are any, 2 if the tests fail without a change."""
    place.mkdir()
    _prepare(package)
    if not _pass_unchanged(package, place, options.direct):
        print(f"the tests of {package} fail without any change", file=sys.stderr)
        return 2
    known = equivalent()
    asked = [one for one in some if one.name() not in known]
    alive = 0
    for number, (mutant, survived) in enumerate(survivors(asked, place, options.processes, options.direct), 1):
        if survived:
            alive += 1
            print(f"survives: {mutant.name()}", flush=True)
        if number % 20 == 0:
            print(f"{package}: {number} of {len(asked)}, {alive} survive", file=sys.stderr, flush=True)
    print(f"{package}: {len(asked)} changes, {alive} survive; {len(some) - len(asked)} more are equivalent", flush=True)
    return 1 if alive else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
