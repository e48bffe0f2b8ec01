# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Brings faults back that users had or nearly had, one after another, and shows that a test still catches each.

known-faults.yml lists them. Each edit is made in a copy of the checkout, where the test of the fault then runs at size
small.

    python -m tools.suite.known_faults [WORD ...]

WORD: only the faults whose sentence, file or test contains one of the words.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
from importlib.util import cache_from_source
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

REPOSITORY = Path(__file__).resolve().parents[3]
LIST = Path(__file__).with_name("known-faults.yml")
SECONDS = 120  # for one test, many times what it takes: with its fault, it may never end
_PASSED, _FAILED = 0, 1  # exit codes of pytest
_NEEDED = ("hypothesis", "psutil", "selenium.webdriver")  # by the tests, and imported once for all of them


class KnownFault(NamedTuple):
    """One fault: what happened, the commit that mended it, the edit that brings it back, and the test that fails."""

    fault: str
    commit: str
    file: str
    old: str
    new: str
    test: str

    def changed(self, source: str) -> str:
        """Return the source of the file with the fault. Raises ValueError unless ``old`` is in it exactly once."""
        found = source.count(self.old)
        if found != 1:
            raise ValueError(f"the text to replace is {found} times in {self.file}:\n{self.old}")
        return source.replace(self.old, self.new)


def known_faults() -> list[KnownFault]:
    """Return the list."""
    return [KnownFault(**entry) for entry in yaml.safe_load(LIST.read_text(encoding="utf-8"))]


def copy_checkout(place: Path) -> None:
    """Copy what git knows, or would add, with the times of the files, so that what is compiled stays good."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        source, target = REPOSITORY / name, place / name
        if source.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)


def _begin(place: Path, tests: tuple[str, ...], printed: Path) -> None:
    """Run tests in a copy, in a process of its own; its exit code is pytest's."""
    with printed.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.chdir(place)
    package = str(place / "plugins" / "module_utils")
    os.environ.update(FOREWARN_SIZE="small", PYTHONPATH=package)  # the latter for programs that tests start
    sys.path[:] = [package, *(one for one in sys.path if one and not Path(one).is_relative_to(REPOSITORY / "tests"))]
    for name in [name for name in sys.modules if name.partition(".")[0] in ("forewarn", "tools")]:
        del sys.modules[name]
    os._exit(int(pytest.main(["-n0", "-p", "no:cacheprovider", "--tb=short", *tests])))


def run_tests(place: Path, *tests: str) -> tuple[int | None, str]:
    """Run tests in a copy at size small; return pytest's exit code, None if they did not end, and what it printed."""
    printed = place / "known-faults.txt"
    process = multiprocessing.get_context("fork").Process(target=_begin, args=(place, tests, printed))
    process.start()
    process.join(SECONDS * len(tests))
    ended = process.exitcode
    if ended is None:
        process.kill()
        process.join()
    return ended, printed.read_text(encoding="utf-8", errors="replace")


def catches(place: Path, fault: KnownFault) -> tuple[bool, str]:
    """Return whether the test fails with the fault, and what it printed. Raises ValueError for an edit out of date."""
    path = place / fault.file
    kept = path.with_name(path.name + ".kept")
    source = fault.changed(path.read_text(encoding="utf-8"))
    path.rename(kept)
    try:
        path.write_text(source, encoding="utf-8")
        Path(cache_from_source(str(path))).unlink(missing_ok=True)
        code, output = run_tests(place, fault.test)
    finally:
        kept.replace(path)
        Path(cache_from_source(str(path))).unlink(missing_ok=True)
    return code == _FAILED and "\nFAILED " in output, output


def main(words: list[str]) -> int:
    """Return 1 if a fault is not caught, 2 if the list is out of date or its tests fail without any fault."""
    every = known_faults()
    faults = [one for one in every if not words or any(word in f"{one.fault} {one.file} {one.test}" for word in words)]
    for name in _NEEDED:
        importlib.import_module(name)
    missed = 0
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        copy_checkout(place)
        code, output = run_tests(place, *dict.fromkeys(one.test for one in faults))
        if code != _PASSED:
            sys.stderr.write(f"{output}\nThe tests of the list do not pass without any fault.\n")
            return 2
        for number, fault in enumerate(faults, 1):
            begun = time.monotonic()
            try:
                caught, output = catches(place, fault)
            except ValueError as error:
                sys.stderr.write(f"{LIST.name} is out of date: {error}\n")
                return 2
            seconds = time.monotonic() - begun
            print(f"{number:3} {'caught' if caught else 'NOT CAUGHT':10} {seconds:5.1f} s  {fault.fault}", flush=True)
            print(f"{'':23}{fault.test}", flush=True)
            if not caught:
                missed += 1
                sys.stderr.write(output)
    print(f"{len(faults)} known faults: {len(faults) - missed} caught, {missed} not caught")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
