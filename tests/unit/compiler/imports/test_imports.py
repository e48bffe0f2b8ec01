# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Policies import parameters, variables and invariants from libraries."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from forewarn.analysis.verify.verify import verify
from forewarn.compiler.imports import collection_files, git_files, libraries
from forewarn.compiler.policies import Compilation, compile_policies, load_policies
from forewarn.compiler.testing.policytest import run_tests
from forewarn.compiler.yaml.schema import load as load_schema
from forewarn.errors import InputError
from forewarn.policy.engine import PolicySet
from tools.fixtures.policy_files import SHIPPED
from tools.fixtures.policy_libraries import BRIEF, LIBRARY, PLAIN, POLICY, compiled, importing, library, variable


def test_what_is_imported_is_the_policys_own(tmp_path: Path) -> None:
    found = compiled(tmp_path, p=POLICY, lib=LIBRARY)
    assert found.findings == []
    assert found.artifact is not None
    (policy,) = found.artifact["policies"]
    assert [(one["name"], one["expr"]["file"], one["expr"]["line"]) for one in policy["rule"]["variables"]] == [
        ("brief", "lib.yml", 6)
    ]
    assert policy["params"] == [{"name": "limit", "type": "int", "default": 9, "file": "lib.yml"}]
    assert [(one["name"], one["expression"]["file"]) for one in policy["invariants"]] == [("no evictions", "lib.yml")]
    sha256 = hashlib.sha256(LIBRARY.encode()).hexdigest()
    assert found.artifact["sources"][1] == {"path": "lib.yml", "sha256": sha256}
    assert (found.files, list(found.imported)) == ((str(tmp_path / "p.yml"),), ["lib.yml"])
    policies = PolicySet(load_policies([tmp_path / "p.yml"]), {"limit": 3})
    assert policies.time_dependent is False


def test_artifact_without_imports_has_no_file_keys() -> None:
    found = compile_policies(SHIPPED)
    assert found.artifact is not None
    text = json.dumps(found.artifact["policies"])
    assert '"file":' not in re.sub(r'"file": "/', "", text), "options of hooks are paths"
    assert [source.keys() for source in found.artifact["sources"]] == [{"path", "sha256"}] * len(SHIPPED)


def test_a_library_that_nothing_imports_changes_no_byte(tmp_path: Path) -> None:
    for path in SHIPPED:
        (tmp_path / path.name).write_bytes(path.read_bytes())
    before = compile_policies([tmp_path])
    after = compiled(tmp_path, ".", lib=LIBRARY)
    assert before.artifact is not None
    assert json.dumps(before.artifact) == json.dumps(after.artifact)


def test_what_a_library_imports_comes_with_it_once(tmp_path: Path) -> None:
    """A diamond: two libraries import a third, with a parameter, and the policy imports all of them."""
    found = compiled(
        tmp_path,
        p=importing("a.yml", "b.yml", "c.yml", condition="variables.a && variables.b && variables.c"),
        a=library("c.yml", more=variable("a", "variables.c")),
        b=library("./c.yml", more=variable("b", "!variables.c")),
        c=PLAIN + "params: [{name: most, type: int}]\n" + variable("c", "params.most > 3"),
    )
    assert found.findings == []
    assert found.artifact is not None
    assert [one["name"] for one in found.artifact["policies"][0]["rule"]["variables"]] == ["c", "a", "b"]
    assert [one["path"] for one in found.artifact["sources"]] == ["p.yml", "c.yml", "a.yml", "b.yml"]


def test_paths_are_relative_to_the_file_that_imports(tmp_path: Path) -> None:
    found = compiled(
        tmp_path,
        "policies",
        policies__sub__p=importing("../../shared/a.yml"),
        policies__q=importing("../shared/a.yml").replace("name: p", "name: q"),
        shared__a=library("deep/b.yml", more=variable("brief", "variables.b")),
        shared__deep__b=library(more=variable("b")),
    )
    assert found.findings == []
    assert found.artifact is not None
    assert [one["path"] for one in found.artifact["sources"]] == [
        "q.yml",
        "sub/p.yml",
        "../shared/deep/b.yml",
        "../shared/a.yml",
    ]
    assert found.imported["../shared/a.yml"].path == str(tmp_path / "shared" / "a.yml")


def test_two_files_of_one_name_are_told_apart(tmp_path: Path) -> None:
    found = compiled(
        tmp_path,
        "x/p.yml",
        "y/q.yml",
        x__p=importing("lib.yml"),
        x__lib=BRIEF,
        y__q=importing("lib.yml").replace("name: p", "name: q"),
        y__lib=BRIEF + "# other\n",
    )
    assert found.artifact is not None
    names = [one["rule"]["variables"][0]["expr"]["file"] for one in found.artifact["policies"]]
    assert names == ["lib.yml", str(tmp_path / "y" / "lib.yml")]


def test_schema_and_importer_accept_the_same_patterns() -> None:
    properties = load_schema("policy.schema.json")["$defs"]["import"]["properties"]
    for key, pattern in (
        ("path", libraries.PLAIN_PATH),
        ("git", git_files.URL),
        ("commit", git_files.COMMIT),
        ("collection", collection_files.NAME),
    ):
        assert properties[key]["pattern"] == f"^{pattern.pattern}$(?!\\n)", key


def test_library_may_only_import_others(tmp_path: Path) -> None:
    assert compiled(tmp_path, p=importing("all.yml"), all=library("lib.yml"), lib=BRIEF).findings == []


def test_hooks_and_limits_and_explanations_use_imports(tmp_path: Path) -> None:
    params = PLAIN + "params: [{name: host, type: string, default: a}]\n"
    for match in (
        '{output: approve, prepare: [{haproxy: {socket: /s, server: "a/${params.host}"}}]}',
        '{output: hold, notify: [{http: "https://a.example/", body: "{\\"a\\": params.host}"}]}',
        "{output: hold, explanation: params.host}",
        "{output: approve, limit: {at_most: 1, group: params.host}}",
    ):
        text = f"name: p\nimports: [{{path: lib.yml}}]\nrule:\n  match:\n    - {match}\n"
        assert compiled(tmp_path, p=text, lib=params).findings == [], match


def test_parameter_of_two_libraries_has_one_type(tmp_path: Path) -> None:
    int_, text = (PLAIN + f"params: [{{name: x, type: {kind}}}]\n" for kind in ("int", "string"))
    found = compiled(
        tmp_path,
        *("p.yml", "q.yml"),
        p=importing("a.yml", condition="params.x > 1"),
        q=importing("b.yml", condition="params.x == 'a'").replace("name: p", "name: q"),
        a=int_,
        b=text,
    )
    assert [(Path(one.path).name, one.line, one.code) for one in found.findings] == [("q.yml", 3, "param-conflict")]


def test_libraries_are_checked_alone_and_no_policies(tmp_path: Path) -> None:
    files: dict[str, Any] = {"p": POLICY, "lib": LIBRARY, "other": PLAIN.replace("lib\n", "other\n") + variable("x")}
    found = compiled(tmp_path, ".", **files)
    assert found.artifact is not None
    assert [one["name"] for one in found.artifact["policies"]] == ["p"]
    assert [one["path"] for one in found.artifact["sources"]] == ["p.yml", "lib.yml"]
    (tmp_path / "other.yml").write_text(PLAIN + variable("x", "y"))
    assert compile_policies([tmp_path]).findings == [], "nothing imports it"
    checked = compile_policies([tmp_path], libraries=True)
    assert [Path(one.path).name for one in checked.findings] == ["other.yml"]
    assert [Path(one).name for one in checked.libraries] == ["lib.yml", "other.yml"]
    with pytest.raises(InputError, match="a library, not a policy"):
        compile_policies([tmp_path / "lib.yml"])
    (tmp_path / "p.yml").unlink()
    with pytest.raises(InputError, match="no policies there, only libraries"):
        load_policies([tmp_path])
    (tmp_path / "other.yml").unlink()
    assert compile_policies([tmp_path], libraries=True) == Compilation(None, [], (), (str(tmp_path / "lib.yml"),), {})


def test_tests_of_a_directory_leave_libraries_out(tmp_path: Path) -> None:
    case = "{name: a, input: {event: {EventType: Freeze, DurationInSeconds: 1}}, output: approve}"
    (tmp_path / "tests.yml").write_text(f"section: [{{name: a, tests: [{case}]}}]\n")
    compiled(tmp_path, p=POLICY, lib=LIBRARY)
    run = run_tests([tmp_path / "tests.yml"])
    assert (run.findings, len(run.results), run.failed) == ([], 1, [])
    (tmp_path / "tests.yml").write_text(f"policies: [lib.yml]\nsection: [{{name: a, tests: [{case}]}}]\n")
    run = run_tests([tmp_path / "tests.yml"])
    assert [(one.code, one.line) for one in run.findings] == [("test-policy", 1)]


def test_the_reason_of_a_decision_names_the_library(tmp_path: Path) -> None:
    files = {
        "p": POLICY,
        "lib": LIBRARY.replace("event.DurationInSeconds < params.limit", "\"events[7].EventId == 'x'\""),
    }
    assert compiled(tmp_path, **files).findings == []
    (tmp_path / "p.test.yml").write_text(
        "section: [{name: a, tests: [{name: a, input: {event: {EventType: Freeze}}, output: hold, "
        'reason: "(lib.yml:6): events[7]"}]}]\n'
    )
    assert run_tests([tmp_path / "p.test.yml"]).failed == []


def test_imported_invariants_are_proven_for_each_policy(tmp_path: Path) -> None:
    wrong = POLICY.replace("variables.brief", "event.EventType == 'Preempt'")
    compiled(tmp_path, p=wrong, q=POLICY.replace("name: p", "name: q"), lib=LIBRARY)
    found = [one for one in verify(load_policies([tmp_path / "p.yml"])).findings if one.severity == "error"]
    assert [(one.code, one.policy, one.source, one.line) for one in found] == [
        ("invariant-violated", "p", "lib.yml", 8)
    ]
    assert "'no evictions', which p imports, does not hold" in found[0].message
    together = verify(load_policies([tmp_path / "p.yml", tmp_path / "q.yml"])).findings
    assert sorted(one.policy for one in together if one.code == "invariant-violated") == ["p", "q"]
    suppressed = wrong + "suppress: [{code: invariant-violated, reason: this is a test}]\n"
    (tmp_path / "p.yml").write_text(suppressed)
    assert [one for one in verify(load_policies([tmp_path / "p.yml"])).findings if one.suppressed] != []
