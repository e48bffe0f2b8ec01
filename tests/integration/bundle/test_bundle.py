# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""forewarn.pyz: its content, which depends on the sources alone, and the Pythons that it refuses."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest
from forewarn import __version__, hook_kinds
from forewarn.bundle import CONTENTS, LEFT_OUT, MAIN, archive, build
from forewarn.cli.main import main
from forewarn.errors import InputError
from tools.sites.commands import run_program
from tools.sites.pythons import RUNNING, SUPPORTED, python
from tools.suite import architecture
from tools.suite.architecture import STANDARD_LIBRARY_ONLY, is_standard_library_only, module_names

MOST_BYTES = 650_000  # so that no library gets in by mistake


@pytest.fixture(scope="module")
def source(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the package, which does not change while it is compared; its files have other modes."""
    copy = tmp_path_factory.mktemp("bundle") / "forewarn"
    ignore = shutil.ignore_patterns("__pycache__")
    return Path(shutil.copytree(package, copy, ignore=ignore, copy_function=shutil.copyfile))


@pytest.fixture(scope="module")
def pyz(source: Path) -> Path:
    return build(source, source.parent / "forewarn.pyz").path


# What is in it


def test_bundle_contains_exactly_the_standard_library_layers(source: Path, pyz: Path) -> None:
    modules = module_names(source)
    wanted = [path for name, path in modules.items() if is_standard_library_only(name) and not name.startswith("adhoc")]
    with zipfile.ZipFile(pyz) as bundle:
        names = bundle.namelist()
        assert bundle.testzip() is None
        changed = [
            path
            for path in wanted
            if bundle.read(f"forewarn/{path.relative_to(source).as_posix()}") != path.read_bytes()
        ]
        assert changed == [source / "__init__.py"]  # which has the version
        assert bundle.read("__main__.py").decode() == MAIN
    assert len(names) == len(wanted) + 1
    assert not [name for name in names if "compiler" in name or "emulator" in name or "bundle" in name]


def test_the_checker_of_imports_has_the_same_list() -> None:
    assert CONTENTS == STANDARD_LIBRARY_ONLY
    assert LEFT_OUT == architecture.LEFT_OUT


def test_bundle_contains_the_requested_hook_kinds(source: Path, tmp_path: Path) -> None:
    for kinds, names in ((["haproxy"], ["haproxy"]), ([], []), (None, list(hook_kinds.NAMES))):
        target = build(source, tmp_path / "forewarn.pyz", kinds).path
        listed = run_program(sys.executable, "-I", "-S", target, "hook", "list", "--json")
        assert [kind["name"] for kind in json.loads(listed.stdout)["kinds"]] == names, listed.stderr


def test_bundled_packages_contain_no_data_files(package: Path) -> None:
    """Only .py files are taken: a file of data would be missing on the VM."""
    left_out = [package.joinpath(*name.split(".")) for name in LEFT_OUT]
    packages = [path for name in CONTENTS if (path := package / name).is_dir()]
    found = [path for one in packages for path in one.rglob("*") if path.is_file()]
    files = [path for path in found if not any(one in path.parents for one in left_out)]
    assert len(packages) == 6
    assert [path for path in files if path.suffix not in (".py", ".pyc")] == []


def test_it_is_small(pyz: Path) -> None:
    assert 50_000 < pyz.stat().st_size < MOST_BYTES


def test_bundle_has_mode_0755_whatever_the_umask(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "forewarn.pyz"
    target.write_text("an older one")
    target.chmod(0o600)
    before = os.umask(0o077)
    try:
        build(source, target)
    finally:
        os.umask(before)
    assert target.stat().st_mode & 0o7777 == 0o755
    assert target.read_bytes().startswith(b"#!/usr/bin/env python3\nPK\3\4")


def test_size_and_digest_are_the_file_s(source: Path, tmp_path: Path) -> None:
    bundle = build(source, tmp_path / "forewarn.pyz")
    content = bundle.path.read_bytes()
    assert (bundle.size, bundle.sha256) == (len(content), hashlib.sha256(content).hexdigest())


def test_two_builds_of_one_version_call_themselves_differently(source: Path, tmp_path: Path) -> None:
    """But not because of the kinds of hooks that a VM needs."""
    copy = Path(shutil.copytree(source, tmp_path / "forewarn"))
    one, same = (build(copy, tmp_path / "one.pyz", kinds) for kinds in (None, ["haproxy"]))
    assert re.fullmatch(rf"{re.escape(__version__)}\+[0-9a-f]{{12}}", one.version)
    assert same.version == one.version
    seen = {one.version}
    for changed in ("events.py", "hook_kinds/slurm.py", "runner/loop.py", "cli/main.py"):
        with (copy / changed).open("a") as file:
            file.write("# changed\n")
        seen.add(build(copy, tmp_path / "one.pyz", ["haproxy"]).version)
    assert len(seen) == 5
    found = run_program(sys.executable, "-I", "-S", tmp_path / "one.pyz", "--version").stdout
    assert found.removeprefix("forewarn ").strip() in seen


# The same from the same sources


class Circumstances(NamedTuple):
    """What can differ between two builds of the same sources."""

    version: str
    umask: int = 0o022
    zone: str = "UTC"
    locale: str = "C.UTF-8"
    hash_seed: str = "0"
    mtime: int = 0


@pytest.mark.versions
@pytest.mark.parametrize(
    "circumstances",
    [
        *(Circumstances(version) for version in SUPPORTED),
        Circumstances(RUNNING, umask=0o077),
        Circumstances(RUNNING, zone="Pacific/Chatham", mtime=2_000_000_000),
        Circumstances(RUNNING, locale="C", hash_seed="4711"),
        Circumstances(RUNNING, mtime=86_400),  # 1970, before any time that a ZIP file can hold
    ],
    ids=lambda circumstances: "-".join(map(str, circumstances)),
)
def test_circumstances_change_nothing(source: Path, pyz: Path, tmp_path: Path, circumstances: Circumstances) -> None:
    """Built from a copy, under the name that Ansible gives the package. Each Python may have a zlib of its own."""
    copy = tmp_path / "ansible_collections/forewarn/azure/plugins/module_utils/forewarn"
    shutil.copytree(source, copy)
    for path in copy.rglob("*"):
        os.utime(path, (circumstances.mtime,) * 2)
    program = (
        "import os, pathlib, sys\n"
        f"os.umask({circumstances.umask})\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.bundle import build\n"
        "build(pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]))\n"
    )
    target = tmp_path / "another-name"
    subprocess.run(
        [python(circumstances.version), "-S", "-B", "-c", program, str(tmp_path), str(copy), str(target)],
        env={"TZ": circumstances.zone, "LC_ALL": circumstances.locale, "PYTHONHASHSEED": circumstances.hash_seed},
        check=True,
        timeout=60,
    )
    assert entries(target) == entries(pyz)
    if circumstances.version == RUNNING:
        assert target.read_bytes() == pyz.read_bytes()


def entries(path: Path) -> list[tuple[object, ...]]:
    """Return the entries of an archive in order, with their attributes."""
    with zipfile.ZipFile(path) as bundle:
        return [
            (entry.filename, entry.date_time, entry.external_attr, entry.create_system, bundle.read(entry))
            for entry in bundle.infolist()
        ]


def test_the_order_of_files_changes_nothing() -> None:
    files = {"b.py": b"1", "a.py": b"2", "__main__.py": b"3"}
    assert archive(files) == archive(dict(reversed(files.items())))


def test_a_change_of_the_sources_changes_it() -> None:
    assert archive({"a.py": b"1"}) != archive({"a.py": b"2"})


def test_every_entry_has_the_same_time_and_mode(pyz: Path) -> None:
    with zipfile.ZipFile(pyz) as bundle:
        entries = bundle.infolist()
    assert {entry.date_time for entry in entries} == {(1980, 1, 1, 0, 0, 0)}
    assert {entry.external_attr >> 16 for entry in entries} == {0o100644}
    assert [entry.filename for entry in entries] == sorted(entry.filename for entry in entries)


# Pythons that it refuses


@pytest.mark.versions
@pytest.mark.parametrize("version", [(2, 7, 18), (3, 4, 10), (3, 7, 16)])
def test_an_old_python_gets_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], version: tuple[int, ...]
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "version_info", version)
        patch.setattr(sys, "executable", "/usr/bin/python")
        with pytest.raises(SystemExit) as ended:
            exec(compile(MAIN, "__main__.py", "exec"), {"__name__": "__main__"})
    assert ended.value.code == 2
    assert capsys.readouterr().err == (
        f"error: forewarn needs Python 3.8 or newer, and /usr/bin/python is Python {version[0]}.{version[1]}.\n"
    )


@pytest.mark.versions
@pytest.mark.parametrize("version", SUPPORTED)
def test_a_newer_python_gets_on(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setattr(sys, "version_info", (*map(int, version.split(".")), 0))
    names = {"__name__": "not the program"}
    exec(compile(MAIN, "__main__.py", "exec"), names)
    assert names["main"] is main  # type: ignore[comparison-overlap]  # what the program has put there


def test_every_python_can_read_so_far() -> None:
    """No syntax that Python 2.7 lacks: a Python that cannot parse the file cannot say what is wrong either."""
    new = (
        ast.JoinedStr,
        ast.AnnAssign,
        ast.NamedExpr,
        ast.Starred,
        ast.AsyncFunctionDef,
        ast.FunctionDef,
        ast.Nonlocal,
    )
    nodes = list(ast.walk(ast.parse(MAIN)))
    assert MAIN.isascii()
    assert not [node for node in nodes if isinstance(node, new)]
    assert not [node for node in nodes if isinstance(node, ast.Raise) and node.cause]


@pytest.mark.versions
@pytest.mark.parametrize("version", ["2.7", "3.6", "3.7"])
def test_a_real_old_python_gets_a_sentence(pyz: Path, version: str) -> None:
    done = run_program(python(version), pyz, "run", "--once")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert f"is Python {version}." in done.stderr


# The command


def test_the_command_prints_size_and_digest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "runner.pyz"
    assert main(["bundle", "--output", str(target)]) == 0
    content = target.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    assert capsys.readouterr().out == f"{target}: {len(content)} bytes, sha256:{digest}\n"


def test_the_command_writes_here_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["bundle"]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["forewarn.pyz"]


@pytest.mark.parametrize("name", ["__init__.py", "cli/__init__.py", "errors.py", "runner/__init__.py"])
def test_a_package_that_is_not_whole_is_refused(source: Path, tmp_path: Path, name: str) -> None:
    copy = tmp_path / "forewarn"
    shutil.copytree(source, copy)
    (copy / name).unlink()
    with pytest.raises(InputError, match=r"No such file.*install it again"):
        build(copy, tmp_path / "forewarn.pyz")
    assert not (tmp_path / "forewarn.pyz").exists()


@pytest.mark.parametrize("target", ["missing/forewarn.pyz", "directory"])
def test_a_target_that_cannot_be_written_is_reported(source: Path, tmp_path: Path, target: str) -> None:
    (tmp_path / "directory" / "full").mkdir(parents=True)
    with pytest.raises(InputError, match=f"{target} cannot be written"):
        build(source, tmp_path / target)
    assert [path.name for path in tmp_path.iterdir()] == ["directory"], "nothing half written is left"


def test_help_names_the_commands_that_are_here(pyz: Path) -> None:
    """The other commands say that they are elsewhere."""

    def forewarn(*arguments: str) -> subprocess.CompletedProcess[str]:
        return run_program(sys.executable, "-I", "-S", pyz, *arguments)

    shown = forewarn("--help").stdout
    assert "approve events by id" in shown
    assert not [name for name in ("emulate", "fleet", "bundle") if f" {name} " in shown]
    of_policies = forewarn("policy", "--help").stdout
    assert "let signed policies follow that are older" in of_policies
    assert not [name for name in ("verify", "replay", "schema") if f" {name} " in of_policies]
    for arguments in (["emulate"], ["policy", "check", "web.yml"], ["bundle"]):
        done = forewarn(*arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert "is not part of this installation" in done.stderr
        assert "pip install ~/.ansible/collections/ansible_collections/forewarn/azure" in done.stderr
