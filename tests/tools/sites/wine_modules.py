# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What programs on a Windows of tests import: compiled once for a checkout, and read from one file.

Wine takes as long to open a file as to run what is in it, and a program imports some three hundred modules.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

from tools.sites.wine import CACHE, DIGEST, PYTHON, Wine, windows_path

_PLACE = r"C:\modules"
MODULES = rf"{_PLACE}\modules.zip"  # for the programs that the runner itself starts
# A module that a program imports before one of the others.
_IMPORTER = rf"""
import _frozen_importlib, marshal, sys
class Modules:
    def __init__(self):
        with open(r"{_PLACE}\modules.bin", "rb") as file:
            self.compiled = marshal.load(file)
    def find_spec(self, name, path=None, target=None):
        if name in self.compiled:
            is_package, file, _ = self.compiled[name]
            return _frozen_importlib.ModuleSpec(name, self, origin=file, is_package=is_package)
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        module.__file__ = module.__spec__.origin
        exec(marshal.loads(self.compiled[module.__name__][2]), module.__dict__)
sys.path[0] = {MODULES!r}
sys.meta_path.insert(2, Modules())
"""
_BEGIN = f"import sys; sys.path.insert(0, {_PLACE!r}); import importer; "
# Its arguments: the zip file and the other one to write, and the directories of packages.
_COMPILER = r"""
import importlib._bootstrap_external as external, marshal, os, sys, zipfile
compiled = {}
with zipfile.ZipFile(sys.argv[1], "w") as archive:
    for root in sys.argv[3:]:
        top = os.path.dirname(root)
        for directory, names, files in os.walk(root):
            names[:] = [name for name in names if name != "__pycache__"]
            place = os.path.relpath(directory, top).replace(os.sep, "/")
            archive.mkdir(place)
            for name in files:
                if name.endswith(".py"):
                    with open(os.path.join(directory, name), encoding="utf-8") as file:
                        code = compile(file.read(), f"{place}/{name}", "exec", dont_inherit=True)
                    archive.writestr(f"{place}/{name}c", external._code_to_timestamp_pyc(code))
for path in (sys.argv[1], r"C:\python\python313.zip"):
    place = r"C:\modules\modules.zip" if path == sys.argv[1] else path
    with zipfile.ZipFile(path) as archive:
        for file in archive.namelist():
            if file.endswith(".pyc"):
                name = file[:-4].replace("/", ".")
                is_package = name.endswith(".__init__")
                where = place + "\\" + file.replace("/", "\\")
                compiled.setdefault(name.removesuffix(".__init__"), (is_package, where, archive.read(file)[16:]))
nothing = marshal.dumps(compile("", "", "exec"))
for name in list(compiled):
    while "." in name:
        name = name.rpartition(".")[0]
        compiled.setdefault(name, (True, None, nothing))
with open(sys.argv[2], "wb") as file:
    marshal.dump(compiled, file)
"""


def program(code: str, python: str = PYTHON) -> tuple[str, ...]:
    """Return the command line of a Python program that has the modules, to which its arguments are added."""
    return (python, "-X", "utf8", "-c", _BEGIN + code)


def provide_modules(wine: Wine, *roots: Path) -> None:
    """Put the modules below directories on drive C:, compiled for this Windows."""
    name = f"wine-modules-{_digest(roots)}"
    with (CACHE / "wine-modules.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        place = CACHE / name
        if not place.exists():
            for old in CACHE.glob("wine-modules-*"):
                shutil.rmtree(old)
            draft = CACHE / "wine-modules-new"
            draft.mkdir()
            (draft / "importer.py").write_text(_IMPORTER)
            files = (windows_path(draft / file) for file in ("modules.zip", "modules.bin"))
            done = wine.run(PYTHON, "-c", _COMPILER, *files, *map(windows_path, roots))
            assert done.returncode == 0, done
            draft.rename(place)
        shutil.copytree(place, wine.path(_PLACE), copy_function=shutil.copyfile)


def _digest(roots: Iterable[Path]) -> str:
    found = sha256(f"{DIGEST} {_COMPILER} {_IMPORTER}".encode())
    for root in roots:
        for path in sorted(root.rglob("*.py")):
            found.update(f"{os.path.relpath(path, root.parent)}\0{path.stat().st_size}\0".encode())
            found.update(path.read_bytes())
    return found.hexdigest()[:12]
