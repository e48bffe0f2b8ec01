# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role's part on the control node, through the real ``ansible`` command. On hosts it is tested in tests/lab."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from forewarn.cli.main import main
from tools.sites.adhoc import AdHoc, Outcome
from tools.suite.sizes import in_turn

pytestmark = pytest.mark.in_turn(5)

BUILD = "forewarn.azure.runner_build"
POLICY = """\
name: web
description: Freezes pass.
params:
  - {name: tolerable_freeze, type: int, default: 9}
rule:
  match:
    - id: freeze
      condition: event.EventType == "Freeze" && params.tolerable_freeze > 5
      output: approve
"""
TESTS = """\
name: web
input: {vm: {name: web_0}, event: {EventType: Freeze, Resources: [web_0]}}
section: [{name: all, tests: [{name: freeze, output: approve, rule: freeze}]}]
"""


# Has cel-python say the opposite of each condition.
WRONG_ENGINE = """\
import celpy
evaluate = celpy.Evaluator.evaluate
def opposite(evaluator, context=None):
    value = evaluate(evaluator, context)
    return celpy.celtypes.BoolType(not value) if isinstance(value, celpy.celtypes.BoolType) else value
celpy.Evaluator.evaluate = opposite
"""


@pytest.fixture
def adhoc(tmp_path: Path, collections_path: Path) -> AdHoc:
    directory = tmp_path / "policies"
    directory.mkdir()
    (directory / "web.yml").write_text(POLICY)
    (directory / "web.test.yml").write_text(TESTS)
    return AdHoc(tmp_path, collections_path)


def build(
    adhoc: AdHoc,
    args: dict[str, Any],
    *options: str,
    environ: dict[str, str] | None = None,
    **hosts: dict[str, Any],
) -> Outcome:
    # A request to a VM would fail: nobody listens there.
    nowhere = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 9}
    asked = {name: {**nowhere, **variables} for name, variables in (hosts or {"vm": {}}).items()}
    return adhoc.run(asked, args, *options, module=BUILD, environ=environ)


def git(directory: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
    command = ["git", *identity, *arguments]
    return subprocess.run(command, cwd=directory, check=True, capture_output=True, text=True).stdout.strip()


def test_equal_hosts_share_a_build_but_not_checks(adhoc: AdHoc) -> None:
    """The parameters of each host are checked, also where another host has used the same build."""
    args = {"policies": ["policies"], "params": "{{ my_params }}"}
    outcome = build(
        adhoc,
        args,
        a={"my_params": {}},
        b={"my_params": {"tolerable_freeze": 7}},
        c={"my_params": {"tolerable_freeze": "7"}},
    )
    assert outcome.status == {"a": "SUCCESS", "b": "SUCCESS", "c": "FAILED"}
    one, other = outcome.results["a"], outcome.results["b"]
    assert (one["pyz"], one["digest"]) == (other["pyz"], other["digest"])
    assert one["name"] == f"policy-{one['digest'][7:23]}.json"
    assert (one["policy_names"], one["hooks"], one["commit"]) == (["web"], [], None)
    assert "parameter tolerable_freeze of policy web: '7' is not of type int" in outcome.results["c"]["msg"]
    assert not Path(one["pyz"]).exists(), "nothing is left of a run"


ETCD = {"etcd": ["https://etcd-1:2379"]}


def test_group_settings_are_checked_per_host(adhoc: AdHoc) -> None:
    limited = POLICY.replace("output: approve", "output: approve\n      limit: 10%")
    (adhoc.directory / "policies" / "web.yml").write_text(limited)
    args = {
        "policies": ["policies"],
        "group": "{{ my.group | default('') }}",
        "group_members": "{{ my.members | default([]) }}",
        "group_store": "{{ my.store | default({}) }}",
        "dry_run": "{{ my.dry_run | default(false) }}",
    }
    good = {"group": "web", "members": ["web_0", "web_1"], "store": ETCD}
    mistakes: dict[str, tuple[dict[str, Any], str]] = {
        "none": ({}, "has a limit, and this VM has no group_store"),
        "uncounted": ({**good, "members": []}, "limits a share of group web"),
        "nameless": ({**good, "group": ""}, "group is missing"),
        "misnamed": ({**good, "group": "web/1"}, "group is 'web/1'"),
        "twice": ({**good, "members": ["web_0", "WEB_0"]}, "group_members has web_0 twice"),
        "plain": ({**good, "store": {**ETCD, "user": "me", "password": "hunter2"}}, "password has to be an object"),
        "http": ({**good, "store": {"etcd": ["http://etcd-1:2379"]}}, "is http, which carries secrets"),
        "both": ({**good, "store": {**ETCD, "sas": {"credential": "sas"}}}, "sas does not belong to a store with etcd"),
    }
    hosts = {"good": good, "rehearsed": {"dry_run": True}, **{name: given for name, (given, _) in mistakes.items()}}
    outcome = build(adhoc, args, environ=None, **{name: {"my": given} for name, given in hosts.items()})
    expected = {name: "FAILED" if name in mistakes else "SUCCESS" for name in hosts}
    assert outcome.status == expected
    for name, (_, says) in mistakes.items():
        assert says in outcome.results[name]["msg"]
        assert outcome.results[name]["msg"].startswith("Nothing was rolled out.")
    assert "hunter2" not in outcome.stdout + outcome.stderr


@pytest.mark.in_turn(1)
def test_failing_policy_test_is_refused_or_a_warning(adhoc: AdHoc) -> None:
    """With gate=warn, it is a warning."""
    (adhoc.directory / "policies" / "web.test.yml").write_text(TESTS.replace("output: approve", "output: hold"))
    refused = build(adhoc, {"policies": ["policies"]})
    assert refused.status == {"vm": "FAILED"}
    assert "Nothing was rolled out." in refused.only()["msg"]
    assert "expected  hold" in refused.only()["msg"]
    warned = build(adhoc, {"policies": ["policies"], "gate": "warn"})
    assert warned.status == {"vm": "SUCCESS"}
    assert "expected  hold" in warned.stdout + warned.stderr


def test_a_claim_that_does_not_hold_is_refused(adhoc: AdHoc) -> None:
    claim = "invariants:\n  - {name: nothing is approved, expression: decision == hold}\n"
    (adhoc.directory / "policies" / "web.yml").write_text(POLICY + claim)
    outcome = build(adhoc, {"policies": ["policies"]})
    assert outcome.status == {"vm": "FAILED"}
    assert "forewarn policy verify objects" in outcome.only()["msg"]
    assert "nothing is approved" in outcome.only()["msg"]


@pytest.mark.parametrize("compiled", in_turn([False, True]))
def test_refuted_reference_is_refused_or_a_warning(adhoc: AdHoc, compiled: bool) -> None:
    """With gate=warn, it is a warning."""
    (adhoc.directory / "company").mkdir()
    reference = adhoc.directory / "company" / "reference.yml"
    reference.write_text(POLICY.replace("name: web", "name: company").replace('== "Freeze" &&', '== "Freeze" || '))
    policies = ["policies"]
    if compiled:
        policies = [str(adhoc.directory / "web.json")]
        assert main(["policy", "compile", str(adhoc.directory / "policies"), "--output", policies[0]]) == 0
    args = {"policies": policies, "reference": "company"}
    assert build(adhoc, args).status == {"vm": "SUCCESS"}
    reference.write_text(POLICY.replace("name: web", "name: company").replace("> 5", "> 6"))
    outcome = build(adhoc, args)
    assert outcome.status == {"vm": "FAILED"}, "an earlier result for another reference does not count"
    message = outcome.only()["msg"]
    assert "Nothing was rolled out." in message
    assert "refuted: whatever" in message
    assert "--param tolerable_freeze=6" in message or compiled
    warned = build(adhoc, {**args, "gate": "warn"})
    assert warned.status == {"vm": "SUCCESS"}
    assert "refuted: whatever" in warned.stdout + warned.stderr
    missing = build(adhoc, {**args, "reference": "nowhere", "gate": "warn"})
    assert missing.status == {"vm": "FAILED"}
    reference.write_text("name: company\n")
    broken = build(adhoc, {**args, "gate": "warn"})
    assert broken.status == {"vm": "FAILED"}
    assert "cannot be compared with the reference" in broken.only()["msg"]


def test_policy_on_which_engines_differ_is_refused(adhoc: AdHoc) -> None:
    (adhoc.directory / "wrong").mkdir()
    (adhoc.directory / "wrong" / "sitecustomize.py").write_text(WRONG_ENGINE)
    outcome = build(adhoc, {"policies": ["policies"]}, environ={"PYTHONPATH": str(adhoc.directory / "wrong")})
    assert outcome.status == {"vm": "FAILED"}
    message = outcome.only()["msg"]
    assert "Nothing was rolled out." in message
    for command in ("Tests of the policies fail", "forewarn policy verify objects"):
        rest = message.partition(command)[2]
        assert "web.yml:8:18: error engines-differ" in rest
        assert "forewarn says true, cel-python says false" in rest


def test_missing_solver_is_a_warning_until_installed(adhoc: AdHoc) -> None:
    """A result without a solver is not cached: with a solver, the policy is proven."""
    (adhoc.directory / "missing").mkdir()
    (adhoc.directory / "missing" / "z3.py").write_text("raise ImportError('no wheel')\n")
    without = {"PYTHONPATH": str(adhoc.directory / "missing")}
    warned = build(adhoc, {"policies": ["policies"]}, environ=without)
    assert warned.status == {"vm": "SUCCESS"}
    assert "z3-solver is not installed, so nothing can be proven" in warned.stdout + warned.stderr
    refused = build(adhoc, {"policies": ["policies"], "reference": "policies"}, environ=without)
    assert refused.status == {"vm": "FAILED"}  # what was asked for is not proven
    assert "cannot be compared with the reference" in refused.only()["msg"]
    claim = "invariants:\n  - {name: nothing is approved, expression: decision == hold}\n"
    (adhoc.directory / "policies" / "web.yml").write_text(POLICY + claim)
    assert build(adhoc, {"policies": ["policies"]}, environ=without).status == {"vm": "SUCCESS"}
    with_it = build(adhoc, {"policies": ["policies"]})
    assert with_it.status == {"vm": "FAILED"}, "what was not proven without a solver is not kept"
    assert "nothing is approved" in with_it.only()["msg"]


def test_a_mistake_is_refused_whatever_the_gate(adhoc: AdHoc) -> None:
    (adhoc.directory / "policies" / "web.yml").write_text(POLICY.replace("EventType", "EvntType"))
    outcome = build(adhoc, {"policies": ["policies"], "gate": "warn"})
    assert outcome.status == {"vm": "FAILED"}
    assert "event has no field EvntType" in outcome.only()["msg"]


def test_git_ref_is_a_branch_tag_or_commit(adhoc: AdHoc) -> None:
    home = adhoc.directory / "policies"
    git(home, "init", "--quiet", "--initial-branch=main")
    git(home, "add", ".")
    git(home, "commit", "--quiet", "--message=one")
    git(home, "tag", "v1")
    first = git(home, "rev-parse", "HEAD")
    (home / "web.yml").write_text(POLICY.replace("Freezes pass", "All freezes pass"))
    git(home, "commit", "--quiet", "--all", "--message=two")
    second = git(home, "rev-parse", "HEAD")
    hosts = {
        "tag": ("v1", first),
        "branch": ("main", second),
        "head": ("HEAD", second),
        "commit": (first, first),
        "short": (first[:10], first),
    }
    variables = {name: {"my_ref": ref} for name, (ref, _) in hosts.items()}
    outcome = build(adhoc, {"git": home.as_uri(), "ref": "{{ my_ref }}", "policies": ["web.yml"]}, **variables)
    assert {name: result.get("commit") for name, result in outcome.results.items()} == {
        name: commit for name, (_, commit) in hosts.items()
    }
    digests = {name: result["digest"] for name, result in outcome.results.items()}
    assert digests["tag"] == digests["commit"] == digests["short"] != digests["branch"]


def test_what_git_is_not_to_be_asked(adhoc: AdHoc) -> None:
    git(adhoc.directory / "policies", "init", "--quiet")
    git(adhoc.directory / "policies", "add", ".")
    git(adhoc.directory / "policies", "commit", "--quiet", "--message=one")
    url = (adhoc.directory / "policies").as_uri()
    wrong: dict[str, tuple[dict[str, Any], str]] = {
        "option": ({"git": "--upload-pack=touch x"}, "begin with a '-'"),
        "helper": ({"git": "ext::sh -c 'touch x'"}, "not allowed"),
        "nothing": ({"git": url, "ref": "no-such-branch"}, "no-such-branch"),
        "outside": ({"git": url, "policies": ["../../etc"]}, "is not inside the repository"),
        "missing": ({"git": url, "policies": ["db.yml"]}, "There is no db.yml in the repository"),
        "empty": ({"policies": ["web.yml", ""]}, "a path of policies is empty"),
        "local": ({"policies": ["nowhere.yml"]}, "There is no nowhere.yml in "),
        "none": ({"policies": []}, "No policies were named"),
    }
    names = ("git", "ref", "policies")
    hosts = {host: {f"my_{name}": value for name, value in args.items()} for host, (args, _) in wrong.items()}
    outcome = build(adhoc, {name: f"{{{{ my_{name} | default(omit) }}}}" for name in names}, **hosts)
    assert outcome.status == dict.fromkeys(wrong, "FAILED")
    for host, (_, message) in wrong.items():
        assert message in outcome.results[host]["msg"], host
    assert not list(adhoc.directory.rglob("x"))


def test_build_is_cached_for_the_same_files(adhoc: AdHoc) -> None:
    first = build(adhoc, {"policies": ["policies"]}).only()
    (policies,) = (adhoc.directory / "home" / "forewarn" / "built").iterdir()
    content = json.loads(policies.read_text())
    policies.write_text(json.dumps({**content, "remarks": ["this was kept"]}))
    again = build(adhoc, {"policies": ["policies"]})
    assert again.only()["digest"] == first["digest"]
    assert again.only()["pyz_sha256"] == first["pyz_sha256"]
    assert "this was kept" in again.stdout + again.stderr
    # Another test is another proof, also where the artifact is the same.
    (adhoc.directory / "policies" / "web.test.yml").write_text(TESTS.replace("output: approve", "output: hold"))
    assert "expected  hold" in build(adhoc, {"policies": ["policies"]}).only()["msg"]


LIBRARY = """\
name: shared
library: true
params: [{name: tolerable_freeze, type: int, default: 9}]
variables: [{name: calm, expression: event.EventType == "Freeze" && params.tolerable_freeze > 5}]
"""
IMPORTING = """\
name: web
imports: [{path: ../shared/lib.yml}]
rule: {match: [{id: freeze, condition: variables.calm, output: approve}]}
"""


def test_a_changed_library_is_built_again(adhoc: AdHoc) -> None:
    """What is kept for a policy must not outlive what it imports."""
    library = adhoc.directory / "shared" / "lib.yml"
    library.parent.mkdir()
    library.write_text(LIBRARY)
    (adhoc.directory / "policies" / "web.yml").write_text(IMPORTING)
    args = {"policies": ["policies"], "params": {"tolerable_freeze": 7}}
    results = [build(adhoc, args).only() for _ in range(2)]
    assert f"--- # ../shared/lib.yml\n{LIBRARY}" in results[0]["text"], "people see what is rolled out"
    digests = [result["digest"] for result in results]
    library.write_text(LIBRARY.replace("> 5", "> 6"))
    digests.append(build(adhoc, args).only()["digest"])
    assert digests[0] == digests[1] != digests[2]
    library.write_text(LIBRARY.replace('== "Freeze"', '== "Reboot"'))
    assert "Tests of the policies fail" in build(adhoc, args).only()["msg"]


def test_repository_imports_only_files_inside_itself(adhoc: AdHoc) -> None:
    home = adhoc.directory / "repository"
    (home / "shared").mkdir(parents=True)
    (home / "policies").mkdir()
    (home / "shared" / "lib.yml").write_text(LIBRARY)
    (home / "policies" / "web.yml").write_text(IMPORTING)
    git(home, "init", "--quiet", "--initial-branch=main")
    git(home, "add", ".")
    git(home, "commit", "--quiet", "--message=one")
    args = {"git": home.as_uri(), "ref": "main", "policies": ["policies"], "gate": "warn"}
    assert build(adhoc, args).status == {"vm": "SUCCESS"}
    outside = adhoc.directory / "lib.yml"
    outside.write_text(LIBRARY + "secret: of the control node\n")
    (home / "shared" / "lib.yml").unlink()
    (home / "shared" / "lib.yml").symlink_to(outside)
    git(home, "commit", "--quiet", "--all", "--message=two")
    refused = build(adhoc, args)
    assert refused.status == {"vm": "FAILED"}
    assert "is imported, and is not inside the repository" in refused.only()["msg"]
    assert "secret" not in refused.stdout + refused.stderr
