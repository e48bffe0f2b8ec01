# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role's variables as texts, which is what ``-e name=value`` and an inventory in INI make of every value.

The real ``ansible-playbook`` includes the role's part on the control node, and writes down what the other tasks of the
role would use: its variables as their types, the configuration and the unit. A text gives the same as the value that
YAML has for it. What the tasks do with it on hosts is tested in tests/lab.

A run of ``ansible-playbook`` takes longer than what it is asked to do: each test has hosts of its own, in a few runs
that all of them share.
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
from tools.fixtures.signing import make_key
from tools.sites.adhoc import AdHoc
from tools.sites.ansible_cores import CORE, ansible
from tools.sites.commands import run_program
from tools.suite import sizes

pytestmark = pytest.mark.in_turn(5)

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
UNIT = "/../../plugins/module_utils/forewarn/fleet/forewarn.service.j2"
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
    - ansible.builtin.debug: {{msg: "@{{{{ written_down | to_json }}}}"}}
      vars:
        written_down:
          typed: "{{{{ dict(names | zip(query('ansible.builtin.vars', *private))) }}}}"
          config: "{{{{ lookup('ansible.builtin.template', role ~ '/templates/config.json.j2') }}}}"
          unit: >-
            {{{{ lookup('ansible.builtin.template', role ~ '{UNIT}',
                       template_vars={{'__forewarn_unit_checksum': ''}}) }}}}
"""
# What builds the policies is imported once, not in the process that Ansible forks for each host.
PRELOAD = """\
from ansible.plugins.callback import CallbackBase
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.fleet import build, policies, proofs

class CallbackModule(CallbackBase):
    CALLBACK_VERSION, CALLBACK_NAME, CALLBACK_NEEDS_ENABLED = 2.0, "preload", True
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
    "forewarn_signers": (
        ["release@example.com ssh-ed25519 AAAA"],
        ["release@example.com ssh-ed25519 AAAA", "release@example.com ssh-ed25519 AAAA\n"],
    ),
    "forewarn_revoked_signers": (["ssh-ed25519 BBBB"], ["ssh-ed25519 BBBB"]),
    "forewarn_policy_source": (
        {"url": "https://policies.example.com/web.json", "interval": 30},
        ['{"url":"https://policies.example.com/web.json","interval":30}'],
    ),
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
    "forewarn_windows_python": ({"zip": "p.zip", "sha256": "0"}, ['{"zip":"p.zip","sha256":"0"}']),
    "forewarn_hooks": (["drain", "more"], ["drain,more", " drain , more"]),
}
# Options without which another one has no effect.
TOGETHER: dict[str, Any] = {
    "forewarn_probe_listen": "127.0.0.1:9780",
    "forewarn_policies": ["web"],
    "forewarn_group": "web",
    "forewarn_group_store": {"blob": "https://account.blob.core.windows.net/web", "identity": True},
    "forewarn_signers": ["somebody@example.com ssh-ed25519 CCCC"],
    "forewarn_signing_key": "key",
}
FALSE = sorted({spelling(str(text)) for text in BOOLEANS_FALSE for spelling in (str.lower, str.upper, str.title)})
TRUE = sorted({spelling(str(text)) for text in BOOLEANS_TRUE for spelling in (str.lower, str.upper, str.title)})
# Before, ansible-core took a text that looks like JSON for what it means, and refused null where a text is wanted.
KEEPS_TYPES = CORE is None or int(CORE.partition(".")[2]) >= 19
_RESULT = re.compile(r"^(ok|fatal): \[(\S+?)\](?:: FAILED!)? => (?=\{)", re.MULTILINE)
Hosts = Mapping[str, Mapping[str, Any]]


class PlaybookRun(NamedTuple):
    """How a playbook ended, what the role took its variables for on each host, and what it said where it failed."""

    code: int
    text: str
    taken: dict[str, dict[str, Any]]
    said: dict[str, str]


Play = Callable[..., PlaybookRun]


@pytest.fixture(scope="module")
def options(repository: Path) -> dict[str, dict[str, Any]]:
    spec = yaml.safe_load((repository / "roles" / "forewarn" / "meta" / "argument_specs.yml").read_text())
    found: dict[str, dict[str, Any]] = spec["argument_specs"]["main"]["options"]
    return found


@pytest.fixture(scope="module")
def bools(options: dict[str, dict[str, Any]]) -> list[str]:
    return [name for name, option in options.items() if option["type"] == "bool"]


@pytest.fixture(scope="module")
def play(
    tmp_path_factory: pytest.TempPathFactory,
    collections_path: Path,
    repository: Path,
    options: dict[str, dict[str, Any]],
) -> Play:
    """Return a function that plays a playbook: hosts with their variables, then options of ``ansible-playbook``.

    Hosts are this machine where the role only writes down, and otherwise where nobody listens.
    """
    directory = tmp_path_factory.mktemp("role")
    environ = {
        **AdHoc(directory, collections_path).environ,
        "ANSIBLE_CALLBACK_PLUGINS": str(directory),
        "ANSIBLE_CALLBACKS_ENABLED": "preload",
    }
    (directory / "preload.py").write_text(PRELOAD)
    (directory / "web").mkdir()
    (directory / "web" / "web.yml").write_text(POLICY)
    (directory / "web.yml").write_text(POLICY)
    for allowed in ("Freeze", "Reboot"):
        reference = POLICY.replace("name: web", "name: company").replace("Freeze", allowed)
        (directory / f"only-{allowed}.yml").write_text(reference)
    make_key(directory)
    for name in ("drain", "more"):
        (directory / name).write_text("#!/bin/sh\n")

    def played(
        hosts: Hosts, *arguments: str, book: str = WRITTEN_DOWN, inventories: Mapping[str, str] = {}
    ) -> PlaybookRun:
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
        (directory / "play.yml").write_text(book)
        (directory / "common.json").write_text(json.dumps(common))
        (directory / "inventory.json").write_text(json.dumps({"all": {"hosts": {**hosts}}}))
        where_hosts_are = ["-i", "inventory.json"]
        for name, text in inventories.items():
            (directory / name).write_text(text)
            where_hosts_are += ["-i", name]
        playbook = "play.yml" if "\n" in book else book
        command = [ansible("ansible-playbook"), *where_hosts_are, "-e", "@common.json", *arguments, playbook]
        process = run_program(*command, cwd=directory, env=environ, timeout=300)
        text = process.stdout + process.stderr
        said, taken = {}, {}
        for match in _RESULT.finditer(text):
            message = str(json.JSONDecoder().raw_decode(text, match.end())[0].get("msg", ""))
            if match[1] == "ok" and not message:
                continue  # a check that has found nothing to refuse, as -vvv shows it
            if match[1] == "ok":
                taken[match[2]] = json.loads(message.removeprefix("@"))
            else:
                said[match[2]] = message
        return PlaybookRun(process.returncode, text, taken, said)

    return played


def test_no_option_is_left_out_here(options: dict[str, dict[str, Any]], bools: list[str]) -> None:
    texts = {name for name, option in options.items() if option["type"] in ("str", "path")}
    assert options.keys() - texts - set(bools) == TEXTS.keys()
    assert all(value != options[name].get("default") for name, (value, _) in TEXTS.items())


# One run in which the role writes down what it takes variables for


@pytest.fixture(scope="module")
def written(play: Play, bools: list[str]) -> PlaybookRun:
    hosts = {
        **all_at_once(bools),
        **(one_at_a_time() if sizes.NAME != "small" else {}),
        **{f"group-{number}": {"forewarn_policies": ["web"], **given} for number, (given, _) in enumerate(HALF_GROUPS)},
        **{f"unverified-{number}": given for number, (given, _) in enumerate(UNVERIFIED)},
        **{f"only-{allowed}": limited(allowed) for allowed in ("Freeze", "Reboot")},
        "files": FILES,
        "two-lines": {"forewarn_unit_settings": "\n".join(LINES)},
    }
    return play(hosts, "--forks", "4", inventories={"inventory.ini": in_ini(bools), "inventory.yml": UNQUOTED})


def all_at_once(bools: list[str]) -> dict[str, dict[str, Any]]:
    """Return hosts with every option as YAML has it, for each bool, and hosts with the same as texts.

    At size small these spell true and false in some ways, which depend on the seed; at full each bool in each way.
    """
    native: dict[str, Any] = {**TOGETHER, **{name: value for name, (value, _) in TEXTS.items()}}
    hosts = {"together": dict(TOGETHER)}
    for word, spellings in (("yes", TRUE), ("no", FALSE)):
        hosts[f"all-{word}"] = {**native, **dict.fromkeys(bools, word == "yes")}
        step, count = (len(bools), SPELT) if sizes.NAME == "small" else (1, len(spellings))
        for number in range(count):
            first = (number + sizes.SEED * count) * step
            text = {name: texts[(number + sizes.SEED) % len(texts)] for name, (_, texts) in TEXTS.items()}
            spelt = {name: spellings[(first + place) % len(spellings)] for place, name in enumerate(bools)}
            hosts[f"all-{word}-{number}"] = {**TOGETHER, **text, **spelt}
    return hosts


SPELT = 1  # hosts of size small


def test_text_and_typed_options_mean_the_same(written: PlaybookRun, bools: list[str]) -> None:
    default = written.taken["together"]["typed"]
    for word in ("yes", "no"):
        native = written.taken[f"all-{word}"]
        assert {native["typed"][name] for name in bools} == {word == "yes"}
        # The policies have this value anyway.
        assert [name for name in TEXTS if native["typed"][name] == default[name]] == ["forewarn_policies"]
        for name in all_at_once(bools):
            if name.startswith(f"all-{word}-"):
                assert written.taken[name] == native, name


def one_at_a_time() -> dict[str, dict[str, Any]]:
    hosts = {}
    for name, (value, texts) in TEXTS.items():
        hosts[f"{name}-native"] = {**TOGETHER, name: value}
        hosts.update({f"{name}-{number}": {**TOGETHER, name: text} for number, text in enumerate(texts)})
    return hosts


@pytest.mark.full
def test_each_text_alone(written: PlaybookRun) -> None:
    for name in one_at_a_time():
        option = name.partition("-")[0]
        native = written.taken[f"{option}-native"]
        assert written.taken[name] == native, name
        if option != "forewarn_policies":  # it has this value anyway
            assert native != written.taken["together"], name


def in_ini(bools: list[str]) -> str:
    """Return hosts whose variables are in ``[group:vars]`` of INI, which keeps every value as a text."""
    lines = []
    for word in ("yes",) if sizes.NAME == "small" else ("yes", "no"):
        variables = {
            **dict.fromkeys(bools, word),
            **{name: texts[0].strip() for name, (_, texts) in TEXTS.items()},
            "forewarn_probe_listen": "127.0.0.1:9780",
            "forewarn_group": "web",
            "forewarn_signing_key": "key",
        }
        lines += [f"[{word}_]", f"ini-{word}", f"[{word}_:vars]"]
        lines += [f"{name}={value}" for name, value in variables.items()]
    return "\n".join(lines)


@pytest.mark.parametrize("word", ["yes", pytest.param("no", marks=pytest.mark.full)])
def test_ini_and_yaml_inventories_mean_the_same(written: PlaybookRun, word: str) -> None:
    assert written.taken[f"ini-{word}"] == written.taken[f"all-{word}"]


@pytest.mark.parametrize("text", ["yes", pytest.param("no", marks=pytest.mark.full)])
def test_all_on_the_command_line_at_once(play: Play, written: PlaybookRun, bools: list[str], text: str) -> None:
    given = ["forewarn_probe_listen=127.0.0.1:9780", "forewarn_group=web", "forewarn_signing_key=key"]
    given += [f"{name}={text}" for name in bools]
    for name, (_, texts) in TEXTS.items():
        value = texts[0].replace(chr(34), chr(92) + chr(34))
        given.append(f'{name}="{value}"' if " " in value else f"{name}={value}")
    played = play({"vm": {}}, *(word for each in given for word in ("-e", each)))
    assert played.code == 0, played.text[-6000:]
    assert played.taken["vm"] == written.taken[f"all-{text}"]


UNVERIFIED: list[tuple[dict[str, Any], str]] = [
    ({"forewarn_revoked_signers": ["ssh-ed25519 BBBB"]}, "forewarn_revoked_signers needs forewarn_signers"),
    (
        {"forewarn_policy_source": "https://policies.example.com/web.json"},
        "forewarn_policy_source needs forewarn_signers",
    ),
    ({"forewarn_signers": ["a ssh-ed25519 AAAA"]}, "The host takes only signed policies, and these are not signed."),
    ({"forewarn_signing_key": "none"}, "none"),
    (
        {
            **TOGETHER,
            "forewarn_policy_source": {"url": "https://a.example.com/b", "sas": {"credential": "sas"}},
            "forewarn_credentials": {"other": "x"},
        },
        "forewarn_policy_source names the credential sas, and neither",
    ),
]


@pytest.mark.parametrize("number", range(len(UNVERIFIED)))
def test_policies_nobody_could_verify_are_refused(written: PlaybookRun, number: int) -> None:
    assert UNVERIFIED[number][1] in written.said[f"unverified-{number}"]
    assert f"unverified-{number}" not in written.taken


STORE = {"etcd": ["https://etcd-1:2379"], "user": "me", "password": {"credential": "etcd"}}
HALF_GROUPS: list[tuple[dict[str, Any], str]] = [
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
]


@pytest.mark.parametrize("number", range(len(HALF_GROUPS)))
def test_half_a_group_is_refused(written: PlaybookRun, number: int) -> None:
    said = written.said[f"group-{number}"]
    assert HALF_GROUPS[number][1] in said.replace('\\"', '"')
    assert re.search("Nothing was (changed|rolled out)", said)
    assert f"group-{number}" not in written.taken


FILES = {
    "forewarn_interval": "2",
    "forewarn_dry_run": "no",
    "forewarn_hooks_write": "/srv/app",
    "forewarn_hooks_need": "network",
    "forewarn_unit_settings": "BindPaths=/a:/b:rbind,/c:/d",
}


def test_what_texts_become_in_the_files(written: PlaybookRun) -> None:
    taken = written.taken["files"]
    config = json.loads(taken["config"])
    assert config["interval"] == 2
    assert "dry_run" not in config
    unit = taken["unit"].splitlines()
    assert [line for line in unit if line.startswith("ReadWritePaths")] == ["ReadWritePaths=/srv/app"]
    assert "IPAddressDeny=any" not in unit


LINES = ["BindPaths=/a:/b:rbind,/c:/d", "Environment=A=1,2"]


def test_text_is_one_line_of_the_unit(written: PlaybookRun) -> None:
    assert written.taken["files"]["unit"].count(f"{LINES[0]}\n") == 1
    assert "\n".join(LINES) in written.taken["two-lines"]["unit"]


UNQUOTED = f"""\
all:
  hosts:
    unquoted:
      forewarn_vm_name: 42
      forewarn_api_version: 2020-07-01
{"      forewarn_endpoint:" if KEEPS_TYPES else ""}
"""


def test_unquoted_yaml_scalar_becomes_a_text(written: PlaybookRun) -> None:
    """YAML makes digits a number, what looks like a date a date, and an empty text null."""
    config = json.loads(written.taken["unquoted"]["config"])
    assert (config["vm_name"], config["api_version"], "endpoint" in config) == ("42", "2020-07-01", False)


def limited(allowed: str) -> dict[str, Any]:
    return {**TOGETHER, "forewarn_policies": "web.yml", "forewarn_reference_policies": f"only-{allowed}.yml"}


def test_a_reference_limits_what_is_rolled_out(written: PlaybookRun) -> None:
    assert "only-Freeze" in written.taken
    assert "only-Reboot" not in written.taken
    assert "refuted: whatever" in written.said["only-Reboot"]


# Runs that the role refuses before a VM is asked


# By type: values that Ansible refuses itself where it validates a role's arguments, and those that it converts.
WRONG: dict[str, tuple[list[Any], list[Any]]] = {
    "bool": (["maybe", "", "2", [True]], []),
    "int": (["three", "3.5", ""], [True]),
    "float": (["fast", "1s", ""], ["nan", "inf", True]),
    "list": ([{"a": 1}], [3.5, *(["[]", '["a","b"]'] if KEEPS_TYPES else [])]),
    "dict": (["text", "[1]", [1], 3], []),
}


def wrong(options: dict[str, dict[str, Any]], state: str) -> dict[str, dict[str, Any]]:
    """Return hosts with values that an option cannot have: at size small many options at once, at full each alone."""
    hosts: dict[str, dict[str, Any]] = {}
    for name, option in options.items():
        for judge, values in zip(("ansible", "role"), WRONG.get(option["type"], ([], [])), strict=True):
            for number, value in enumerate(values):
                alone = sizes.NAME != "small" or "choices" in option  # these values are no choices either
                host = f"{state}-{judge}-{number}" + (f"-{name}" if alone else "")
                hosts.setdefault(host, {"forewarn_state": state})[name] = value
    return hosts


def names_all(said: str, variables: Mapping[str, Any]) -> bool:
    return all(re.search(rf"\b{name}\b", said) for name in variables if name != "forewarn_state")


@pytest.mark.parametrize(
    "book", [pytest.param(PLAY, id="by Ansible's validation"), pytest.param(CHECK, id="on the control node")]
)
def test_invalid_values_are_refused_before_connecting(
    play: Play, options: dict[str, dict[str, Any]], book: str
) -> None:
    hosts = wrong(options, "present")
    played = play(hosts, "--forks", "4", book=book)
    assert "UNREACHABLE" not in played.text  # which each would be that is asked
    assert played.said.keys() == hosts.keys()
    assert [host for host in hosts if not names_all(played.said[host], hosts[host])] == [], played.text


NAMES = ["../key", "a b", "", "x;reboot", "-n"]
CREDENTIALS = ("forewarn_credentials", "forewarn_credential_files")


@pytest.fixture(scope="module")
def refused(play: Play, options: dict[str, dict[str, Any]]) -> PlaybookRun:
    """Return what the role refuses by itself, without Ansible's validation, with all that ``-vvv`` shows."""
    hosts = {
        **wrong(options, "present"),
        **wrong(options, "absent"),
        "sentences": {"forewarn_purge": "maybe", "forewarn_interval": "fast"},
        "secret-text": {"forewarn_credentials": "hunter2"},
        "secret-list": {"forewarn_credentials": ["hunter2"]},
        **{
            f"{variable}-{number}": {variable: {name: "hunter2"}}
            for variable in CREDENTIALS
            for number, name in enumerate(NAMES)
        },
    }
    played = play(hosts, "--forks", "4", "-vvv", book=UNVALIDATED)
    assert "UNREACHABLE" not in played.text
    assert played.said.keys() == hosts.keys()
    return played


@pytest.mark.parametrize("state", ["present", "absent"], ids=["present", "before it removes anything"])
def test_the_role_alone_refuses_it_too(refused: PlaybookRun, options: dict[str, dict[str, Any]], state: str) -> None:
    hosts = wrong(options, state)
    assert [host for host in hosts if not names_all(refused.said[host], hosts[host])] == []


def test_refusal_names_variable_value_and_expected_type(refused: PlaybookRun) -> None:
    assert refused.said["sentences"].splitlines() == [
        'forewarn_purge is "maybe", which is not true or false.',
        'forewarn_interval is "fast", which is not a number.',
        "Nothing was changed.",
    ]


def test_a_refusal_shows_no_secret(refused: PlaybookRun) -> None:
    for host in ("secret-text", "secret-list"):
        assert "forewarn_credentials is something secret, which is not a dictionary" in refused.said[host]
    assert "hunter2" not in refused.text


@pytest.mark.parametrize("variable", CREDENTIALS)
def test_invalid_credential_name_is_refused(refused: PlaybookRun, variable: str) -> None:
    for number in range(len(NAMES)):
        assert "The name of a credential consists of letters, digits" in refused.said[f"{variable}-{number}"]


@pytest.mark.parametrize(("serial", "batches"), [("2", 2), ("1, 1, 34%", 3)])
def test_serial_sets_the_size_of_batches(play: Play, serial: str, batches: int) -> None:
    arguments = ("-e", f'forewarn_serial="{serial}"', "--tags", "none")
    played = play({"a": {}, "b": {}, "c": {}}, *arguments, book="forewarn.azure.rollout")
    assert played.code == 0, played.text[-6000:]
    assert played.text.count("PLAY [Roll out the runner]") == batches


@pytest.mark.parametrize("serial", ["fast", '[1,"25%"]', ""])
def test_invalid_serial_is_refused_before_connecting(play: Play, serial: str) -> None:
    given = json.dumps({"forewarn_serial": serial})
    played = play({"a": {}, "b": {}}, "-e", given, book="forewarn.azure.rollout")
    assert played.code == 2
    (said,) = played.said.values()
    assert f"forewarn_serial is {json.dumps(serial)}. It has to be" in said
    assert "UNREACHABLE" not in played.text
