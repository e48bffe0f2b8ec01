# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hooks in a policy file: what is refused, what reaches the artifact, and what a runner refuses to load of one."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from forewarn.compiler.findings import Finding
from forewarn.errors import InputError
from forewarn.policy.artifact import digest_of
from forewarn.policy.artifact import load as load_artifact
from forewarn.policy.structure import exposes_secret, is_local_url
from tools.fixtures.policy_files import HEAD, compiled


def findings_of(directory: Path, hook: str) -> list[Finding]:
    return compiled(directory, f"{HEAD}    - {{output: hold, prepare: [{hook}]}}\n").findings


def artifact_with(directory: Path, hook: dict[str, Any]) -> dict[str, Any]:
    """Return an artifact, its digest in order, whose only hook is this one."""
    artifact = compiled(directory, HEAD + "    - {output: hold, prepare: [{run: [/bin/true]}]}\n").artifact
    assert artifact is not None
    changed = copy.deepcopy(artifact)
    changed["policies"][0]["rule"]["match"][0]["prepare"] = [hook]
    changed["digest"] = digest_of(changed)
    return changed


@pytest.mark.parametrize(
    ("hook", "at", "hint"),
    [
        ('{run: [/x, "--name=${vm.name}"]}', "${vm.name}", "$FOREWARN_VM_NAME"),
        ('{run: [/x, "${ event.EventId"]}', "${ event.EventId", "$FOREWARN_VM_NAME"),
        ("{run: [/x, a, '${params.pool}']}", "${params.pool}", "$FOREWARN_VM_NAME"),
        ("{http: 'https://x/${vm.name}'}", "${vm.name}", "a 'body'"),
    ],
)
def test_expression_in_a_literal_text_is_a_warning(tmp_path: Path, hook: str, at: str, hint: str) -> None:
    (finding,) = findings_of(tmp_path, hook)
    assert (finding.code, finding.severity) == ("no-expression", "warning")
    assert finding.source_line[finding.column - 1 : finding.end_column - 1] == at
    assert hint in finding.suggestion


@pytest.mark.parametrize(
    "hook", ["{run: [sh, -c, 'drain ${HOME}/x ${vm:-a} $vm.name']}", "{run: [/x, '${eventful}', '{vm.name}']}"]
)
def test_variables_of_a_shell_are_no_expressions(tmp_path: Path, hook: str) -> None:
    assert findings_of(tmp_path, hook) == []


@pytest.mark.parametrize(
    ("hook", "code", "at", "says"),
    [
        ("{http: 'https://a:b@x/'}", "malformed", "'https://a:b@x/'", "without a user name or password"),
        ("{http: 'https://x/', bearer: {}}", "missing-key", "{}", "'credential' or 'file' is missing"),
        ("{http: 'https://x/', bearer: {credential: a, file: /a}}", "alternatives", "file: /a", "exclude each other"),
        ("{http: 'https://x/', bearer: {credential: ../a}}", "malformed", "../a", "the name of a credential"),
        ("{http: 'https://x/', bearer: {credential: ..}}", "malformed", "..}", "the name of a credential"),
        ("{run: [/x], credentials: [../a]}", "malformed", "../a", "the name of a credential"),
        ("{run: [/x], credentials: []}", "too-short", "credentials:", ""),
        ("{http: 'https://x/', credentials: [a]}", "missing-key", "{http:", "'run' is missing beside 'credentials'"),
        ("{http: 'https://x/', bearer: {file: a}}", "malformed", "a}}", "a whole path"),
        ("{http: 'https://x/', bearer: {token: a}}", "unknown-key", "token", "'token' is an unknown key"),
        ("{http: 'https://x/', bearer: a}", "wrong-type", "a}", "must be a mapping"),
        ("{run: [/x], bearer: {file: /a}}", "missing-key", "{run:", "'http' is missing beside 'bearer'"),
        ("{http: 'http://x/', bearer: {file: /a}}", "unencrypted", "bearer:", "https://"),
        ("{http: 'http://127.0.0.1.example.com/', bearer: {file: /a}}", "unencrypted", "bearer:", "https://"),
        ("{http: 'https://x/', template: mail}", "wrong-value", "mail}", "slack"),
        ("{run: [/x], template: slack}", "missing-key", "{run:", "'http' is missing beside 'template'"),
        ("{http: 'https://x/', template: pagerduty}", "missing-key", "template:", "bearer: {credential: NAME}"),
        ("{run: [bin/drain]}", "command", "bin/drain", "write the whole path"),
        ("{run: [./drain, now]}", "command", "./drain", "write the whole path"),
    ],
)
def test_a_hook_that_is_refused(tmp_path: Path, hook: str, code: str, at: str, says: str) -> None:
    findings = findings_of(tmp_path, hook)
    assert code in [finding.code for finding in findings]
    finding = next(finding for finding in findings if finding.code == code)
    assert (finding.line, finding.severity) == (4, "error")
    assert finding.source_line[finding.column - 1 :].startswith(at)
    assert says in f"{finding.message} {finding.suggestion}"


@pytest.mark.parametrize(
    ("keys", "place"),
    [
        ("output: hold\n      recover: [{run: [/x]}]\n", (5, 7)),
        ("output: approve\n      prepare: []\n      recover: [{run: [/x]}]\n", (6, 7)),
        ("condition: affects_me\n      output: approve\n      recover: [{unit: x.service, action: start}]\n", (6, 7)),
    ],
)
def test_nothing_can_be_recovered_that_was_not_prepared(tmp_path: Path, keys: str, place: tuple[int, int]) -> None:
    (finding,) = compiled(tmp_path, f"{HEAD}    - {keys}").findings
    assert (finding.code, finding.line, finding.column) == ("nothing-to-recover", *place)
    assert finding.severity == "error"
    assert "move it to the match that prepares" in finding.suggestion


@pytest.mark.parametrize(
    "keys",
    [
        "output: approve\n      prepare: [{run: [/x]}]\n      recover: [{run: [/y]}]\n",
        "output: hold\n      prepare: [{run: [/x]}]\n",
        "output: hold\n      recover: []\n",
    ],
)
def test_recover_where_it_belongs(tmp_path: Path, keys: str) -> None:
    assert compiled(tmp_path, f"{HEAD}    - {keys}").findings == []


def test_hooks_in_the_artifact(tmp_path: Path) -> None:
    text = (
        f"{HEAD}    - output: hold\n      notify:\n"
        "        - {http: 'https://example.com/x?y=z', bearer: {credential: webhook-token}}\n"
        "        - {http: 'https://example.com/a@b', bearer: {file: /etc/token}, timeout: 5s}\n"
        "        - {http: 'http://127.0.0.1:8080/x', bearer: {file: /etc/token}}\n"
        "        - {run: [drain, bin/x]}\n"
    )
    compilation = compiled(tmp_path, text)
    assert compilation.findings == []
    assert compilation.artifact is not None
    hooks = compilation.artifact["policies"][0]["rule"]["match"][0]["notify"]
    assert hooks == [
        {"http": "https://example.com/x?y=z", "bearer": {"credential": "webhook-token"}, "timeout_seconds": 60.0},
        {"http": "https://example.com/a@b", "bearer": {"file": "/etc/token"}, "timeout_seconds": 5.0},
        {"http": "http://127.0.0.1:8080/x", "bearer": {"file": "/etc/token"}, "timeout_seconds": 60.0},
        {"run": ["drain", "bin/x"], "timeout_seconds": 60.0},
    ]
    load_artifact(compilation.artifact)


@pytest.mark.parametrize(
    "hook",
    [
        {"run": ["/bin/true"], "timeout_seconds": 60.0},
        {"unit": "x.service", "action": "stop", "timeout_seconds": 1},
        {"http": "http://example.com/", "timeout_seconds": 0.5},
    ],
)
def test_an_artifact_without_the_newer_keys_is_loaded(tmp_path: Path, hook: dict[str, Any]) -> None:
    load_artifact(artifact_with(tmp_path, hook))


@pytest.mark.parametrize(
    ("hook", "says"),
    [
        ({}, "exactly one of run, unit, http"),
        ({"run": ["x"], "http": "https://x"}, "exactly one of run, unit, http"),
        ({"run": []}, "a program and its arguments"),
        ({"run": ["x"], "action": "stop"}, "action without unit"),
        ({"unit": "x.service"}, "unit without action"),
        ({"unit": "x.service", "action": "restart"}, "one of start, stop"),
        ({"run": ["x"], "bearer": {"file": "/x"}}, "bearer without http"),
        ({"http": "https://x", "credentials": ["a"]}, "credentials without run"),
        ({"run": ["x"], "credentials": []}, "a list of names"),
        ({"run": ["x"], "credentials": ["../a"]}, "a name"),
        ({"run": ["x"], "credentials": [5]}, "of type str"),
        ({"http": "https://x", "bearer": {}}, "either a credential or a file"),
        ({"http": "https://x", "bearer": {"credential": "a", "file": "/x"}}, "either a credential or a file"),
        ({"http": "https://x", "bearer": {"credential": "../a"}}, "a name"),
        ({"http": "https://x", "bearer": {"credential": 5}}, "of type str"),
        ({"http": "https://x", "bearer": "a"}, "an object"),
        ({"http": "http://x", "bearer": {"file": "/x"}}, "unencrypted"),
        ({"run": ["x"], "user": "nobody"}, "user, which this forewarn does not know"),
    ],
)
def test_an_artifact_with_such_a_hook_is_refused(tmp_path: Path, hook: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match="damaged") as error:
        load_artifact(artifact_with(tmp_path, hook))
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://localhost/x", True),
        ("HTTP://LocalHost:80", True),
        ("http://127.9.9.9:8080/x?y", True),
        ("http://[::1]:80/", True),
        ("http://localhost@example.com/", False),
        ("http://localhost:80@example.com/", False),
        ("http://localhost.example.com/", False),
        ("http://127.0.0.1.example.com/", False),
        ("http://[::1].example.com/", False),
        ("http://example.com/?http://localhost/", False),
        ("ftp://localhost/", False),
    ],
)
def test_what_stays_on_the_machine(url: str, here: bool) -> None:
    assert is_local_url(url) is here
    assert exposes_secret(url) is not here
    assert not exposes_secret(url.replace("http", "https", 1).replace("HTTP", "HTTPS").replace("ftp", "https"))
