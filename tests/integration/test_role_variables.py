# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role's variables as texts, which is what ``-e name=value`` and an inventory in INI make of every value.

The real ``ansible-playbook`` includes the role's part on the control node, and writes down what the other tasks of the
role would use: its variables as their types, the configuration and the unit. A text gives the same as the value that
YAML has for it. What the tasks do with it on hosts is tested in tests/lab.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from ansible.module_utils.parsing.convert_bool import BOOLEANS_FALSE, BOOLEANS_TRUE
from tools.adhoc import AdHoc
from tools.ansible_cores import CORE, ansible
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
ROLE = "forewarn.azure.forewarn"
PLAY = f"- {{hosts: all, gather_facts: false, roles: [{ROLE}]}}\n"
CHECK = f"""\
- hosts: all
  gather_facts: false
  tasks: [{{ansible.builtin.include_role: {{name: {ROLE}, tasks_from: check}}}}]
"""
UNVALIDATED = f"""\
- hosts: all
  gather_facts: false
  tasks: [{{ansible.builtin.include_role: {{name: {ROLE}, rolespec_validate: false}}}}]
"""
# After the role's part on the control node, everything that its other tasks take from variables.
WRITTEN_DOWN = f"""\
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.include_role: {{name: {ROLE}, tasks_from: check, public: true}}
    - ansible.builtin.copy:
        dest: "{{{{ inventory_hostname }}}}.json"
        content: "{{{{ written_down | to_json }}}}"
        mode: "0644"
      vars:
        written_down:
          typed: "{{{{ dict(names | zip(query('ansible.builtin.vars', *private))) }}}}"
          config: "{{{{ lookup('ansible.builtin.template', role ~ '/templates/config.json.j2') }}}}"
          unit: >-
            {{{{ lookup('ansible.builtin.template', role ~ '/templates/forewarn.service.j2',
                       template_vars={{'__forewarn_unit_checksum': ''}}) }}}}
"""
# What the VM would have answered.
ANSWERED = {
    "__forewarn_asked": {"stdout_lines": ["user=0", "systemd=252", "python3=/usr/bin/python3.11"]},
    "__forewarn_facts": {
        "ansible_facts": {"ansible_python": {"executable": "/usr/bin/python3.11", "version": {"major": 3, "minor": 11}}}
    },
    "__forewarn_encryption": {"rc": 0},
}
# Every option that is neither a text nor a bool: a value, and texts for it. None of them is the default.
TEXTS: dict[str, tuple[Any, list[str]]] = {
    "forewarn_interval": (2, ["2", "2.0", " 2 "]),
    "forewarn_probe_lead": (90.5, ["90.5", "90.50"]),
    "forewarn_keep": (5, ["5", " 5"]),
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
    "forewarn_credential_files": ({"token": "/etc/token"}, ['{"token":"/etc/token"}', "token=/etc/token"]),
    "forewarn_group_members": (["web_0", "web_1"], ["web_0,web_1", "web_0, web_1"]),
    "forewarn_group_store": (
        {"etcd": ["https://etcd-1:2379"], "user": "me", "password": {"file": "/etc/etcd"}},
        ['{"etcd":["https://etcd-1:2379"],"user":"me","password":{"file":"/etc/etcd"}}'],
    ),
    "forewarn_group_files": ({"ca_file": "/srv/ca.pem"}, ['{"ca_file":"/srv/ca.pem"}', "ca_file=/srv/ca.pem"]),
    "forewarn_hooks": (["drain", "more"], ["drain,more", " drain , more"]),
}
# Options without which another one has no effect.
TOGETHER = {
    "forewarn_probe_listen": "127.0.0.1:9780",
    "forewarn_policies": ["web"],
    "forewarn_group": "web",
    "forewarn_group_store": {"blob": "https://account.blob.core.windows.net/web", "identity": True},
}
FALSE = sorted({spelling(str(text)) for text in BOOLEANS_FALSE for spelling in (str.lower, str.upper, str.title)})
TRUE = sorted({spelling(str(text)) for text in BOOLEANS_TRUE for spelling in (str.lower, str.upper, str.title)})
# Before, ansible-core took a text that looks like JSON for what it means, and refused null where a text is wanted.
KEEPS_TYPES = CORE is None or int(CORE.partition(".")[2]) >= 19
_FATAL = re.compile(r"^fatal: \[(\S+?)\]: FAILED! => (\{.*\})$", re.MULTILINE)


class Played(NamedTuple):
    """How a playbook ended, and what the role took its variables for on each host."""

    code: int
    text: str
    taken: dict[str, dict[str, Any]]


Play = Callable[..., Played]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return Ansible's home directory, shared so that later runs reuse what the first has built."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def options(repository: Path) -> dict[str, dict[str, Any]]:
    spec = yaml.safe_load((repository / "roles" / "forewarn" / "meta" / "argument_specs.yml").read_text())
    found: dict[str, dict[str, Any]] = spec["argument_specs"]["main"]["options"]
    return found


@pytest.fixture(scope="module")
def bools(options: dict[str, dict[str, Any]]) -> list[str]:
    return [name for name, option in options.items() if option["type"] == "bool"]


@pytest.fixture
def play(
    tmp_path: Path, home: Path, collections_path: Path, repository: Path, options: dict[str, dict[str, Any]]
) -> Play:
    """Return a function that plays a playbook: hosts with their variables, then options of ``ansible-playbook``.

    Hosts are this machine where the role only writes down, and otherwise where nobody listens.
    """
    adhoc = AdHoc(tmp_path, collections_path)
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "web.yml").write_text(POLICY)
    for name in ("drain", "more"):
        (tmp_path / name).write_text("#!/bin/sh\n")
    number = 0

    def played(
        hosts: Mapping[str, Mapping[str, Any]], *arguments: str, book: str = WRITTEN_DOWN, ini: bool = False
    ) -> Played:
        nonlocal number
        number += 1
        directory = tmp_path / f"run-{number}"
        directory.mkdir()
        where = (
            {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
            if "written_down" in book
            else {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 9}
        )
        common = {
            **where,
            **ANSWERED,
            "role": str(repository / "roles" / "forewarn"),
            "names": list(options),
            "private": [f"__{name}" for name in options],
        }
        (tmp_path / "play.yml").write_text(book.replace('dest: "', f'dest: "{directory}/'))
        (tmp_path / "common.json").write_text(json.dumps(common))
        inventory = tmp_path / ("inventory.ini" if ini else "inventory.json")
        if ini:
            sections = (f"[{name}_]\n{name}\n[{name}_:vars]\n" + _as_ini(hosts[name]) for name in hosts)
            inventory.write_text("".join(sections))
        else:
            inventory.write_text(json.dumps({"all": {"hosts": {**hosts}}}))
        playbook = "play.yml" if "\n" in book else book
        environ = {**adhoc.environ, "ANSIBLE_HOME": str(home)}
        command = [ansible("ansible-playbook"), "-i", inventory.name, "-e", "@common.json", *arguments, playbook]
        process = run_program(*command, cwd=tmp_path, env=environ, timeout=300)
        taken = {path.stem: json.loads(path.read_text()) for path in directory.iterdir()}
        return Played(process.returncode, process.stdout + process.stderr, taken)

    return played


def _as_ini(variables: Mapping[str, Any]) -> str:
    return "".join(f"{name}={value}\n" for name, value in variables.items())


def test_no_option_is_left_out_here(options: dict[str, dict[str, Any]], bools: list[str]) -> None:
    texts = {name for name, option in options.items() if option["type"] in ("str", "path")}
    assert options.keys() - texts - set(bools) == TEXTS.keys()
    assert all(value != options[name]["default"] for name, (value, _) in TEXTS.items())


def test_every_text_for_true_and_false_is_that(play: Play, bools: list[str]) -> None:
    texts = {f"{'true' if text in TRUE else 'false'}-{text}": text for text in [*TRUE, *FALSE]}
    hosts = {name: dict.fromkeys(bools, text) for name, text in texts.items()}
    native = {str(value).lower(): dict.fromkeys(bools, value) for value in (True, False)}
    played = play({**native, **hosts}, "--forks", "8")
    assert played.code == 0, played.text[-6000:]
    assert {played.taken["true"]["typed"][name] for name in bools} == {True}
    assert {played.taken["false"]["typed"][name] for name in bools} == {False}
    assert [name for name in hosts if played.taken[name] != played.taken[name.partition("-")[0]]] == []


def test_an_inventory_in_ini_says_what_one_in_yaml_says(play: Play, bools: list[str]) -> None:
    """``[group:vars]`` of INI keeps every value as a text."""
    values = {**TOGETHER, **{name: value for name, (value, _) in TEXTS.items()}}
    hosts = {
        word: {
            **dict.fromkeys(bools, word),
            **{name: texts[0].strip() for name, (_, texts) in TEXTS.items()},
            "forewarn_probe_listen": "127.0.0.1:9780",
            "forewarn_group": "web",
        }
        for word in ("yes", "no")
    }
    native = play({word: {**values, **dict.fromkeys(bools, word == "yes")} for word in hosts})
    played = play(hosts, ini=True)
    assert native.code == played.code == 0, native.text[-3000:] + played.text[-3000:]
    assert played.taken == native.taken


@pytest.mark.parametrize("text", ["yes", "no"])
def test_all_on_the_command_line_at_once(play: Play, bools: list[str], text: str) -> None:
    values = {**TOGETHER, **dict.fromkeys(bools, text == "yes")}
    values.update({name: value for name, (value, _) in TEXTS.items()})
    native = play({"vm": {}}, "-e", json.dumps(values))
    assert native.code == 0, native.text[-6000:]
    given = ["forewarn_probe_listen=127.0.0.1:9780", "forewarn_group=web", *(f"{name}={text}" for name in bools)]
    given += [f"{name}={texts[0].replace(chr(34), chr(92) + chr(34))}" for name, (_, texts) in TEXTS.items()]
    texts = play({"vm": {}}, *(word for each in given for word in ("-e", each)))
    assert texts.code == 0, texts.text[-6000:]
    assert texts.taken == native.taken


STORE = {"etcd": ["https://etcd-1:2379"], "user": "me", "password": {"credential": "etcd"}}


@pytest.mark.parametrize(
    ("given", "refusal"),
    [
        ({"forewarn_group": "web"}, "forewarn_group needs forewarn_group_store"),
        ({"forewarn_group_store": {"etcd": ["https://etcd-1:2379"]}}, "forewarn_group_store needs forewarn_group"),
        ({"forewarn_group_members": ["web_0"]}, "The group of this host: group is missing."),
        ({**TOGETHER, "forewarn_group_files": {"cert": "/srv/c.pem"}}, "forewarn_group_files has cert."),
        (
            {"forewarn_group": "web", "forewarn_group_store": STORE, "forewarn_credentials": {"other": "x"}},
            "forewarn_group_store names the credential etcd, and neither",
        ),
        (
            {
                "forewarn_group": "web",
                "forewarn_group_store": {"etcd": ["https://etcd-1:2379"], "ca_file": "/etc/ca.pem"},
                "forewarn_group_files": {"ca_file": "ca.pem"},
            },
            "ca_file is set in forewarn_group_store and in forewarn_group_files.",
        ),
    ],
)
def test_half_a_group_is_refused(play: Play, given: dict[str, Any], refusal: str) -> None:
    played = play({"vm": {"forewarn_policies": ["web"], **given}})
    assert played.code == 2
    assert refusal in played.text.replace('\\"', '"'), played.text[-3000:]
    assert re.search("Nothing was (changed|rolled out)", played.text)


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
        assert played.taken[name] == played.taken[native], name
        if not name.startswith("forewarn_policies"):  # it has this value anyway
            assert played.taken[native] != played.taken["default"], native


def test_what_texts_become_in_the_files(play: Play) -> None:
    given = (
        "forewarn_interval=2",
        "forewarn_dry_run=no",
        "forewarn_hooks_write=/srv/app",
        "forewarn_hooks_need=network",
    )
    taken = play({"vm": {}}, *(word for each in given for word in ("-e", each))).taken["vm"]
    config = json.loads(taken["config"])
    assert config["interval"] == 2
    assert "dry_run" not in config
    unit = taken["unit"].splitlines()
    assert [line for line in unit if line.startswith("ReadWritePaths")] == ["ReadWritePaths=/srv/app"]
    assert "IPAddressDeny=any" not in unit


def test_one_text_is_one_line_of_the_unit_whatever_is_in_it(play: Play) -> None:
    lines = ["BindPaths=/a:/b:rbind,/c:/d", "Environment=A=1,2"]
    hosts = {"one": {"forewarn_unit_settings": lines[0]}, "two": {"forewarn_unit_settings": "\n".join(lines)}}
    taken = play(hosts).taken
    assert taken["one"]["unit"].count("BindPaths=/a:/b:rbind,/c:/d\n") == 1
    assert "\n".join(lines) in taken["two"]["unit"]


def test_what_is_no_text_where_one_is_wanted_becomes_one(play: Play) -> None:
    """YAML makes digits a number, what looks like a date a date, and an empty text null."""
    unquoted = {"forewarn_vm_name": "42", "forewarn_api_version": "2020-07-01"}
    if KEEPS_TYPES:
        unquoted["forewarn_endpoint"] = ""
    variables = "".join(f"    {name}: {value}\n" for name, value in unquoted.items())
    book = WRITTEN_DOWN.replace("  tasks:\n", f"  vars:\n{variables}  tasks:\n")
    played = play({"vm": {"ansible_connection": "local"}}, book=book)
    assert played.code == 0, played.text[-6000:]
    config = json.loads(played.taken["vm"]["config"])
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
        "list": [{"a": 1}, 3.5, *(["[]", '["a","b"]'] if KEEPS_TYPES else [])],
        "dict": ["text", "[1]", [1], 3],
    }
    hosts = {
        f"{name}-{number}": {name: value, "forewarn_state": state}
        for name, option in options.items()
        for number, value in enumerate(wrong.get(option["type"], []))
    }
    played = play(hosts, "--forks", "8", book=book)
    assert "UNREACHABLE" not in played.text  # which each would be that is asked
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


@pytest.mark.parametrize("value", ["hunter2", ["hunter2"]])
def test_a_refusal_shows_no_secret(play: Play, value: Any) -> None:
    played = play({"vm": {"forewarn_credentials": value}}, "-vvv", book=UNVALIDATED)
    assert "forewarn_credentials is something secret, which is not a dictionary" in played.text
    assert "hunter2" not in played.text


@pytest.mark.parametrize("name", ["../key", "a b", "", "x;reboot", "-n"])
def test_a_name_that_no_credential_can_have_is_refused(play: Play, name: str) -> None:
    for variable in ("forewarn_credentials", "forewarn_credential_files"):
        played = play({"vm": {variable: {name: "hunter2"}}}, book=UNVALIDATED)
        assert "The name of a credential consists of letters, digits" in played.text
        assert "hunter2" not in played.text
        assert "UNREACHABLE" not in played.text


@pytest.mark.parametrize(("serial", "batches"), [("2", 2), ("1, 1, 34%", 3)])
def test_hosts_are_taken_as_many_at_a_time_as_the_text_says(play: Play, serial: str, batches: int) -> None:
    arguments = ("-e", f'forewarn_serial="{serial}"', "--tags", "none")
    played = play({"a": {}, "b": {}, "c": {}}, *arguments, book="forewarn.azure.rollout")
    assert played.code == 0, played.text[-6000:]
    assert played.text.count("PLAY [Roll out the runner]") == batches


@pytest.mark.parametrize("serial", ["fast", '[1,"25%"]', ""])
def test_a_number_of_hosts_that_is_none_is_refused_before_a_vm_is_asked(play: Play, serial: str) -> None:
    given = json.dumps({"forewarn_serial": serial})
    played = play({"a": {}, "b": {}}, "-e", given, book="forewarn.azure.rollout")
    assert played.code == 2
    ((_, result),) = _FATAL.findall(played.text)
    assert f"forewarn_serial is {json.dumps(serial)}. It has to be" in json.loads(result)["msg"]
    assert "UNREACHABLE" not in played.text


@pytest.mark.parametrize(("allowed", "code"), [("Freeze", 0), ("Reboot", 2)])
def test_a_reference_limits_what_is_rolled_out(play: Play, tmp_path: Path, allowed: str, code: int) -> None:
    (tmp_path / "reference.yml").write_text(POLICY.replace("name: web", "name: company").replace("Freeze", allowed))
    variables = {**TOGETHER, "forewarn_policies": "web.yml", "forewarn_reference_policies": "reference.yml"}
    (tmp_path / "web.yml").write_text(POLICY)
    played = play({"vm": variables})
    assert played.code == code, played.text[-3000:]
    assert ("refuted: whatever" in played.text) == (code != 0)
