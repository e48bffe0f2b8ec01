# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A rollout does not do less than what is in use on the hosts unless it was told so: on hosts that are pretended.

They answer what the role asks before it changes anything, and nothing after that.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from forewarn.cli.main import main
from tools.sites.adhoc import AdHoc
from tools.sites.ansible_cores import ansible
from tools.sites.commands import run_program

pytestmark = pytest.mark.in_turn(3)

ROLLOUT = "forewarn.azure.rollout"
PREFLIGHT = "user=0\nsystemd=252\npython=3.11\npython3=/usr/bin/python3.11\nunit=present\n"
NO_ROUTE = "Failed to connect to the host via ssh: ssh: connect to host x port 22: No route to host"
HOOK = "\n      prepare: [{unit: drain.service, action: start}]"

# What is needed on the control node is imported once, not in the process that Ansible forks for each host and task.
PRELOAD = """\
from ansible.plugins.callback import CallbackBase
from ansible_collections.forewarn.azure.plugins.action import known_variables, policy_change, runner_build

class CallbackModule(CallbackBase):
    CALLBACK_VERSION, CALLBACK_NAME, CALLBACK_NEEDS_ENABLED = 2.0, "preload", True
"""


def policy(name: str, approved: str, prepare: str = "") -> str:
    """Return a policy that approves events of one type."""
    rule = f"- id: pass\n      condition: event.EventType == '{approved}'{prepare}\n      output: approve\n"
    return f"name: {name}\ndescription: One type passes.\nrule:\n  match:\n    {rule}"


POLICIES = {
    "freezes": policy("web", "Freeze"),
    "reboots": policy("web", "Reboot"),
    "drained": policy("web", "Freeze", HOOK),
    "more": policy("web", "Freeze") + "    - {id: more, condition: event.EventType == 'Reboot', output: approve}\n",
    "renamed": policy("web-tier", "Freeze"),
}


class PlaybookRun(NamedTuple):
    """How a rollout ended, and how often hosts were asked for each kind of answer."""

    code: int
    text: str
    asked: list[str]

    @property
    def refused(self) -> bool:
        """Whether no host was even looked at for its Python: the batches have not begun."""
        return "Nothing was changed." in self.text and not any("preflight" in line for line in self.asked)


@pytest.fixture(scope="module")
def roll_out(
    tmp_path_factory: pytest.TempPathFactory, collections_path: Path, repository: Path
) -> Callable[..., PlaybookRun]:
    """Return a function that rolls out to hosts that have something in use, with variables and options."""
    directory = tmp_path_factory.mktemp("rollout")
    vms = directory / "vms"
    vms.mkdir()
    environ = {
        **AdHoc(directory, collections_path).environ,
        "ANSIBLE_CONNECTION_PLUGINS": str(repository / "tests" / "tools" / "sites" / "connection"),
        "SCRIPTED_VMS": str(vms),
        "ANSIBLE_CALLBACK_PLUGINS": str(directory),
        "ANSIBLE_CALLBACKS_ENABLED": "preload",
    }
    (directory / "preload.py").write_text(PRELOAD)
    compiled = {}
    for name, text in POLICIES.items():
        (directory / name).mkdir()
        (directory / name / "web.yml").write_text(text)
        assert main(["policy", "compile", str(directory / name), "-o", str(directory / f"{name}.json")]) == 0
        compiled[name] = (directory / f"{name}.json").read_bytes()
    compiled["damaged"] = b"{"

    def answers(used: str | None, settings: Mapping[str, Any]) -> dict[str, Any]:
        other = {"preflight": [0, PREFLIGHT, ""], "other": [1, "", "it does nothing"]}
        if used is None:
            return {"in_use": [0, "{}\n", ""], **other}
        path = f"/etc/forewarn/policy-{used}.json"
        digest = hashlib.sha256(compiled[used]).hexdigest()
        config = json.dumps({"artifact": path, "params": {}, **settings}, indent=4)
        files = f"{'0' * 64}  /etc/forewarn/config.json\n{digest}  {path}\n"
        in_use = f"bash: warning: setlocale\r\n{config}\n\n{files}".replace("\n", "\r\n")
        return {"in_use": [0, in_use, ""], "file": [0, base64.encodebytes(compiled[used]).decode(), ""], **other}

    def play(hosts: Mapping[str, Mapping[str, Any]], variables: Mapping[str, Any], *options: str) -> PlaybookRun:
        """``hosts``: of each, what is in use, its settings, further answers, and variables."""
        for name, of in hosts.items():
            script = {**answers(of.get("used"), of.get("settings", {})), **of.get("answers", {})}
            (vms / f"{name}.json").write_text(json.dumps(script))
        (vms / "asked").write_text("")
        connection = {"ansible_connection": "scripted_vm"}
        inventory = {name: {**connection, **of.get("variables", {})} for name, of in hosts.items()}
        (directory / "hosts.json").write_text(json.dumps({"all": {"hosts": inventory}}))
        (directory / "given.json").write_text(json.dumps(variables))
        process = run_program(
            *(ansible("ansible-playbook"), "-i", "hosts.json", "-e", "@given.json", *options, ROLLOUT),
            cwd=directory,
            env=environ,
        )
        asked = (vms / "asked").read_text().splitlines()
        return PlaybookRun(process.returncode, process.stdout + process.stderr, asked)

    return play


# What is in use, the variables of the rollout, and a part of what it says, or None if it is not refused.
CASES: list[tuple[str | None, dict[str, Any], dict[str, Any], str | None]] = [
    (None, {}, {}, None),
    ("freezes", {}, {}, "In use is web "),
    ("freezes", {}, {"forewarn_policies": ""}, "say by name that you mean it: forewarn_policies: []"),
    ("freezes", {}, {"forewarn_accept_less": True}, "No policies are named"),
    ("freezes", {}, {"forewarn_policies": []}, None),
    ("damaged", {}, {}, "In use is policies that cannot be read"),
    ("damaged", {}, {"forewarn_policies": ["freezes.json"]}, None),
    ("freezes", {}, {"forewarn_policies": ["freezes.json"]}, None),
    ("freezes", {}, {"forewarn_policies": ["more.json"]}, None),
    ("freezes", {}, {"forewarn_policies": ["renamed.json"]}, None),
    ("freezes", {}, {"forewarn_policies": ["reboots.json"]}, "  approve → hold, when EventType = Freeze"),
    ("more", {}, {"forewarn_policies": ["freezes.json"]}, "  approve → hold, when EventType = Reboot"),
    ("more", {}, {"forewarn_policies": ["freezes.json"], "forewarn_accept_less": "yes"}, None),
    ("more", {}, {"forewarn_policies": ["freezes.json"], "forewarn_dry_run": True}, None),
    ("drained", {}, {"forewarn_policies": ["freezes.json"]}, "prepare: start drain.service"),
    ("freezes", {}, {"forewarn_policies": ["drained.json"]}, None),
    (
        "freezes",
        {"dry_run": True},
        {"forewarn_policies": ["freezes.json"]},
        "In use is a dry run, and forewarn_dry_run is not",
    ),
    ("freezes", {"dry_run": True}, {"forewarn_policies": ["freezes.json"], "forewarn_dry_run": False}, None),
    ("more", {"dry_run": True}, {"forewarn_policies": ["freezes.json"], "forewarn_dry_run": True}, None),
    (
        "freezes",
        {"sink_url": "https://x"},
        {"forewarn_policies": ["freezes.json"]},
        "no longer set: forewarn_sink_url.",
    ),
    (
        "freezes",
        {"sink_url": "https://x"},
        {"forewarn_policies": ["freezes.json"], "forewarn_sink_url": "https://y"},
        None,
    ),
]


def test_policy_that_approves_less_is_refused(roll_out: Callable[..., PlaybookRun]) -> None:
    """All in one run, in which each host has its own variables: a refusal names the hosts that it is about."""
    hosts = {
        f"web_{number}": {"used": used, "settings": settings, "variables": variables}
        for number, (used, settings, variables, _says) in enumerate(CASES)
    }
    played = roll_out(hosts, {}, "--forks", "4")
    assert played.code != 0
    assert played.refused
    (said,) = re.findall(r'"msg": ("web_.*")}$', played.text, re.MULTILINE)
    lines = json.loads(said).splitlines()
    headings = [place for place, line in enumerate(lines) if re.fullmatch(r"(web_\d+(, )?)+:", line)]
    refusals = {
        name: "\n".join(lines[begin + 1 : end])
        for begin, end in zip(headings, [*headings[1:], -1], strict=True)
        for name in lines[begin].rstrip(":").split(", ")
    }
    assert lines[-1] == "Nothing was changed."
    assert refusals.keys() == {f"web_{number}" for number, case in enumerate(CASES) if case[3] is not None}
    for number, (_used, _settings, _variables, says) in enumerate(CASES):
        assert says is None or says in refusals[f"web_{number}"], refusals[f"web_{number}"]


def test_policies_are_compared_once_for_all_hosts(roll_out: Callable[..., PlaybookRun]) -> None:
    hosts = {f"web_{number}": {"used": "more" if number % 2 else "drained"} for number in range(8)}
    played = roll_out(hosts, {"forewarn_policies": ["freezes.json"]}, "--forks", "4")
    assert played.refused
    assert sum(line.endswith(" in_use") for line in played.asked) == 8
    assert sum(line.endswith(" file") for line in played.asked) <= 2  # an earlier test may have read them
    assert "web_0, web_2, web_4, web_6:" in played.text
    assert "web_1, web_3, web_5, web_7:" in played.text


def test_summary_lists_failed_unreachable_and_unstarted_hosts(roll_out: Callable[..., PlaybookRun]) -> None:
    """Of three hosts one does not answer, in the look at all of them or later, and one fails in its batch."""
    hosts: dict[str, dict[str, Any]] = {name: {"used": "freezes"} for name in ("a", "b", "c")}
    hosts["a"]["answers"] = {"unreachable": NO_ROUTE}
    hosts["b"]["answers"] = {"preflight": [0, PREFLIGHT.replace("user=0", "user=7"), ""]}
    played = roll_out(hosts, {"forewarn_policies": ["freezes.json"], "forewarn_serial": [2, 1]})
    assert played.code == 2
    assert "PLAY [Roll out the runner]" in played.text
    begin = played.text.index("FAILED: 1 host")
    assert played.text[begin:].splitlines()[:9] == [
        "FAILED: 1 host",
        "  b",
        "    The runner is a system service. Run the role as root, for example with become. Nothing was changed.",
        "NOT REACHED: 1 host",
        "  a",
        "    not reached: No route to host (ssh, port 22)",
        "NOT BEGUN: 1 host",
        "  c",
        "",
    ]
    assert "3 hosts: 0 done, 1 failed, 1 not reached, 1 not begun" in played.text
    assert "c preflight" not in played.asked
    assert re.search(r"^b +: .*failed=1", played.text, re.MULTILINE)
    assert re.search(r"^a +: .*unreachable=1", played.text, re.MULTILINE)


# What a host without sudo, or with another way to become root, answers; or which variables it has.
NO_ROOT: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"preflight": [127, "", "bash: line 1: sudo: command not found\n"]}, {}, "bash: line 1: sudo: command not found"),
    (
        {"preflight": [127, "\r\nsh: 1: sudo: not found\r\n", "Shared connection to x closed.\r\n"]},
        {},
        "sh: 1: sudo: not found",
    ),
    (
        {"preflight": [1, "", "su: Authentication failure\n"]},
        {"ansible_become_method": "su"},
        "su: Authentication failure",
    ),
    ({"preflight": [1, "", "doas: Operation not permitted\n"]}, {}, "doas: Operation not permitted"),
    (
        {"preflight": [1, "This account is currently not available.\n", ""]},
        {},
        "This account is currently not available",
    ),
]


def test_host_without_privilege_escalation_is_refused(roll_out: Callable[..., PlaybookRun]) -> None:
    hosts = {
        f"web_{number}": {
            "used": "freezes",
            "variables": variables,
            "answers": {**answers, "in_use": [127, "", "no sudo"]},
        }
        for number, (answers, variables, _cause) in enumerate(NO_ROOT)
    }
    played = roll_out(hosts, {"forewarn_policies": ["freezes.json"], "forewarn_serial": "100%"})
    assert played.code != 0
    for number, (_answers, _variables, cause) in enumerate(NO_ROOT):
        said = re.findall(rf'fatal: \[web_{number}\]: FAILED! => .*"msg": "(.*?)"}}$', played.text, re.MULTILINE)[-1]
        assert said.startswith(f"Ansible cannot work as root on this VM: {cause}"), said
        assert "such as su or community.general.doas" in said
        assert said.endswith("Nothing was changed.")
    assert f"FAILED: {len(NO_ROOT)} hosts" in played.text
