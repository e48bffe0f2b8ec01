# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which files a path stands for, and what an artifact keeps of where they lie."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from forewarn.compiler.policies import compile_policies
from forewarn.errors import InputError
from tools.fixtures.policy_files import HEAD

HOLD = "    - output: hold\n"


def test_directories_leave_tests_and_hidden_files_out(tmp_path: Path) -> None:
    for name in ("a.yml", "a.test.yml", "tests.yaml", "tests/b.yml", ".x/c.yml", ".d.yml", "e.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(HEAD + HOLD)
    assert compile_policies([tmp_path, tmp_path / "a.yml"]).files == (str(tmp_path / "a.yml"),)


def test_what_is_not_there_is_bad_usage(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.yml"):
        with pytest.raises(InputError, match="no "):
            compile_policies([path])
    test = tmp_path / "a.test.yml"
    test.write_text("x: 1\n")
    with pytest.raises(InputError, match="a file of tests"):
        compile_policies([test])


def test_unreadable_directory_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy that is not found would not hold. (Tests may run as root, who may look everywhere.)"""
    (tmp_path / "a.yml").write_text(HEAD + HOLD)
    (tmp_path / "shut").mkdir()
    listed = os.scandir

    def refused(path: str) -> Any:
        if str(path).endswith("shut"):
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(os, "scandir", refused)
    with pytest.raises(InputError, match="shut: Permission denied"):
        compile_policies([tmp_path])


@pytest.mark.parametrize("target", ["nowhere.yml", "b.yml"])
def test_a_link_that_leads_nowhere_is_an_error(tmp_path: Path, target: str) -> None:
    (tmp_path / "a.yml").write_text(HEAD + HOLD)
    (tmp_path / "b.yml").symlink_to(target)
    for path in (tmp_path, tmp_path / "b.yml"):
        with pytest.raises(InputError, match=r"b\.yml: (no such file|Too many levels)"):
            compile_policies([path])


def test_link_to_a_parent_directory_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "a.yml").write_text(HEAD + HOLD)
    (tmp_path / "again").symlink_to(tmp_path)
    assert compile_policies([tmp_path]).files == (str(tmp_path / "a.yml"),)


def test_files_of_one_name_keep_their_directories(tmp_path: Path) -> None:
    for name in ("x", "y"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "p.yml").write_text(f"name: {name}" + HEAD[7:] + HOLD)
    artifact = compile_policies([tmp_path / "x" / "p.yml", tmp_path / "y" / "p.yml"]).artifact
    assert artifact is not None
    assert [source["path"][-7:] for source in artifact["sources"]] == ["x/p.yml", "y/p.yml"]


def test_artifact_does_not_depend_on_the_location(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        (tmp_path / name / "sub").mkdir(parents=True)
        (tmp_path / name / "b.yml").write_text(HEAD + HOLD)
        (tmp_path / name / "sub" / "a.yaml").write_text("name: q" + HEAD[7:] + HOLD)
    monkeypatch.chdir(tmp_path / "one")
    first = compile_policies([Path()]).artifact
    second = compile_policies([tmp_path / "two"]).artifact
    assert first is not None
    assert json.dumps(first) == json.dumps(second)
    assert [source["path"] for source in first["sources"]] == ["b.yml", "sub/a.yaml"]
