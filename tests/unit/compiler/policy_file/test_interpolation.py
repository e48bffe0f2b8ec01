# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``${…}`` in texts of hooks: found, checked where it stands, and resolved by the engine for each verdict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from forewarn.compiler.cel.types import CelSyntaxError
from forewarn.compiler.policies import compile_policies
from forewarn.compiler.policy_file.interpolation import parts
from forewarn.events import Vm, parse_document
from forewarn.policy.artifact import load
from forewarn.policy.decision import Decision, Facts
from forewarn.policy.engine import PolicySet
from hypothesis import given
from hypothesis import strategies as st
from tools.fixtures.events import NOW, listed

PLAIN = st.text(st.sampled_from("ab $/{}'\"\\"), max_size=6)
# Expressions with braces, quotes and what looks like the end.
EXPRESSIONS = st.sampled_from(["vm.name", "'}'", '"${"', "{'a': '}'}['a']", "vm.tags['}{']", "'it\\'s }'", "r'\\'"])


def escaped(text: str) -> str:
    return text.replace("${", "$${")


@given(st.lists(st.tuples(PLAIN, EXPRESSIONS), max_size=3), PLAIN)
def test_what_was_written_is_found_again(pairs: list[tuple[str, str]], last: str) -> None:
    wanted: list[tuple[str, bool]] = []
    text = ""
    for plain, expression in [*pairs, (last, "")]:
        plain = plain.rstrip("$")  # which would make a $$ of what follows
        text += escaped(plain) + (f"${{{expression}}}" if expression else "")
        wanted += [(plain, False)] if plain else []
        wanted += [(expression, True)] if expression else []
    found = parts(text)
    assert [(part.source, part.is_expression) for part in found] == wanted
    assert all(text[part.start :].startswith(part.source) for part in found if part.is_expression)


@pytest.mark.parametrize("text", ["${", "${vm.name", "a${'}'", "${{}"])
def test_an_open_brace_is_an_error(text: str) -> None:
    with pytest.raises(CelSyntaxError, match="has no '}'"):
        parts(text)


_DOCUMENT = json.dumps({"DocumentIncarnation": 1, "Events": [listed(Resources=["web_0"])]}).encode()
POLICY = """
name: p
params: [{name: backend, type: string, default: web}]
rule:
  match:
    - id: drain
      output: approve
      prepare:
        - haproxy: {socket: "lb:9999", server: %s}
        - {run: [/bin/true, "${vm.name}"]}
"""


def decide(tmp_path: Path, server: str, vm: Vm, **params: Any) -> Decision:
    path = tmp_path / "p.yml"
    path.write_text(POLICY % server)
    compiled = compile_policies([path])
    assert [finding.code for finding in compiled.findings] == ["no-expression"]  # of run
    (decision,) = PolicySet(load(compiled.artifact or {}), params).decide(parse_document(_DOCUMENT), Facts(NOW, vm))
    return decision


def test_the_values_stand_in_the_texts(tmp_path: Path) -> None:
    decision = decide(tmp_path, '"${params.backend}/${vm.name}-${size(event.Resources)}"', Vm("web_0"), backend="api")
    drain, script = decision.prepare
    assert drain["options"] == {"socket": "lb:9999", "server": "api/web_0-1"}
    assert script["run"] == ["/bin/true", "${vm.name}"]  # a command is as it is written
    (recover,) = decision.recover
    assert (recover["kind"], recover["options"]) == ("haproxy", drain["options"])


def test_unknown_value_is_a_problem_of_the_hook(tmp_path: Path) -> None:
    decision = decide(tmp_path, '"web/${vm.name}"', Vm())
    assert decision.output == "approve"
    assert decision.prepare[0]["problem"].startswith("server: web/${vm.name} has no value")
    assert decision.recover == ()  # nothing was prepared


def test_a_text_that_begins_like_a_value(tmp_path: Path) -> None:
    decision = decide(tmp_path, '"web/$${x}"', Vm("web_0"))
    assert decision.prepare[0]["options"]["server"] == "web/${x}"


def test_value_that_changes_while_listed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.yml"
    for source in ("now", "notice", "event.EventStatus", "event.NotBefore", "affects_me"):
        path.write_text(POLICY % f'"web/${{string({source})}}"')
        finding, _of_run = compile_policies([path]).findings
        assert finding.code in ("undeclared-name", "unknown-field"), source
        assert finding.source_line[finding.column - 1 :].startswith(source)
