# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role's variables as texts, which is what ``-e name=value`` and an inventory in INI make of every value.

The real ``ansible-playbook`` runs the role for hosts that are not there (``tools/connection/pretend_vm.py``). What a
host is asked to do is the same for a text as for the value that YAML has for it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from ansible.module_utils.parsing.convert_bool import BOOLEANS_FALSE, BOOLEANS_TRUE
from forewarn import __version__
from tools.adhoc import AdHoc, ansible
from tools.commands import run_program

POLICY = """\
name: web
description: Freezes pass.
params:
  - {name: who, type: string, default: nobody}
rule:
  match:
    - {id: freeze, condition: 'event.EventType == "Freeze" && params.who != ""', output: approve}
"""
ROLES = "  roles: [forewarn.azure.forewarn]\n"
PLAY = f"- hosts: all\n  gather_facts: false\n{ROLES}"
CHECK = """\
- hosts: all
  gather_facts: false
  tasks: [{ansible.builtin.include_role: {name: forewarn.azure.forewarn, tasks_from: check}}]
"""
UNVALIDATED = """\
- hosts: all
  gather_facts: false
  tasks: [{ansible.builtin.include_role: {name: forewarn.azure.forewarn, rolespec_validate: false}}]
"""
# Every option that is neither a text nor a bool: a value, and texts for it. None of them is the default.
TEXTS: dict[str, tuple[Any, list[str]]] = {
    "forewarn_interval": (2, ["2", "2.0", " 2 "]),
    "forewarn_probe_lead": (90.5, ["90.5", "90.50"]),
    "forewarn_keep": (5, ["5", "5.0"]),
    "forewarn_health_seconds": (4, ["4", " 4"]),
    "forewarn_policies": (["web"], ["web"]),
    "forewarn_hooks_need": (["users", "network"], ["users,network"]),
    "forewarn_hooks_write": (["/srv/app", "/srv/b"], ["/srv/app,/srv/b", "/srv/app, /srv/b"]),
    "forewarn_unit_settings": (["CPUQuota=50%"], ["CPUQuota=50%", "CPUQuota=50%\n"]),
    "forewarn_params": ({"who": "me"}, ['{"who":"me"}', "who=me"]),
    "forewarn_credentials": (
        {"token": "/etc/token", "other": "/etc/o"},
        ['{"token":"/etc/token","other":"/etc/o"}', "token=/etc/token,other=/etc/o", "token=/etc/token other=/etc/o"],
    ),
}
# Options without which another one has no effect.
TOGETHER = {"forewarn_probe_listen": "127.0.0.1:9780", "forewarn_policies": ["web"]}
FALSE = sorted({spelling(str(text)) for text in BOOLEANS_FALSE for spelling in (str.lower, str.upper, str.title)})
TRUE = sorted({spelling(str(text)) for text in BOOLEANS_TRUE for spelling in (str.lower, str.upper, str.title)})
_FATAL = re.compile(r"^fatal: \[(\S+?)\]: FAILED! => (\{.*\})$", re.MULTILINE)


class Played(NamedTuple):
    """What a playbook wrote, and what each host was asked."""

    code: int
    text: str
    asked: dict[str, list[dict[str, Any]]]


Play = Callable[..., Played]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return Ansible's home directory, shared so that later runs reuse what the first has built."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def play(tmp_path: Path, home: Path, collections_path: Path, repository: Path) -> Play:
    """Return a function that plays a playbook: hosts with their variables, then options of ``ansible-playbook``."""
    adhoc = AdHoc(tmp_path, collections_path)
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "web.yml").write_text(POLICY)
    number = 0

    def played(hosts: Mapping[str, Mapping[str, Any]], *options: str, book: str = PLAY, sick: bool = False) -> Played:
        nonlocal number
        number += 1
        vms = tmp_path / f"vms-{number}"
        vms.mkdir()
        common = {"ansible_connection": "pretend_vm", "forewarn_health_seconds": 4}
        named = {name: {**common, "ansible_host": name, **variables} for name, variables in hosts.items()}
        (tmp_path / "inventory.json").write_text(json.dumps({"all": {"hosts": named}}))
        (tmp_path / "play.yml").write_text(book)
        playbook = "play.yml" if "\n" in book else book
        environ = {
            **adhoc.environ,
            "ANSIBLE_HOME": str(home),
            "ANSIBLE_CONNECTION_PLUGINS": str(repository / "tests" / "tools" / "connection"),
            "PRETENDED_VMS": str(vms),
            **({} if sick else {"PRETENDED_VERSION": __version__}),
        }
        command = [ansible("ansible-playbook"), "-i", "inventory.json", *options, playbook]
        process = run_program(*command, cwd=tmp_path, env=environ, timeout=300)
        asked = {name: _read(vms / f"{name}.jsonl") for name in hosts}
        return Played(process.returncode, process.stdout + process.stderr, asked)

    return played


def _read(record: Path) -> list[dict[str, Any]]:
    if not record.exists():
        return []
    lines: list[dict[str, Any]] = [json.loads(line) for line in record.read_text().splitlines()]
    for line in lines:
        for file in line.get("request", {}).get("files", []):
            del file["source"]  # a temporary file of each run
    return lines


@pytest.fixture(scope="module")
def options(repository: Path) -> dict[str, dict[str, Any]]:
    spec = yaml.safe_load((repository / "roles" / "forewarn" / "meta" / "argument_specs.yml").read_text())
    found: dict[str, dict[str, Any]] = spec["argument_specs"]["main"]["options"]
    return found


@pytest.fixture(scope="module")
def bools(options: dict[str, dict[str, Any]]) -> list[str]:
    return [name for name, option in options.items() if option["type"] == "bool"]


def file_of(asked: list[dict[str, Any]], name: str) -> str:
    """Return the content of a file that a host should have."""
    (applied,) = (line["request"] for line in asked if line.get("request", {}).get("do") == "apply")
    (content,) = (file["content"] for file in applied["files"] if Path(file["path"]).name == name)
    return str(content)


def test_no_option_is_left_out_here(options: dict[str, dict[str, Any]], bools: list[str]) -> None:
    texts = {name for name, option in options.items() if option["type"] in ("str", "path")}
    assert options.keys() - texts - set(bools) == TEXTS.keys()
    assert all(value != options[name]["default"] for name, (value, _) in TEXTS.items())


@pytest.mark.parametrize("state", ["present", "absent"])
def test_every_text_for_true_and_false_is_that(play: Play, bools: list[str], state: str) -> None:
    texts = {f"{'true' if text in TRUE else 'false'}-{text}": text for text in [*TRUE, *FALSE]}
    hosts = {name: dict.fromkeys(bools, text) for name, text in texts.items()}
    native = {str(value).lower(): dict.fromkeys(bools, value) for value in (True, False)}
    played = play({**native, **hosts}, "--forks", "8", "-e", f"forewarn_state={state}")
    assert played.code == 0, played.text[-6000:]
    differing = [name for name in hosts if played.asked[name] != played.asked[name.partition("-")[0]]]
    assert differing == []
    assert played.asked["true"] != played.asked["false"]


def test_the_journal_stays_unless_purge_is_true(play: Play) -> None:
    texts = {"kept": "no", "gone": "yes"}
    hosts = {name: {"forewarn_state": "absent", "forewarn_purge": text} for name, text in texts.items()}
    for name, asked in play(hosts).asked.items():
        (removed,) = (line["request"]["absent"] for line in asked if "request" in line)
        assert ("/var/lib/forewarn" in removed) is (name == "gone")


@pytest.mark.parametrize("state", ["present", "absent"])
@pytest.mark.parametrize("text", ["yes", "no"])
def test_all_on_the_command_line_at_once(play: Play, bools: list[str], state: str, text: str) -> None:
    values = {**TOGETHER, "forewarn_state": state, **dict.fromkeys(bools, text == "yes")}
    values.update({name: value for name, (value, _) in TEXTS.items()})
    native = play({"vm": {}}, "-e", json.dumps(values))
    assert native.code == 0, native.text[-6000:]
    given = [f"forewarn_state={state}", "forewarn_probe_listen=127.0.0.1:9780", *(f"{name}={text}" for name in bools)]
    given += [f"{name}={texts[0].replace(chr(34), chr(92) + chr(34))}" for name, (_, texts) in TEXTS.items()]
    texts = play({"vm": {}}, *(word for each in given for word in ("-e", each)))
    assert texts.code == 0, texts.text[-6000:]
    assert texts.asked == native.asked


def test_each_text_alone(play: Play) -> None:
    hosts, expected = {}, {}
    for name, (value, texts) in TEXTS.items():
        native = f"{name}-native"
        hosts[native] = {**TOGETHER, name: value}
        for number, text in enumerate(texts):
            hosts[f"{name}-{number}"] = {**TOGETHER, name: text}
            expected[f"{name}-{number}"] = native
    hosts["default"] = TOGETHER
    played = play(hosts, "--forks", "8")
    assert played.code == 0, played.text[-6000:]
    for name, native in expected.items():
        assert played.asked[name] == played.asked[native], name
        # One has this value anyway; the effect of the other shows only where nobody answers.
        if not name.startswith(("forewarn_policies", "forewarn_health_seconds")):
            assert played.asked[native] != played.asked["default"], native


def test_what_texts_become_in_the_files(play: Play) -> None:
    given = (
        "forewarn_interval=2",
        "forewarn_dry_run=no",
        "forewarn_hooks_write=/srv/app",
        "forewarn_hooks_need=network",
    )
    asked = play({"vm": {}}, *(word for each in given for word in ("-e", each))).asked["vm"]
    config = json.loads(file_of(asked, "config.json"))
    assert config["interval"] == 2
    assert "dry_run" not in config
    unit = file_of(asked, "forewarn.service").splitlines()
    assert [line for line in unit if line.startswith("ReadWritePaths")] == ["ReadWritePaths=/srv/app"]
    assert "IPAddressDeny=any" not in unit


def test_one_text_is_one_line_of_the_unit_whatever_is_in_it(play: Play) -> None:
    lines = ["BindPaths=/a:/b:rbind,/c:/d", "Environment=A=1,2"]
    hosts = {"one": {"forewarn_unit_settings": lines[0]}, "two": {"forewarn_unit_settings": "\n".join(lines)}}
    asked = play(hosts).asked
    assert file_of(asked["one"], "forewarn.service").count("BindPaths=/a:/b:rbind,/c:/d\n") == 1
    assert "\n".join(lines) in file_of(asked["two"], "forewarn.service")


def test_no_answer_is_waited_for_as_long_as_the_text_says(play: Play) -> None:
    played = play({"text": {"forewarn_health_seconds": "2"}, "native": {"forewarn_health_seconds": 2}}, sick=True)
    assert "within 2 s." in played.text
    assert played.asked["text"] == played.asked["native"]


def test_what_is_no_text_where_one_is_wanted_becomes_one(play: Play) -> None:
    """YAML makes digits a number, what looks like a date a date, and an empty text null."""
    unquoted = {"forewarn_vm_name": "42", "forewarn_api_version": "2020-07-01", "forewarn_endpoint": ""}
    variables = "".join(f"    {name}: {value}\n" for name, value in unquoted.items())
    played = play({"vm": {}}, book=f"- hosts: all\n  gather_facts: false\n  vars:\n{variables}{ROLES}")
    assert played.code == 0, played.text[-6000:]
    config = json.loads(file_of(played.asked["vm"], "config.json"))
    assert (config["vm_name"], config["api_version"], "endpoint" in config) == ("42", "2020-07-01", False)


@pytest.mark.parametrize(
    ("book", "state"),
    [
        pytest.param(PLAY, "present", id="by Ansible's validation"),
        pytest.param(CHECK, "present", id="on the control node"),
        pytest.param(UNVALIDATED, "present", id="by the role alone"),
        pytest.param(UNVALIDATED, "absent", id="before it removes anything"),
    ],
)
def test_what_cannot_be_taken_for_a_value_is_refused_before_a_vm_is_asked(
    play: Play, options: dict[str, dict[str, Any]], book: str, state: str
) -> None:
    wrong: dict[str, list[Any]] = {
        "bool": ["maybe", "", "2", [True]],
        "int": ["three", "3.5", "", True],
        "float": ["fast", "nan", "inf", "1s", "", True],
        "list": [{"a": 1}, 3.5, "[]", '["a","b"]'],
        "dict": ["text", "[1]", [1], 3],
    }
    hosts = {
        f"{name}-{number}": {name: value, "forewarn_state": state}
        for name, option in options.items()
        for number, value in enumerate(wrong.get(option["type"], []))
    }
    played = play(hosts, "--forks", "8", book=book)
    assert {name: asked for name, asked in played.asked.items() if asked} == {}
    said = {host: json.loads(result)["msg"] for host, result in _FATAL.findall(played.text)}
    assert said.keys() == hosts.keys()
    assert [said[host] for host in hosts if host.partition("-")[0] not in said[host]] == []


def test_a_refusal_names_the_variable_its_value_and_what_it_should_be(play: Play) -> None:
    played = play({"vm": {"forewarn_purge": "maybe", "forewarn_interval": "fast"}}, book=UNVALIDATED)
    ((_, result),) = _FATAL.findall(played.text)
    assert json.loads(result)["msg"].splitlines() == [
        'forewarn_purge is "maybe", which is not true or false.',
        'forewarn_interval is "fast", which is not a number.',
        "Nothing was changed.",
    ]


@pytest.mark.parametrize(("serial", "batches"), [("2", 2), ("1, 1, 34%", 3)])
def test_hosts_are_taken_as_many_at_a_time_as_the_text_says(play: Play, serial: str, batches: int) -> None:
    played = play({"a": {}, "b": {}, "c": {}}, "-e", f'forewarn_serial="{serial}"', book="forewarn.azure.rollout")
    assert played.code == 0, played.text[-6000:]
    assert played.text.count("PLAY [Roll out the runner]") == batches


@pytest.mark.parametrize("serial", ["fast", '[1,"25%"]', ""])
def test_a_number_of_hosts_that_is_none_is_refused_before_a_vm_is_asked(play: Play, serial: str) -> None:
    given = json.dumps({"forewarn_serial": serial})
    played = play({"a": {}, "b": {}}, "-e", given, book="forewarn.azure.rollout")
    assert played.code == 2
    ((_, result),) = _FATAL.findall(played.text)
    assert f"forewarn_serial is {json.dumps(serial)}. It has to be" in json.loads(result)["msg"]
    assert played.asked == {"a": [], "b": []}
