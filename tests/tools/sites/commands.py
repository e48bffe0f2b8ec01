# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs as people run them, ``forewarn`` above all."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import forewarn as forewarn_package
import pytest
from forewarn.cli.main import main

from .pythons import python

FOREWARN = [sys.executable, "-m", "forewarn.cli.main"]
# The Python of what runs on a VM, for example 3.8 (make test-vm); by default the one that runs the tests.
VM_PYTHON = os.environ.get("FOREWARN_VM_PYTHON")
_PACKAGE_PARENT = str(Path(forewarn_package.__path__[0]).parent)
_QUICK = [str(Path(__file__).with_name("quick_vm.py")), _PACKAGE_PARENT]
_BARE = "import sys; sys.path.insert(0, {!r}); from forewarn.cli.main import main; sys.exit(main())"
# As PYTHONPATH: another Python program imports the package and the tools of the tests from where this process does.
SEARCH_PATH = os.pathsep.join(filter(None, sys.path))


def vm_command(*, quick: bool = False, compiles: bool = False) -> list[str]:
    """Return the command ``forewarn`` of a VM; skip the test where this machine does not have the VM's Python.

    ``quick``: it hurries (``quick_vm``). ``compiles``: it does what only a control node can, by this Python.
    """
    if VM_PYTHON is None or compiles:
        return [sys.executable, *_QUICK] if quick else FOREWARN
    return [python(VM_PYTHON), "-I", "-S", "-B", *(_QUICK if quick else ("-c", _BARE.format(_PACKAGE_PARENT)))]


def run_program(
    *command: object,
    cwd: Path | None = None,
    stdin: str | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = 300,
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; return what it wrote and its exit code. ``env`` is its whole environment."""
    return subprocess.run(
        list(map(str, command)),
        env=env,
        cwd=cwd,
        input=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=timeout,
        check=False,
    )


def forewarn(
    *arguments: object, cwd: Path | None = None, stdin: str | None = None, **environ: str
) -> subprocess.CompletedProcess[str]:
    """Run a command of Forewarn to its end; ``environ`` is added to the environment."""
    return run_program(*FOREWARN, *arguments, cwd=cwd, stdin=stdin, env={**os.environ, **environ})


def forewarn_on_vm(*arguments: object, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a command of Forewarn as an operator of a VM does: in this process, unless VMs have another Python.

    ``environ`` is added to the environment.
    """
    if VM_PYTHON is None:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in environ.items():
                patch.setenv(name, value)
            return in_process(*arguments)
    return run_program(*vm_command(), *arguments, env={**os.environ, **environ})


def in_process(
    *arguments: object, cwd: Path | None = None, stdin: str | bytes = "", terminal: bool = False, **environ: str
) -> subprocess.CompletedProcess[str]:
    """Do as ``forewarn`` does, in this process: another would take most of the time. ``terminal``: stderr is one."""
    command = [str(argument) for argument in arguments]
    output, problems = io.StringIO(), io.StringIO()
    problems.isatty = lambda: terminal  # type: ignore[method-assign]  # as a terminal would
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(cwd or Path.cwd())
        patch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode() if isinstance(stdin, str) else stdin)))
        for name, value in environ.items():
            patch.setenv(name, value)
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(problems):
            try:
                code = main(command)
            except SystemExit as end:  # argparse
                code = int(end.code or 0)
    return subprocess.CompletedProcess(command, code, output.getvalue(), problems.getvalue())
