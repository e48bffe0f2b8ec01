# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A change of a library is a change of the policies that import it, also of those of a revision in git."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from forewarn.cli.main import main

LIBRARY = """\
name: shared
library: true
params:
  - {name: limit, type: int, default: 9}
variables:
  - {name: brief, expression: "event.DurationInSeconds >= 0 && event.DurationInSeconds < 9"}
invariants:
  - {name: no evictions, expression: "!(decision == approve && event.EventType == 'Preempt')"}
"""
POLICY = """\
name: p
imports: [{path: ../shared/lib.yml}]
rule:
  match:
    - {id: brief, condition: event.EventType == "Freeze" && variables.brief, output: approve}
"""


def git(directory: Path, *command: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *command], cwd=directory, check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a repository with a policy, whose library differs from the one of its only commit."""
    for name, text in (("policies/p.yml", POLICY), ("shared/lib.yml", LIBRARY)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    git(tmp_path, "init", "-q", ".")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "one")
    changed = LIBRARY.replace("< 9", "< 15").replace("default: 9", "default: 10").replace("Preempt", "Terminate")
    (tmp_path / "shared" / "lib.yml").write_text(changed)
    return tmp_path


def difference(capsys: pytest.CaptureFixture[str], *arguments: str, form: str = "json") -> Any:
    assert main(["policy", "diff", *arguments, "--format", form]) == 1
    return json.loads(capsys.readouterr().out)


def test_revision_imports_its_own_libraries(
    checkout: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(checkout)
    for old, new in (
        ("git:HEAD:policies", "policies"),
        ("git:HEAD:policies/p.yml", "policies/p.yml"),
        ("git:HEAD:.", "."),
    ):
        found = difference(capsys, old, new)
        assert "DurationInSeconds in 9..14" in json.dumps(found["changes"])
        source = "shared/lib.yml" if new == "." else "../shared/lib.yml"
        places = [(one["kind"], one["place"]["path"], one["place"]["line"]) for one in found["declarations"]]
        assert places == [("invariant-changed", source, 8), ("parameter-default", source, None)]


def test_a_working_directory_below_the_root(
    checkout: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(checkout / "policies")
    assert difference(capsys, "git:HEAD:p.yml", "p.yml") == difference(capsys, "git:HEAD:.", ".")
    git(checkout, "rm", "-q", "--force", "shared/lib.yml")
    git(checkout, "commit", "-q", "-m", "two")
    assert main(["policy", "diff", "git:HEAD:.", "."]) == 2
    said = capsys.readouterr().err
    assert "git:HEAD:p.yml:2:18: error import-missing there is no file git:HEAD:../shared/lib.yml" in said


def test_links_and_chains_of_a_revision(
    checkout: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what is needed is unpacked: each library shows what more that is."""
    (checkout / "elsewhere").mkdir()
    (checkout / "shared" / "lib.yml").rename(checkout / "elsewhere" / "real.yml")
    (checkout / "shared" / "lib.yml").symlink_to("../elsewhere/real.yml")
    (checkout / "shared" / "first.yml").write_text("name: first\nlibrary: true\nimports: [{path: lib.yml}]\n")
    (checkout / "policies" / "p.yml").write_text(POLICY.replace("lib.yml", "first.yml"))
    git(checkout, "add", ".")
    git(checkout, "commit", "-q", "-m", "two")
    monkeypatch.chdir(checkout)
    assert main(["policy", "diff", "git:HEAD:policies", "policies", "--fail-on", "any"]) == 0
    assert "Preempt" not in capsys.readouterr().out


@pytest.mark.parametrize("target", ["../../outside.yml", "/etc/passwd"])
def test_link_out_of_the_repository_is_refused(
    target: str, checkout: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (checkout / "policies" / "q.yml").symlink_to(target)
    git(checkout, "add", ".")
    git(checkout, "commit", "-q", "-m", "two")
    (checkout / "policies" / "q.yml").unlink()
    monkeypatch.chdir(checkout)
    assert main(["policy", "diff", "git:HEAD:policies", "policies"]) == 2
    assert "git:HEAD:policies: policies/q.yml leads out of the repository, to " in capsys.readouterr().err


def test_missing_path_is_an_error_but_unicode_works(
    checkout: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (checkout / "policies" / "ä b\n.yml").write_text("name: other\nrule: {match: [{id: all, output: hold}]}\n")
    git(checkout, "add", ".")
    git(checkout, "commit", "-q", "-m", "two")
    monkeypatch.chdir(checkout)
    assert main(["policy", "diff", "git:HEAD:polices", "policies"]) == 2
    assert "git:HEAD:polices: HEAD has no polices" in capsys.readouterr().err
    git(checkout, "checkout", "-q", "--", ".")
    assert main(["policy", "diff", "git:HEAD:policies", "policies", "--fail-on", "any"]) == 0


def stored(directory: Path, name: str) -> Path:
    """Return the file in which git keeps an object, such as ``HEAD:policies``."""
    shown = subprocess.run(["git", "rev-parse", name], cwd=directory, check=True, capture_output=True, text=True)
    return directory / ".git" / "objects" / shown.stdout[:2] / shown.stdout[2:].strip()


@pytest.mark.parametrize("name", ["policies/p.yml", "shared/lib.yml", "policies", "shared"])
@pytest.mark.parametrize("damage", ["removed", "emptied", "overwritten"])
def test_damaged_clone_is_reported_with_a_remedy(
    damage: str, name: str, checkout: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = stored(checkout, f"HEAD:{name}")
    kept.unlink()
    if damage != "removed":
        kept.write_bytes(b"" if damage == "emptied" else b"not what git wrote")
    monkeypatch.chdir(checkout)
    assert main(["policy", "diff", "git:HEAD:policies", "policies"]) == 2
    said = capsys.readouterr().err
    assert "git:HEAD:policies: " in said
    assert f"{kept.parent.name}{kept.name}" in said
    assert "'git fsck' says what is damaged" in said
    if damage == "removed" and name.endswith(".yml"):
        assert f"this clone lacks the content of {name}, which is object {kept.parent.name}{kept.name}" in said


def test_partial_clone_without_origin_reports_a_remedy(
    checkout: Path, tmp_path_factory: pytest.TempPathFactory, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = tmp_path_factory.mktemp("clones") / "partial"
    git(checkout, "config", "uploadpack.allowFilter", "true")
    git(checkout, "clone", "-q", "--no-checkout", "--filter=blob:none", f"file://{checkout}", str(clone))
    monkeypatch.chdir(clone)
    assert main(["policy", "diff", "git:HEAD:policies", f"{checkout}/policies", "--fail-on", "none"]) == 0
    git(checkout, "commit", "-q", "-a", "-m", "two")
    git(clone, "fetch", "-q")
    (checkout / ".git").rename(checkout / "gone")
    capsys.readouterr()
    assert main(["policy", "diff", "git:origin/HEAD:policies", f"{checkout}/policies"]) == 2
    said = capsys.readouterr().err
    assert "git:origin/HEAD:policies: git: " in said
    assert "in a partial clone '--refetch' the rest" in said


def test_import_out_of_the_repository_is_refused(
    checkout: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = checkout / "inside"
    inside.mkdir()
    git(inside, "init", "-q", ".")
    (inside / "p.yml").write_text(POLICY)
    git(inside, "add", ".")
    git(inside, "commit", "-q", "-m", "one")
    monkeypatch.chdir(inside)
    assert main(["policy", "check", "p.yml"]) == 0
    capsys.readouterr()
    assert main(["policy", "diff", "git:HEAD:p.yml", "p.yml"]) == 2
    assert "an import leads out of the repository, to ../shared/lib.yml" in capsys.readouterr().err
    monkeypatch.setattr("tempfile.tempdir", str(checkout / "inside"))
    (checkout / "inside" / "shared").mkdir()  # beside what is unpacked there happens to be such a file
    (checkout / "inside" / "shared" / "lib.yml").write_text(LIBRARY)
    assert main(["policy", "diff", "git:HEAD:p.yml", "p.yml"]) == 2
    assert "leads out of the repository" in capsys.readouterr().err


def test_sarif_has_the_place_in_the_library(
    checkout: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(checkout)
    for new in ("policies", "policies/p.yml"):
        sarif = difference(capsys, "git:HEAD:policies", new, form="sarif")
        uris = {
            result["ruleId"]: result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
            for result in sarif["runs"][0]["results"]
        }
        assert uris["invariant-changed"] == uris["parameter-default"] == "shared/lib.yml"
        assert "policies/p.yml" in uris.values()


def test_sarif_says_where_what_is_not_here(
    checkout: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=checkout, check=True, capture_output=True, text=True)
    commit = head.stdout.strip()
    entry = f"{{git: '{checkout.as_uri()}', commit: {commit}, path: shared/lib.yml}}"
    new = checkout / "new.yml"
    new.write_text(POLICY.replace("{path: ../shared/lib.yml}", entry))
    (checkout / "old.yml").write_text(POLICY.replace("../shared", "shared"))
    sarif = difference(capsys, str(checkout / "old.yml"), str(new), "--fail-on", "any", form="sarif")
    (changed,) = [one for one in sarif["runs"][0]["results"] if one["ruleId"] == "invariant-changed"]
    assert "locations" not in changed
    assert changed["message"]["text"].endswith(f" (in {checkout.as_uri()}@{commit[:12]}:shared/lib.yml:8)")
