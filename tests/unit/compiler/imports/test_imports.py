# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Policies import parameters, variables and invariants from libraries; every mistake is found at its place."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from forewarn.analysis.verify.verify import verify
from forewarn.compiler.findings import Finding
from forewarn.compiler.imports import collection_files, git_files, libraries
from forewarn.compiler.policies import Compilation, PolicyError, compile_policies, load_policies
from forewarn.compiler.testing.policytest import run_tests
from forewarn.compiler.yaml.schema import load as load_schema
from forewarn.compiler.yaml.tree import MOST_BYTES
from forewarn.errors import InputError
from forewarn.policy.engine import PolicySet
from tools.fixtures.policy_files import SHIPPED

LIBRARY = """\
name: shared
library: true
params:
  - {name: limit, type: int, default: 9}
variables:
  - {name: brief, expression: event.DurationInSeconds < params.limit}
invariants:
  - {name: no evictions, expression: "!(decision == approve && event.EventType == 'Preempt')"}
"""
POLICY = """\
name: p
imports:
  - {path: lib.yml}
rule:
  match:
    - {condition: variables.brief, output: approve}
"""
PLAIN = "name: lib\nlibrary: true\n"
BRIEF = PLAIN + "variables: [{name: brief, expression: event.DurationInSeconds < 9}]\n"


def compiled(directory: Path, *paths: str, **files: str | bytes) -> Compilation:
    """Write files, whose names end with .yml, and compile ``paths`` of them, or ``p``."""
    for name, text in files.items():
        path = directory / f"{name.replace('__', '/')}.yml"
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(text, str):  # each library has a name of its own
            text = text.replace("name: lib\n", f"name: {path.stem}\n").encode()
        path.write_bytes(text)
    return compile_policies([directory / path for path in paths or ("p.yml",)])


def only(directory: Path, **files: str | bytes) -> Finding:
    (finding,) = compiled(directory, **files).findings
    return finding


def importing(*paths: str, condition: str = "variables.brief", more: str = "") -> str:
    listed = "".join(f"  - {{path: {json.dumps(path)}}}\n" for path in paths)
    rule = f"rule:\n  match:\n    - {{condition: {json.dumps(condition)}, output: approve}}\n"
    return f"name: p\nimports:\n{listed}{more}{rule}"


def library(*paths: str, name: str = "lib", more: str = "") -> str:
    listed = "".join(f"  - {{path: {json.dumps(path)}}}\n" for path in paths)
    return f"name: {name}\nlibrary: true\n" + (f"imports:\n{listed}" if paths else "") + more


def variable(name: str, expression: str = "affects_me") -> str:
    return f"variables:\n  - {{name: {name}, expression: {json.dumps(expression)}}}\n"


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


@pytest.mark.parametrize(
    ("files", "code", "place", "says"),
    [
        ({"p": importing("lib.yml")}, "import-missing", ("p.yml", 3, 12), "there is no file"),
        ({"p": importing("a/../b/"), "a__x": "", "b__x": ""}, "import-missing", ("p.yml", 3, 12), "is a directory"),
        ({"p": importing("/lib.yml")}, "import-path", ("p.yml", 3, 12), "write it relative to this file"),
        ({"p": importing("p.yml")}, "not-a-library", ("p.yml", 3, 12), "'library: true'"),
        (
            {"p": importing("q.yml"), "q": "name: q\nlibrary: false\nrule: {match: [{output: hold}]}\n"},
            "not-a-library",
            ("p.yml", 3, 12),
            "a policy cannot be imported",
        ),
        ({"p": importing("lib.yml"), "lib": "- a\n"}, "not-a-library", ("p.yml", 3, 12), "'library: true'"),
        ({"p": importing("lib.yml"), "lib": ""}, "empty-file", ("lib.yml", 1, 1), "the file is empty"),
        ({"p": importing("lib.yml"), "lib": b"\xff"}, "encoding", ("lib.yml", 1, 1), "UTF-8"),
        ({"p": importing("lib.yml"), "lib": b"#" * (MOST_BYTES + 2)}, "too-large", ("lib.yml", 1, 1), "split it"),
        (
            {"p": importing("lib.yml"), "lib": BRIEF.replace("true", '"true"')},
            "wrong-type",
            ("lib.yml", 2, 10),
            "must be true or false",
        ),
        (
            {"p": importing("lib.yml"), "lib": BRIEF.replace("true", "yes")},
            "wrong-type",
            ("lib.yml", 2, 10),
            "write true",
        ),
        (
            {"p": importing("lib.yml"), "lib": BRIEF + "rule: {match: [{output: hold}]}\n"},
            "alternatives",
            ("lib.yml", 4, 1),
            "'library' and 'rule' exclude each other",
        ),
        (
            {"p": importing("lib.yml"), "lib": BRIEF + "suppress: []\n"},
            "alternatives",
            ("lib.yml", 4, 1),
            "'library' and 'suppress' exclude each other",
        ),
        (
            {"p": importing("lib.yml"), "lib": BRIEF + "extra_values: {EventType: [Odd]}\n"},
            "alternatives",
            ("lib.yml", 4, 1),
            "'library' and 'extra_values' exclude each other",
        ),
        (
            {"p": importing("lib.yml"), "lib": PLAIN + variable("brief", "event.EventTyp == 'Freeze'")},
            "unknown-field",
            ("lib.yml", 4, 32),
            "did you mean EventType?",
        ),
        (
            {"p": importing("lib.yml"), "lib": library("lib.yml", more=variable("brief"))},
            "import-cycle",
            ("lib.yml", 4, 12),
            "lib.yml → ",
        ),
        (
            {"p": importing("lib.yml", more="params: [{name: limit, type: int}]\n"), "lib": LIBRARY},
            "import-clash",
            ("p.yml", 4, 17),
            "lib.yml:4, and cannot be declared again",
        ),
        (
            {
                "p": POLICY.replace("rule:\n", "rule:\n  variables: [{name: brief, expression: affects_me}]\n"),
                "lib": LIBRARY,
            },
            "import-clash",
            ("p.yml", 5, 22),
            "variable 'brief' is imported from",
        ),
        (
            {
                "p": POLICY + "    - rule:\n        variables: [{name: brief, expression: affects_me}]\n"
                "        match: [{output: hold}]\n",
                "lib": LIBRARY,
            },
            "import-clash",
            ("p.yml", 8, 28),
            "variable 'brief' is imported from",
        ),
        (
            {"p": POLICY + "invariants: [{name: no evictions, expression: 'true'}]\n", "lib": LIBRARY},
            "import-clash",
            ("p.yml", 7, 21),
            'invariant "no evictions" is imported from',
        ),
        (
            {"p": importing("lib.yml", "b.yml"), "lib": LIBRARY, "b": PLAIN + "params: [{name: limit, type: int}]\n"},
            "import-clash",
            ("p.yml", 4, 5),
            "parameter 'limit' of ",
        ),
        (
            {"p": importing("lib.yml", condition="affects_me"), "lib": BRIEF},
            "unused-import",
            ("p.yml", 3, 5),
            "as variables.NAME or params.NAME",
        ),
        (
            {"p": importing("lib.yml", condition="event.EventId.matches(params.x)"), "lib": PLAIN + "params: "
             "[{name: x, type: string, default: '('}]\n"},
            "param-value",
            ("p.yml", 3, 5),
            'its value "("',
        ),
        ({"p": "name: p\nimports: [{}]\nrule: {match: [{output: hold}]}\n"}, "missing-key", ("p.yml", 2, 11), "'path'"),
        (
            {"p": "name: p\nimports: [{path: a, git: 'https://a/b'}]\nrule: {match: [{output: hold}]}\n"},
            "missing-key",
            ("p.yml", 2, 11),
            "git rev-parse main",
        ),
        (
            {"p": "name: p\nimports: [{path: a, git: 'https://a/b', commit: main}]\nrule: {match: [{output: hold}]}\n"},
            "malformed",
            ("p.yml", 2, 49),
            "git rev-parse main",
        ),
        (
            {
                "p": "name: p\nimports: [{path: a, git: 'https://a/b', collection: a.b, commit: "
                + "a" * 40
                + "}]\nrule: {match: [{output: hold}]}\n"
            },
            "alternatives",
            ("p.yml", 2, 41),
            "'git' and 'collection' exclude each other",
        ),
        (
            {"p": "name: p\nimports: [{path: a, collection: a}]\nrule: {match: [{output: hold}]}\n"},
            "malformed",
            ("p.yml", 2, 33),
            "NAMESPACE.NAME",
        ),
        (
            {"p": 'name: p\nimports: [{path: "a\\0b"}]\nrule: {match: [{output: hold}]}\n'},
            "malformed",
            ("p.yml", 2, 18),
            "without control characters",
        ),
    ],
)  # fmt: skip
def test_each_mistake_is_one_finding_at_its_place(
    tmp_path: Path, files: dict[str, str | bytes], code: str, place: tuple[str, int, int], says: str
) -> None:
    """No import that fails makes its names unknown as well."""
    finding = only(tmp_path, **files)
    assert finding.code == code
    assert (Path(finding.path).relative_to(tmp_path).as_posix(), finding.line, finding.column) == place
    assert says in f"{finding.message} {finding.suggestion}"
    assert finding.severity == ("warning" if code == "unused-import" else "error")


@pytest.mark.parametrize(
    "url",
    [
        *("-oProxyCommand=x", "--upload-pack=x", "http://a/b", "ext::sh -c x", "/srv/git", "ssh://-oProxyCommand=x/b"),
        *("git://a/b", "file://host/x", "https://a/ b", "a@-x:b", "-a@b:c", "https://a/b\nx"),
    ],
)
def test_no_other_url_reaches_git(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object, **_options: object) -> bytes:
        pytest.fail("git was called")

    monkeypatch.setattr(git_files, "_git", refuse)
    text = f"name: p\nimports: [{{path: a, git: {json.dumps(url)}, commit: {'a' * 40}}}]\n"
    finding = only(tmp_path, p=text + "rule: {match: [{output: hold}]}\n")
    assert (finding.code, finding.line) == ("malformed", 2)


def test_schema_and_importer_accept_the_same_patterns() -> None:
    properties = load_schema("policy.schema.json")["$defs"]["import"]["properties"]
    for key, pattern in (
        ("path", libraries.PLAIN_PATH),
        ("git", git_files.URL),
        ("commit", git_files.COMMIT),
        ("collection", collection_files.NAME),
    ):
        assert properties[key]["pattern"] == f"^{pattern.pattern}$(?!\\n)", key


def test_library_mistakes_are_reported_once(tmp_path: Path) -> None:
    broken = PLAIN + variable("brief", "evnt.DurationInSeconds < 9")
    found = compiled(
        tmp_path,
        ".",
        p=importing("lib.yml"),
        q=importing("lib.yml").replace("name: p", "name: q"),
        lib=broken,
    )
    assert [(Path(one.path).name, one.code) for one in found.findings] == [("lib.yml", "undeclared-name")]
    assert found.artifact is None


def test_a_cycle_names_its_chain(tmp_path: Path) -> None:
    finding = only(
        tmp_path,
        p=importing("a.yml", condition="variables.a"),
        a=library("b.yml", more=variable("a")),
        b=library("c.yml", more=variable("b")),
        c=library("a.yml", more=variable("c")),
    )
    assert (finding.code, Path(finding.path).name) == ("import-cycle", "c.yml")
    names = re.findall(r"\w+\.yml", finding.message)
    assert names == ["a.yml", "b.yml", "c.yml", "a.yml"]


def test_names_from_a_missing_library_are_not_unknown(tmp_path: Path) -> None:
    """Wherever they are read: in hooks as well. Other mistakes are still found."""
    matches = (
        '{condition: variables.a, output: approve, prepare: [{haproxy: {socket: /s, server: "${params.c}"}}]}',
        '{output: hold, notify: [{http: "https://a.example/", body: "{\\"a\\": params.host}"}]}',
    )
    for match in matches:
        text = f"name: p\nimports: [{{path: lib.yml}}]\nrule:\n  match:\n    - {match}\n"
        assert only(tmp_path, p=text).code == "import-missing"
    found = compiled(tmp_path, p=importing("lib.yml", condition="variables.x && event.Evnt == 'a'"))
    assert [one.code for one in found.findings] == ["import-missing", "unknown-field"]


def test_links(tmp_path: Path) -> None:
    """A file by two names is one; a link in a circle is no file; '..' behind a link leads where the system says."""
    (tmp_path / "loop.yml").symlink_to("loop.yml")
    assert only(tmp_path, p=importing("loop.yml")).code == "import-missing"
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "short").symlink_to("deep/er")
    (tmp_path / "deep" / "lib.yml").write_text(BRIEF)
    (tmp_path / "alias.yml").symlink_to("deep/lib.yml")
    found = compiled(tmp_path, p=importing("short/../lib.yml", "alias.yml"))
    assert found.findings == []
    assert len(found.imported) == 1


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yml")
    finding = only(tmp_path, p=importing("pipe.yml"))
    assert (finding.code, finding.message[-15:]) == ("import-missing", "no regular file")


def test_a_long_chain_ends(tmp_path: Path) -> None:
    files = {f"l{number}": library(f"l{number + 1}.yml", name=f"l{number}") for number in range(200)}
    finding = only(tmp_path, p=importing("l0.yml", condition="variables.brief"), **files)
    assert (finding.code, Path(finding.path).name) == ("too-large", f"l{libraries.MOST_DEPTH - 1}.yml")


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


def test_broken_library_reports_only_its_mistake(tmp_path: Path) -> None:
    compiled(tmp_path, p=POLICY, lib=LIBRARY + "bad: 1\n")
    with pytest.raises(PolicyError, match="unknown-key 'bad' is an unknown key"):
        load_policies([tmp_path / "p.yml"])
