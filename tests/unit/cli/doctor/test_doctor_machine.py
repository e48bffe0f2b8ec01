# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn doctor`` on the machine: unit, platform, clock; what hooks name; the running service. Each both ways."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from forewarn import __version__
from forewarn.cli.doctor import policy
from forewarn.cli.doctor.check import NOT_CHECKED, OK, TROUBLE, WARNING, Check
from forewarn.cli.doctor.linux import unit as doctor_unit
from forewarn.cli.doctor.linux.checks import orders
from forewarn.cli.doctor.linux.machine import run_command
from forewarn.cli.doctor.platform import platform
from forewarn.compiler.policies import load_policies
from forewarn.imds.azure import ASSET_TAG_PATH, AZURE_ASSET_TAG
from forewarn.policy.artifact import load, with_serial, with_source
from forewarn.policy.engine import PolicySet
from tools.worlds.fake_machines import UNIT, FakeMachine

UPTIME = 10_000.0  # of the machine; its runner was started at 1000


@pytest.mark.parametrize(
    ("properties", "state", "said", "hint"),
    [
        ({}, OK, "is enabled and runs", ""),
        ({"ActiveState": "reloading"}, OK, "is enabled and runs", ""),
        ({"LoadState": "not-found"}, TROUBLE, "no usable forewarn.service (not-found", "role"),
        ({"LoadState": "bad-setting"}, TROUBLE, "(bad-setting", "role"),
        ({"LoadState": "masked"}, TROUBLE, "(masked", "role"),
        ({"ActiveState": "inactive"}, TROUBLE, "nothing polls", "systemctl enable --now forewarn.service"),
        ({"ActiveState": "failed", "Result": "exit-code"}, TROUBLE, "failed (exit-code)", "journalctl"),
        (
            {"ActiveState": "activating", "SubState": "auto-restart", "Result": "oom-kill"},
            TROUBLE,
            "oom-kill",
            "journal",
        ),
        ({"ActiveState": "activating", "SubState": "start", "NRestarts": "9"}, TROUBLE, "restarted 9 times", "journal"),
        ({"ActiveState": "activating", "SubState": "start"}, WARNING, "is starting", "again"),
        (
            {"NRestarts": "3", "ActiveEnterTimestampMonotonic": "9990000000"},
            TROUBLE,
            "restarted 3 times, 10 s",
            "journal",
        ),
        ({"NRestarts": "3"}, WARNING, "restart it 3 times", "journalctl"),
        (
            {"NRestarts": "2", "ActiveEnterTimestampMonotonic": "9990000000"},
            WARNING,
            "restart it 2 times",
            "journalctl",
        ),
        ({"UnitFileState": "disabled"}, TROUBLE, "after a reboot this VM has no runner", "systemctl enable "),
        ({"UnitFileState": "enabled-runtime"}, TROUBLE, "is enabled-runtime: after a reboot", "systemctl enable "),
        ({"UnitFileState": "linked"}, TROUBLE, "is linked: after a reboot", "systemctl enable "),
        ({"UnitFileState": "static"}, OK, "is enabled and runs", ""),
        ({"UnitFileState": ""}, TROUBLE, "not enabled", "systemctl enable "),
        ({"NeedDaemonReload": "yes"}, WARNING, "older than its unit file", "daemon-reload"),
    ],
)
def test_the_unit(tmp_path: Path, properties: dict[str, str], state: str, said: str, hint: str) -> None:
    machine = FakeMachine(tmp_path)
    machine.units[UNIT].update(properties)
    check = doctor_unit.unit(machine, UNIT, UPTIME)
    assert check.state == state
    assert said in check.text
    assert hint in check.hint
    assert bool(check.hint) == (state != OK)


def test_without_systemd(tmp_path: Path) -> None:
    machine = FakeMachine(tmp_path, systemd=False)
    assert doctor_unit.unit(machine, UNIT, UPTIME).state == NOT_CHECKED
    assert doctor_unit.systemd(machine).state == NOT_CHECKED
    assert doctor_unit.systemd(FakeMachine(tmp_path / "with")) == Check("systemd", OK, "252")


@pytest.mark.parametrize(("answer", "state"), [("yes", OK), ("no", TROUBLE), ("", NOT_CHECKED), (None, NOT_CHECKED)])
def test_the_clock(tmp_path: Path, answer: str | None, state: str) -> None:
    check = doctor_unit.clock(FakeMachine(tmp_path, clock=answer))
    assert (check.state, bool(check.hint)) == (state, state != OK)


DEFAULT = "http://169.254.169.254"


@pytest.mark.parametrize(
    ("tag", "option", "endpoint", "state"),
    [
        (AZURE_ASSET_TAG, None, DEFAULT, OK),
        (AZURE_ASSET_TAG, "auto", DEFAULT, OK),
        ("No Asset Tag", None, DEFAULT, TROUBLE),
        (None, None, DEFAULT, TROUBLE),
        (None, "auto", DEFAULT, TROUBLE),
        (None, "http://127.0.0.1:1", "http://127.0.0.1:1", NOT_CHECKED),
    ],
)
def test_the_platform(tmp_path: Path, tag: str | None, option: str | None, endpoint: str, state: str) -> None:
    machine = FakeMachine(tmp_path)
    if tag is not None:
        machine.write(ASSET_TAG_PATH, f"{tag}\n")
    assert platform(machine, option, endpoint).state == state


def test_commands_that_cannot_be_run(tmp_path: Path) -> None:
    assert run_command([str(tmp_path / "nothing")]) is None
    answer = run_command(["sh", "-c", "echo $LANG; exit 3"])
    assert answer == (3, "C\n")


# What hooks name


def policies(tmp_path: Path, *hooks: str) -> PolicySet:
    path = tmp_path / "p.yml"
    listed = "".join(f"        - {hook}\n" for hook in hooks)
    prepare = f"      prepare:\n{listed}" if hooks else ""
    path.write_text(f"name: p\nrule:\n  match:\n    - id: all\n      output: approve\n{prepare}")
    return PolicySet(load_policies([path]))


def test_without_hooks(tmp_path: Path) -> None:
    machine = FakeMachine(tmp_path)
    assert policy.hooks(machine, policies(tmp_path), UNIT) == Check("hooks", OK, "the policy has none")
    assert machine.ran == []


BEARER = "{{http: 'https://example.com/x', bearer: {{{}}}}}"


@pytest.mark.parametrize(
    ("hook", "missing"),
    [
        ("{run: [/bin/true]}", ""),
        ("{run: ['true']}", ""),
        ("{run: [/nowhere/drain]}", "there is no program /nowhere/drain"),
        ("{unit: drain.service, action: start}", ""),
        ("{unit: gone.service, action: start}", "unit gone.service: systemd knows no such unit"),
        ("{http: 'https://example.com/x'}", ""),
        (BEARER.format("file: /etc/nothing"), "/etc/nothing"),
        (BEARER.format("credential: plain"), ""),
        (BEARER.format("credential: sealed"), ""),
        (BEARER.format("credential: inherited"), ""),
        (BEARER.format("credential: set"), ""),
        (BEARER.format("credential: forgotten"), "there is no credential forgotten"),
        (
            BEARER.format("credential: lost"),
            "the credential lost of forewarn.service is to come from /etc/lost, which does not exist",
        ),
    ],
)
def test_what_hooks_name(tmp_path: Path, hook: str, missing: str) -> None:
    machine = FakeMachine(tmp_path / "root")
    machine.units["drain.service"] = {"LoadState": "loaded"}
    machine.write("/etc/token", "x")
    machine.unit_files[UNIT] = (
        "# /etc/systemd/system/forewarn.service\n[Service]\nLoadCredential=forgotten:/etc/token\nLoadCredential=\n"
        "LoadCredential=plain:/etc/token\nLoadCredentialEncrypted=sealed:/etc/token\nLoadCredential=inherited\n"
        "# /etc/systemd/system/forewarn.service.d/x.conf\n[Service]\nLoadCredential=lost:/etc/lost\n"
        "SetCredential=set:x\n"
    )
    check = policy.hooks(machine, policies(tmp_path, "{run: [/bin/true]}", hook), UNIT)
    assert (check.state, check.hint != "") == ((TROUBLE, True) if missing else (OK, False)), check
    assert missing in check.text


def test_a_program_that_others_can_change(tmp_path: Path) -> None:
    program = tmp_path / "drain"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o777)
    check = policy.hooks(FakeMachine(tmp_path / "root"), policies(tmp_path, f"{{run: [{program}]}}"), UNIT)
    assert check.state == TROUBLE
    assert str(program) in check.text


# The policy and the runner


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (None, ""),
        (
            {"repository": "https://git.example.com/p", "ref": "v1", "commit": "c0ffee" * 6, "modified": False},
            ", from https://git.example.com/p, commit c0ffeec0ffee",
        ),
        (
            {"repository": None, "ref": None, "commit": "c0ffee", "modified": True},
            ", commit c0ffee with changes that were not committed",
        ),
    ],
)
def test_the_policy_and_where_it_came_from(tmp_path: Path, source: dict[str, Any] | None, text: str) -> None:
    policies(tmp_path)
    raw = json.dumps(load_policies([tmp_path / "p.yml"]).data).encode()
    known = PolicySet(load(with_source(raw, None if source is None else {**source, "paths": ["p.yml"]})))
    assert policy.policy(known, None) == Check("policy", OK, f"p; {known.digest[:19]}…{text}")


def test_policies_of_the_configuration_are_refused(tmp_path: Path) -> None:
    policies(tmp_path)
    raw = json.dumps(load_policies([tmp_path / "p.yml"]).data).encode()
    known = PolicySet(load(with_serial(raw, 7)))
    assert policy.policy(known, None) == Check("policy", OK, f"p; {known.digest[:19]}…, serial 7")
    text = "the policies that were in use last are in use: nobody has signed it"
    assert policy.policy(known, "nobody has signed it") == Check("policy", TROUBLE, text)


def report(**changes: Any) -> dict[str, Any]:
    """Return what ``forewarn status --json`` says of a healthy runner, with changes of its runner or of the whole."""
    runner = {
        "condition": "running",
        "text": "running since 2026-11-21T14:05:11Z",
        "version": __version__,
        "config": "sha256:c",
        "policy": "sha256:p",
        "reload_problem": None,
        "policy_problem": None,
        "dry_run": False,
    }
    disk = {
        "config": "/etc/forewarn/config.json",
        "digest": "sha256:c",
        "policy": "sha256:p",
        "error": None,
        "refused": None,
        "program": "/opt/forewarn/forewarn.pyz",
        "version": __version__,
    }
    disk.update({key[5:]: value for key, value in changes.items() if key.startswith("disk_")})
    whole = {
        "on_disk": disk,
        "state_directory": "/var/lib/forewarn",
        "service": {"state": "ok", "text": "ok"},
        "journal": {"trouble": None, "read": True},
        "unkept": {"number": 0, "events": ""},
        "damaged": [],
        "failing_recoveries": [],
    }
    whole.update({key: value for key, value in changes.items() if key in whole})
    return {**whole, "runner": {**runner, **{key: value for key, value in changes.items() if key in runner}}}


@pytest.mark.parametrize(
    ("changes", "state", "said"),
    [
        ({}, OK, f"forewarn {__version__}, running since"),
        ({"condition": "not-running", "text": "not running: stopped by SIGTERM"}, TROUBLE, "SIGTERM"),
        ({"condition": "not-responding", "text": "not responding"}, TROUBLE, "not responding"),
        (
            {"service": {"state": "failing", "text": "does not answer: 403"}},
            TROUBLE,
            "the service does not answer: 403",
        ),
        ({"service": {"state": "waiting", "text": "is asked"}}, WARNING, "no answer of the service yet"),
        ({"reload_problem": "policy.json: digest"}, TROUBLE, "its last reload was refused: policy.json: digest"),
        (
            {"version": "0.0.1"},
            WARNING,
            f"forewarn 0.0.1 is running, and /opt/forewarn/forewarn.pyz is now {__version__}",
        ),
        ({"disk_digest": "sha256:d"}, WARNING, "the configuration /etc/forewarn/config.json has changed"),
        ({"disk_policy": "sha256:q"}, WARNING, "the policies on disk have changed"),
        ({"disk_error": "policy.json: No such file"}, TROUBLE, "would not start again: policy.json: No such file"),
        ({"disk_version": None}, TROUBLE, "its program /opt/forewarn/forewarn.pyz is gone"),
        ({"on_disk": None}, OK, f"forewarn {__version__}, running since"),
        ({"dry_run": True}, WARNING, "approves nothing"),
    ],
)
def test_the_runner(changes: dict[str, Any], state: str, said: str) -> None:
    check = policy.runner(report(**changes), orders(UNIT))
    assert (check.state, bool(check.hint)) == (state, state != OK)
    assert said in check.text


@pytest.mark.parametrize(
    ("changes", "state", "said"),
    [
        ({}, OK, "/var/lib/forewarn"),
        ({"journal": {"trouble": "No space left on device", "read": True}}, TROUBLE, "No space left on device"),
        ({"unkept": {"number": 2, "events": "A, B"}}, TROUBLE, "A, B"),
        ({"damaged": [{"text": "the record of A is damaged"}]}, TROUBLE, "the record of A is damaged"),
        ({"failing_recoveries": [{}]}, WARNING, "1 recovery fails"),
        ({"failing_recoveries": [{}, {}]}, WARNING, "2 recoveries fail"),
    ],
)
def test_the_journal(changes: dict[str, Any], state: str, said: str) -> None:
    check = policy.journal(report(**changes))
    assert (check.state, bool(check.hint)) == (state, state != OK)
    assert said in check.text
