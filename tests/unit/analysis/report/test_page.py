# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of verify and diff: it is complete, makes no request, and trusts no text of a policy."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from forewarn.analysis.report.page import verification_page
from forewarn.analysis.report.table import verification_table
from forewarn.analysis.verify.verify import verify
from forewarn.cli.main import main
from forewarn.compiler.policies import load_policies
from tools.fixtures.policy_files import DIRECTORY
from tools.judges.elements import Elements

EVIL = '</script><script>alert(1)</script><img src=x onerror="alert(2)">&lt;\u202e'
HOSTILE = f"""
name: evil
description: {json.dumps(EVIL)}
params: [{{name: word, type: string, default: {json.dumps(EVIL)}}}]
extra_values: {{EventType: [{json.dumps("<b>Odd</b>")}]}}
rule:
  variables: [{{name: odd, expression: {json.dumps(f"event.Description == {json.dumps(EVIL)}")}}}]
  match:
    - {{id: a, condition: variables.odd, output: approve, explanation: {json.dumps(json.dumps(EVIL))}}}
    - {{id: b, condition: {json.dumps(f"vm.tags['<i>'] == {json.dumps(EVIL)}")}, output: approve,
       prepare: [{{run: [/bin/x, {json.dumps(EVIL)}]}}], explanation: "'of ' + params.word"}}
    - {{id: c, condition: {json.dumps(f"event.EventId.matches({json.dumps('^<s>')})")}, output: hold}}
invariants: [{{name: {json.dumps(EVIL)}, expression: decision == hold}}]
suppress: [{{code: uncovered-events, reason: {json.dumps(EVIL)}}}]
"""


def page_of(*paths: Path) -> str:
    artifact = load_policies(list(paths))
    return verification_page(artifact, verify(artifact), [str(path) for path in paths])


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the page of all shipped policies, as the command writes it."""
    file = tmp_path_factory.mktemp("page") / "page.html"
    assert main(["policy", "verify", str(DIRECTORY), "--html", str(file)]) == 0
    return file.read_text()


def test_page_is_small_and_reproducible(everything: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(everything.encode()) < 300_000
    assert main(["policy", "verify", str(DIRECTORY), "--html", "-"]) == 0
    assert capsys.readouterr().out == everything


def test_page_requests_nothing_and_runs_its_own_script(everything: str) -> None:
    elements = Elements(everything)
    assert {name for name, _ in elements.found}.isdisjoint({"link", "img", "iframe", "object", "base", "form", "svg"})
    for name, attributes in elements.found:
        assert not attributes.keys() & {"src", "srcset", "style", "action"}, (name, attributes)
        assert not [key for key in attributes if key.startswith("on")]
        assert name != "a" or str(attributes["href"]).startswith("#")
    (policy,) = [one["content"] for one in elements.of("meta") if one.get("http-equiv") == "Content-Security-Policy"]
    directives = dict(part.strip().split(" ", 1) for part in str(policy).split(";"))
    assert directives["default-src"] == directives["base-uri"] == directives["form-action"] == "'none'"
    assert directives.keys() == {"default-src", "script-src", "style-src", "base-uri", "form-action"}
    (style,) = [content for name, content in elements.raw if name == "style"]
    table, script = [content for name, content in elements.raw if name == "script"]
    for content, directive in ((style, "style-src"), (script, "script-src")):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert directives[directive] == f"'sha256-{digest}'"
        assert not re.search(
            r"https?://(?!www\.(?:gnu|w3)\.org)|@import|url\(|fetch\(|XMLHttp|innerHTML|eval\(", content
        )
    assert json.loads(table) == json.loads(json.dumps(verification_table(load_policies([DIRECTORY]))))


def test_every_link_leads_to_a_rule(everything: str) -> None:
    elements = Elements(everything)
    names = [attributes["id"] for _, attributes in elements.found if "id" in attributes]
    assert len(names) == len(set(names))
    links = [str(attributes["href"])[1:] for attributes in elements.of("a")]
    assert links
    assert set(links) <= set(names)
    (table,) = [json.loads(content) for name, content in elements.raw if content.startswith("{")]
    for number, policy in enumerate(table["sides"][0]["policies"]):
        for region in policy["regions"]:
            assert "number" not in region or f"rule-0-{number}-{region['number']}" in names


def test_no_text_of_a_policy_is_markup(tmp_path: Path) -> None:
    path = tmp_path / "<u>evil.yml"
    path.write_text(HOSTILE)
    page = page_of(path)
    elements = Elements(page)
    assert len(elements.of("script")) == 2
    assert {name for name, _ in elements.found}.isdisjoint({"img", "i", "s", "u"})
    assert [name for name, _ in elements.found].count("b") == page.count("<b>")
    assert "alert(1)" in page  # as text
    assert "\u202e" not in page
    (table,) = [content for name, content in elements.raw if content.startswith("{")]
    assert not set(table) & set("<>&")
    regions = json.loads(table)["sides"][0]["policies"][0]["regions"]
    assert EVIL in [region.get("reason") for region in regions]  # unharmed, for the script to set as text


def test_diff_has_its_changes_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new = tmp_path / "web-tier.yml"
    new.write_text((DIRECTORY / "web-tier.yml").read_text().replace("default: 9", "default: 15"))
    file = tmp_path / "diff.html"
    assert main(["policy", "diff", str(DIRECTORY / "web-tier.yml"), str(new), "--html", str(file)]) == 1
    assert "more permissive" in capsys.readouterr().out
    page = file.read_text()
    assert "DurationInSeconds in 9..14" in page
    assert "More permissive: events start that waited before." in page
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(re.findall(r' id="([^"]+)"', page))
    assert main(["policy", "diff", str(new), str(new), "--html", "-"]) == 0
    assert "Nothing changes." in capsys.readouterr().out


def test_unwritable_file_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "none" / "page.html"
    assert main(["policy", "verify", str(DIRECTORY / "spot-worker.yml"), "--html", str(file)]) == 2
    assert f"{file} cannot be written: No such file or directory" in capsys.readouterr().err


def test_json_and_a_page_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = io.StringIO()
    monkeypatch.setattr("sys.stdout", output)
    file = tmp_path / "page.html"
    assert main(["policy", "verify", str(DIRECTORY / "spot-worker.yml"), "--json", "--html", str(file)]) == 0
    report: dict[str, Any] = json.loads(output.getvalue())
    assert report["findings"]
    assert file.read_text().startswith("<!DOCTYPE html>")
