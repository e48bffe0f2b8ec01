# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Policies are compiled once for all hosts of a run, and for later runs; what others could have written is not used."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from forewarn.compiler import policies as policyfile
from forewarn.compiler.policies import load_policies
from forewarn.fleet.cache import MOST, Cache
from forewarn.fleet.policies import PoliciesRefusedError, compile_policies
from forewarn.policy.artifact import Artifact

POLICY = "name: calm\ndescription: Holds.\nrule: {match: [{output: hold}]}\n"


def cache_of(directory: Path, run: str = "run") -> Cache:
    return Cache(directory / "home", directory / run)


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a file to which each compilation adds a character."""
    log = tmp_path / "log"
    log.touch()

    def counted(paths: Sequence[Path], api_version: str) -> Artifact:
        with log.open("a") as file:
            file.write("x")
        return load_policies(paths, api_version)

    monkeypatch.setattr(policyfile, "load_policies", counted)
    for name in ("run", "run 2"):
        (tmp_path / name).mkdir()
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "calm.yml").write_text(POLICY)
    return log


def test_policies_are_recompiled_only_after_a_change(compiled: Path, tmp_path: Path) -> None:
    policies, cache = tmp_path / "policies", cache_of(tmp_path)
    first = compile_policies([policies], "2020-07-01", cache)
    assert compile_policies([policies], "2020-07-01", cache) == first
    assert compile_policies([policies], "2020-07-01", cache_of(tmp_path, "run 2")) == first
    assert compiled.read_text() == "x"
    assert compile_policies([policies], "2019-08-01", cache).api_version == "2019-08-01"
    assert compiled.read_text() == "xx"
    (policies / "calm.yml").write_text(POLICY.replace("hold", "deny").replace("deny", "hold") + "#\n")
    compile_policies([policies], "2020-07-01", cache)
    (policies / "other.yml").write_text(POLICY.replace("calm", "other"))
    compile_policies([policies], "2020-07-01", cache)
    assert compiled.read_text() == "xxxx"
    kept = tmp_path / "home" / "policies"
    assert len(list(kept.iterdir())) == 4
    assert {path.suffix for path in kept.iterdir()} == {""}, "a half-written file was left"
    for path in kept.iterdir():
        path.write_text(path.read_text()[:-9])
    assert compile_policies([policies], "2019-08-01", cache).api_version == "2019-08-01"
    assert compiled.read_text() == "xxxxx", "a damaged file counts as none"


def test_hosts_of_a_run_compile_once(compiled: Path, tmp_path: Path) -> None:
    """Each host has a process of its own, and several start at once."""
    context = multiprocessing.get_context("fork")

    def ask() -> list[int | None]:
        def host() -> None:
            try:
                compile_policies([tmp_path / "policies"], "2020-07-01", cache_of(tmp_path))
            except PoliciesRefusedError as error:
                sys.exit(3 if len(error.findings) == 2 and str(error).startswith("2 mistakes in the policies:") else 4)

        processes = [context.Process(target=host) for _ in range(6)]
        for process in processes:
            process.start()
        for process in processes:
            process.join(60)
        return [process.exitcode for process in processes]

    assert ask() == [0] * 6
    assert compiled.read_text() == "x"
    (tmp_path / "policies" / "calm.yml").write_text(POLICY.replace("hold", "wait").replace("name: calm", "name: 7"))
    assert ask() == [3] * 6
    assert compiled.read_text() == "xx"


def test_directory_writable_by_others_is_no_cache(compiled: Path, tmp_path: Path) -> None:
    """What lies there decides approvals."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home").chmod(0o777)
    for _ in range(2):
        compile_policies([tmp_path / "policies"], "2020-07-01", cache_of(tmp_path))
    assert compiled.read_text() == "x"
    assert list((tmp_path / "home").iterdir()) == []


def test_cache_keeps_the_last_used_results_per_kind(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "home", tmp_path)
    made = []

    def result(number: int) -> bytes:
        def make() -> bytes:
            made.append(number)
            return str(number).encode()

        return cache.once("numbers", number, make, bytes)

    assert [result(number) for number in range(MOST)] == [str(number).encode() for number in range(MOST)]
    assert result(0) == b"0"
    result(MOST)
    assert cache.once("others", 0, lambda: b"other", bytes) == b"other"
    assert len(list((tmp_path / "home" / "numbers").iterdir())) == MOST
    assert (result(0), made) == (b"0", list(range(MOST + 1)))


LIBRARY = "name: shared\nlibrary: true\nvariables: [{name: brief, expression: event.DurationInSeconds < 9}]\n"
IMPORTING = (
    "name: calm\nimports: [{path: ../shared/lib.yml}]\nrule: {match: [{condition: variables.brief, output: approve}]}\n"
)


def test_a_changed_library_is_a_changed_policy(compiled: Path, tmp_path: Path) -> None:
    """A key of the policies alone would roll out what the library said before."""
    policies, library = tmp_path / "policies", tmp_path / "shared" / "lib.yml"
    library.parent.mkdir()
    library.write_text(LIBRARY)
    (policies / "calm.yml").write_text(IMPORTING)

    def variable(run: str = "run") -> str:
        found = compile_policies([policies], "2020-07-01", cache_of(tmp_path, run)).data["policies"][0]
        return str(found["rule"]["variables"][0]["expr"]["source"])

    assert [variable(), variable(), variable("run 2")] == ["event.DurationInSeconds < 9"] * 3
    assert compiled.read_text() == "x"
    library.write_text(LIBRARY.replace("< 9", "< 15"))
    assert variable() == "event.DurationInSeconds < 15"
    (library.parent / "deep.yml").write_text(LIBRARY.replace("brief", "deep").replace("shared", "deep"))
    library.write_text(LIBRARY.replace("true", "true\nimports: [{path: deep.yml}]").replace("< 9", "< 3"))
    assert variable() == "event.DurationInSeconds < 9", "that of the library, which is first"
    (library.parent / "deep.yml").write_text(LIBRARY.replace("brief", "deep").replace("< 9", "< 4"))
    assert variable() == "event.DurationInSeconds < 4"
    library.unlink()
    for _ in range(2):
        with pytest.raises(PoliciesRefusedError, match="there is no file"):
            variable()
    library.write_text(LIBRARY)
    assert variable() == "event.DurationInSeconds < 9", "the refusal was of other files"
    assert len(compiled.read_text()) == 5


def test_equally_named_collection_elsewhere_is_another_library(
    compiled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = "{collection: my_company.policies, path: lib.yml}"
    (tmp_path / "policies" / "calm.yml").write_text(IMPORTING.replace("{path: ../shared/lib.yml}", entry))
    for number in (1, 2):
        home = tmp_path / f"c{number}" / "ansible_collections" / "my_company" / "policies"
        home.mkdir(parents=True)
        (home / "lib.yml").write_text(LIBRARY.replace("< 9", f"< {number}"))
    for number in (1, 2, 1):
        monkeypatch.setenv("ANSIBLE_COLLECTIONS_PATH", str(tmp_path / f"c{number}"))
        found = compile_policies([tmp_path / "policies"], "2020-07-01", cache_of(tmp_path)).data["policies"][0]
        assert found["rule"]["variables"][0]["expr"]["source"] == f"event.DurationInSeconds < {number}"
    assert compiled.read_text() == "xx"


@pytest.mark.parametrize(
    ("changing", "old", "new"), [("policies/calm.yml", "calm", "other"), ("lib.yml", "< 9", "< 15")]
)
def test_file_changed_during_compilation_is_not_cached(
    compiled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changing: str, old: str, new: str
) -> None:
    (tmp_path / "lib.yml").write_text(LIBRARY)
    (tmp_path / "policies" / "calm.yml").write_text(IMPORTING.replace("shared/", ""))

    def changed(paths: Sequence[Path], api_version: str) -> Artifact:
        (tmp_path / changing).write_text((tmp_path / changing).read_text().replace(old, new))
        return load_policies(paths, api_version)

    monkeypatch.setattr(policyfile, "load_policies", changed)
    found = compile_policies([tmp_path / "policies"], "2020-07-01", cache_of(tmp_path)).data["policies"][0]
    assert new in (
        found["name"],
        found["rule"]["variables"][0]["expr"]["source"].removeprefix("event.DurationInSeconds "),
    )
    assert not (tmp_path / "home" / "policies").exists()
