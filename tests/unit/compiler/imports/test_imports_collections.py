# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Libraries of installed Ansible collections, found where ansible-core finds them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from forewarn.compiler.imports.collection_files import find_collection, version_of
from forewarn.compiler.policies import Compilation, compile_policies

LIBRARY = "name: lib\nlibrary: true\nimports: [{path: ../other.yml}]\nvariables: [{name: brief, expression: leader}]\n"
OTHER = "name: other\nlibrary: true\nvariables: [{name: other, expression: affects_me}]\n"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the directory of a collection with libraries."""
    monkeypatch.setenv("ANSIBLE_COLLECTIONS_PATH", f"{tmp_path / 'nowhere'}:{tmp_path / 'here'}")
    home = tmp_path / "here" / "ansible_collections" / "my_company" / "policies"
    (home / "policies").mkdir(parents=True)
    (home / "policies" / "lib.yml").write_text(LIBRARY)
    (home / "other.yml").write_text(OTHER)
    return home


def compiled(directory: Path, path: str = "policies/lib.yml", name: str = "my_company.policies") -> Compilation:
    rule = "rule: {match: [{condition: variables.brief, output: approve}]}\n"
    (directory / "p.yml").write_text(f"name: p\nimports:\n  - {{collection: {name}, path: {path}}}\n{rule}")
    return compile_policies([directory / "p.yml"])


def test_library_of_a_collection_is_found_and_named(tmp_path: Path, installed: Path) -> None:
    (installed / "MANIFEST.json").write_text(json.dumps({"collection_info": {"version": "1.2.0"}}))
    found = compiled(tmp_path)
    assert found.findings == []
    assert found.artifact is not None
    assert [{key: one[key] for key in one if key != "sha256"} for one in found.artifact["sources"]] == [
        {"path": "p.yml"},
        {"path": "other.yml", "collection": "my_company.policies", "version": "1.2.0"},
        {"path": "policies/lib.yml", "collection": "my_company.policies", "version": "1.2.0"},
    ]
    files = [one["expr"]["file"] for one in found.artifact["policies"][0]["rule"]["variables"]]
    assert files == ["my_company.policies:other.yml", "my_company.policies:policies/lib.yml"]
    (installed / "policies" / "lib.yml").write_text(LIBRARY + "x: 1\n")
    assert [one.path for one in compiled(tmp_path).findings] == [str(installed / "policies" / "lib.yml")]


@pytest.mark.parametrize(
    ("files", "version"),
    [
        ({}, None),
        ({"galaxy.yml": "version: 2.0.1\n"}, "2.0.1"),
        ({"galaxy.yml": "version: 2.0.1\n", "MANIFEST.json": '{"collection_info": {"version": "3.0.0"}}'}, "3.0.0"),
        ({"galaxy.yml": "version: 2.0.1\n", "MANIFEST.json": "{"}, "2.0.1"),
        ({"galaxy.yml": "version: 2.0.1\n", "MANIFEST.json": "[1]"}, "2.0.1"),
        ({"galaxy.yml": "version: 2.0.1\n", "MANIFEST.json": "[" * 100_000}, "2.0.1"),
        ({"MANIFEST.json": '{"collection_info": {"version": 3}}'}, None),
        ({"galaxy.yml": "- version\n"}, None),
        ({"galaxy.yml": "version: null\n"}, None),
    ],
)
def test_version_comes_from_manifest_or_galaxy_yml(tmp_path: Path, files: dict[str, str], version: str | None) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert version_of(tmp_path) == version


def test_where_collections_are(tmp_path: Path, installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_collection("my_company.policies") == installed
    home = installed.parents[2]
    for variable, value in (
        ("ANSIBLE_COLLECTIONS_PATH", str(home / "ansible_collections")),
        ("ANSIBLE_COLLECTIONS_PATHS", str(home)),
    ):
        monkeypatch.delenv("ANSIBLE_COLLECTIONS_PATH")
        monkeypatch.setenv(variable, value)
        assert find_collection("my_company.policies") == installed
        monkeypatch.setenv("ANSIBLE_COLLECTIONS_PATH", "")
    monkeypatch.delenv("ANSIBLE_COLLECTIONS_PATHS")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ansible").mkdir()
    home.rename(tmp_path / ".ansible" / "collections")
    assert find_collection("my_company.policies").is_relative_to(tmp_path / ".ansible")
    (tmp_path / ".ansible" / "collections").rename(tmp_path / "site")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "site")])
    assert find_collection("my_company.policies").is_relative_to(tmp_path / "site")


def test_what_is_not_installed_is_said(tmp_path: Path, installed: Path) -> None:
    (finding,) = compiled(tmp_path, name="my_company.others").findings
    assert (finding.code, finding.line) == ("import-missing", 3)
    assert f"is not installed in {tmp_path}/nowhere:{tmp_path}/here" in finding.message
    assert "ansible-galaxy collection install my_company.others" in finding.suggestion
    (finding,) = compiled(tmp_path, "nothing.yml").findings
    assert (finding.code, finding.message) == ("import-missing", f"there is no file {installed / 'nothing.yml'}")


def test_nothing_leads_out_of_a_collection(tmp_path: Path, installed: Path) -> None:
    (tmp_path / "lib.yml").write_text(OTHER)
    (installed / "link.yml").symlink_to(tmp_path / "lib.yml")
    (installed / "policies" / "lib.yml").write_text(LIBRARY.replace("../other", "../../other"))
    for path in ("../x.yml", "/x.yml", "link.yml", "policies/lib.yml"):
        (finding,) = compiled(tmp_path, path).findings
        assert finding.code == "import-path", path
