# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every mistake in what policies import is one finding at its place."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from forewarn.compiler.imports import git_files, libraries
from forewarn.compiler.policies import PolicyError, load_policies
from forewarn.compiler.yaml.tree import MOST_BYTES
from tools.fixtures.policy_libraries import BRIEF, LIBRARY, PLAIN, POLICY, compiled, importing, library, only, variable


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


def test_broken_library_reports_only_its_mistake(tmp_path: Path) -> None:
    compiled(tmp_path, p=POLICY, lib=LIBRARY + "bad: 1\n")
    with pytest.raises(PolicyError, match="unknown-key 'bad' is an unknown key"):
        load_policies([tmp_path / "p.yml"])
