# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a VM runs is imported with nothing but the standard library, by every Python from 3.8 to 3.13 found here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tools.sites.commands import run_program
from tools.sites.pythons import RUNNING, SUPPORTED, patch_releases, python
from tools.suite.architecture import is_standard_library_only, module_names

# -I and -S leave no site-packages and no environment; it prints what was imported from elsewhere nevertheless.
PROGRAM = """
import importlib, json, sys, sysconfig
path, names = sys.argv[1], json.loads(sys.argv[2])
sys.path.insert(0, path)
for name in names:
    importlib.import_module(name)
homes = (path, sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"))
files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
strangers = [file for file in files if file and ("site-packages" in file or not file.startswith(homes))]
print(json.dumps({"version": "%d.%d" % sys.version_info[:2], "strangers": strangers}))
"""


def run(version: str, package: Path, names: list[str]) -> subprocess.CompletedProcess[str]:
    """Import modules by the interpreter of a version; skip the test where the machine has none."""
    command = [python(version), "-I", "-S", "-B", "-W", "error", "-c", PROGRAM]
    return run_program(*command, package.parent, json.dumps(names))


@pytest.mark.versions
@pytest.mark.parametrize("version", SUPPORTED)
def test_a_vm_needs_nothing_but_python(package: Path, version: str) -> None:
    names = [f"forewarn.{name}".rstrip(".") for name in module_names(package) if is_standard_library_only(name)]
    assert {"forewarn.events", "forewarn.policy.decision", "forewarn.imds", "forewarn.runner"} <= set(names)
    result = run(version, package, names)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == {"version": version, "strangers": []}


def test_the_running_python_is_among_them() -> None:
    assert RUNNING in SUPPORTED
    releases = patch_releases(RUNNING)
    assert releases[sys.version_info[:3]] == sys.executable
    assert python(RUNNING) == releases[min(releases)]


@pytest.mark.parametrize("line", ["import yaml", "import requests", "from __future__ import nothing", "def f(: pass"])
def test_an_offence_is_found(tmp_path: Path, line: str) -> None:
    source = tmp_path / "forewarn"
    source.mkdir()
    (source / "__init__.py").write_text(line + "\n")
    assert run(RUNNING, source, ["forewarn"]).returncode == 1
