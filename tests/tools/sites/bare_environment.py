# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An environment as ``make`` makes it for the demos: the package and ansible-core, and nothing that only tests need.

Its packages are links to those of the environment that runs the tests, so it costs no installation.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from .install import requirements


def bare_environment(directory: Path) -> Path:
    """Make it in a directory, and return its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", directory], check=True, timeout=60)
    python = directory / "bin" / "python"
    site = Path(sysconfig.get_path("purelib", vars={"base": str(directory)}))
    (editable,) = (Path(word) for word in requirements("demo") if not word.startswith("--"))
    extra = editable.name.partition("[")[2].rstrip("]")
    for package in _closure(Requirement(f"forewarn[{extra}]")).values():
        for top in {file.parts[0] for file in package.files or () if file.parts[0] not in ("..", "__pycache__")}:
            if not (site / top).exists():  # several share a namespace
                (site / top).symlink_to(Path(str(package.locate_file(top))))
        for entry in package.entry_points.select(group="console_scripts"):
            command = python.with_name(entry.name)
            command.write_text(
                f"#!{python}\nimport sys\nfrom {entry.module} import {entry.attr}\nsys.exit({entry.attr}())\n"
            )
            command.chmod(0o755)
    return python


def _closure(wanted: Requirement) -> dict[str, Distribution]:
    found: dict[str, Distribution] = {}
    asked: set[tuple[str, frozenset[str]]] = set()
    open_ones = [wanted]
    while open_ones:
        one = open_ones.pop()
        key = canonicalize_name(one.name), frozenset(one.extras)
        if key in asked:
            continue
        asked.add(key)
        package = found[key[0]] = distribution(one.name)
        for line in package.requires or ():
            needed = Requirement(line)
            if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in ("", *one.extras)):
                open_ones.append(needed)
    return found
