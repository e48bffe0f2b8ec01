# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a hook becomes: its arguments, its environment, what it reads, what is said about it."""

from __future__ import annotations

import json
import os
import pwd
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from forewarn.errors import InputError
from forewarn.events import Event
from forewarn.runner.hooks import commands
from forewarn.runner.hooks.commands import Command, HookContext, HookError, HookSettings, command, describe, kind
from forewarn.runner.hooks.needs import examine
from forewarn.system import programs as system_programs
from forewarn.system import trust
from forewarn.system.posix import programs
from hypothesis import example, given
from hypothesis import strategies as st

EVENT = Event(
    event_id="C7061BAC-0000-0000-0000-000000000000",
    event_type="Reboot",
    resource_type="VirtualMachine",
    resources=("web_0", "web_1"),
    event_status="Scheduled",
    not_before=datetime(2026, 5, 4, 12, 0, 0, 500000, timezone.utc),
    description="Virtual machine is being rebooted",
    event_source="Platform",
    duration_in_seconds=-1,
)
OCCASION = HookContext(
    phase="prepare",
    occasion=None,
    attempt=2,
    drill=False,
    event=EVENT,
    vm_name="web_0",
    decision={"output": "approve", "policy": "web-tier", "rule": "drain", "reason": "drained before the Reboot"},
    outcome=None,
    seconds_left=812.9,
    other_events=1,
)
NOTHING_KNOWN = HookContext("notify", "ended", 1, True, Event("E"), None, {}, None, None, 0)
SETTINGS = HookSettings()


def anything(path: str) -> None:
    """Find nothing wrong with a program."""


@pytest.fixture(autouse=True)
def _trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "check_program", anything)


def made(hook: dict[str, Any], occasion: HookContext = OCCASION, settings: HookSettings = SETTINGS) -> Command:
    return command(hook, occasion, settings, 90.5)


def refusal(hook: dict[str, Any], settings: HookSettings = SETTINGS) -> str:
    with pytest.raises(HookError) as error:
        made(hook, settings=settings)
    assert error.value.exit_code == 2
    return error.value.message


def request_of(hook: dict[str, Any], settings: HookSettings = SETTINGS) -> dict[str, Any]:
    content = made(hook, settings=settings).stdin
    request = json.loads(content.partition(b"\n")[0])
    assert isinstance(request, dict)
    return request


def test_the_environment_is_all_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", "/run/credentials/forewarn.service")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    assert made({"run": ["/bin/true"]}).environment == {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LANG": "C.UTF-8",
        "HOME": pwd.getpwuid(os.getuid()).pw_dir,
        "FOREWARN_EVENT_ID": "C7061BAC-0000-0000-0000-000000000000",
        "FOREWARN_EVENT_TYPE": "Reboot",
        "FOREWARN_EVENT_STATUS": "Scheduled",
        "FOREWARN_EVENT_SOURCE": "Platform",
        "FOREWARN_RESOURCES": "web_0,web_1",
        "FOREWARN_NOT_BEFORE": "2026-05-04T12:00:00.500000Z",
        "FOREWARN_DURATION_SECONDS": "-1",
        "FOREWARN_DESCRIPTION": "Virtual machine is being rebooted",
        "FOREWARN_VM_NAME": "web_0",
        "FOREWARN_PHASE": "prepare",
        "FOREWARN_ATTEMPT": "2",
        "FOREWARN_DRILL": "0",
        "FOREWARN_OUTPUT": "approve",
        "FOREWARN_POLICY": "web-tier",
        "FOREWARN_RULE": "drain",
        "FOREWARN_REASON": "drained before the Reboot",
        "FOREWARN_OUTCOME": "",
        "FOREWARN_OCCASION": "",
        "FOREWARN_SECONDS_LEFT": "812",
        "FOREWARN_OTHER_EVENTS": "1",
        "FOREWARN_TIMEOUT_SECONDS": "90",
    }


def test_every_variable_is_there_whatever_is_known() -> None:
    full, empty = made({"run": ["/bin/true"]}).environment, made({"run": ["/bin/true"]}, NOTHING_KNOWN).environment
    assert full.keys() == empty.keys()
    assert (empty["FOREWARN_VM_NAME"], empty["FOREWARN_SECONDS_LEFT"], empty["FOREWARN_DRILL"]) == ("", "", "1")
    assert empty["FOREWARN_OCCASION"] == "ended"
    late = made({"run": ["/bin/true"]}, OCCASION._replace(seconds_left=-5.0))
    assert late.environment["FOREWARN_SECONDS_LEFT"] == "0"


def test_user_without_an_entry_has_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 3_999_999_999)
    assert made({"run": ["/bin/true"]}).environment["HOME"] == "/"


def test_what_it_reads() -> None:
    content = made({"run": ["/bin/true"]}).stdin
    assert content.endswith(b"}\n")
    assert content.count(b"\n") == 1
    assert json.loads(content) == {
        "forewarn": {"schema": "hook", "version": 1},
        "phase": "prepare",
        "occasion": None,
        "attempt": 2,
        "drill": False,
        "event": EVENT.as_dict(),
        "vm_name": "web_0",
        "decision": {
            "output": "approve",
            "policy": "web-tier",
            "rule": "drain",
            "reason": "drained before the Reboot",
        },
        "outcome": None,
        "seconds_left": 812.9,
        "other_events": 1,
        "timeout_seconds": 90.5,
    }


TEXT = st.none() | st.text(st.characters() | st.sampled_from("\0\ud800\udc80,="))


@given(TEXT, TEXT, st.lists(st.text(st.characters(codec=None)), max_size=3))
@example("\0\ud800", "€" * 100_000, ["a,b"])
def test_whatever_the_service_sends_can_be_handed_on(
    description: str | None, reason: str | None, names: list[str]
) -> None:
    event = Event("E", description=description, resources=tuple(names))
    result = made({"run": ["/bin/true"]}, OCCASION._replace(event=event, decision={"reason": reason}))
    for name, value in result.environment.items():
        entry = f"{name}={value}".encode()  # no half character
        assert b"\0" not in entry
        assert len(entry) < 128 * 1024
    read = json.loads(result.stdin.decode("utf-8"))
    assert (read["event"].get("Description") is None) == (description is None)
    assert len(read["event"]["Resources"]) == len(names)
    assert result.stdin.count(b"\n") == 1
    if reason is not None and not any("\ud800" <= letter <= "\udfff" for letter in reason):
        assert read["decision"]["reason"] == reason


# run


def test_a_program_by_its_path() -> None:
    result = made({"run": ["/opt/drain", "--wait", "", "a b;c"], "timeout_seconds": 5})
    assert result.argv == ("/opt/drain", "--wait", "", "a b;c")
    assert result.timeout_seconds == 90.5


def test_a_program_by_its_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first, second, third = (tmp_path / name for name in "abc")
    for directory in (first, second, third):
        directory.mkdir()
    (first / "drain").write_text("")  # not executable
    (second / "drain").mkdir()  # not a file
    (third / "drain").write_text("")
    (third / "drain").chmod(0o755)
    monkeypatch.setattr(programs, "SEARCH_PATH", f"{tmp_path}/none:{first}:{second}:{third}")
    assert made({"run": ["drain", "x"]}).argv == (f"{third}/drain", "x")


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["no-such-program-anywhere"], "there is no program no-such-program-anywhere in /usr/local/sbin:"),
        (["bin/drain"], "neither a name nor an absolute path"),
        (["./drain"], "neither a name nor an absolute path"),
        ([""], "neither a name nor an absolute path"),
        (["/bin/true", "a\0b"], "NUL"),
        (["/bin/true", "\ud800"], "half a character"),
    ],
)
def test_a_command_that_cannot_be_run(argv: list[str], says: str) -> None:
    assert says in refusal({"run": argv})


def test_a_program_that_others_may_change_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "check_program", trust.check_program)
    program = tmp_path / "drain"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o777)
    with pytest.raises(HookError) as error:
        command({"run": [str(program)]}, OCCASION, SETTINGS, 5.0)
    assert "can be changed by others" in error.value.message
    assert "chmod" in error.value.message  # with what to do, for whoever reads the reason alone
    program.chmod(0o755)
    assert command({"run": [str(program)]}, OCCASION, SETTINGS, 5.0).argv == (str(program),)


@pytest.mark.parametrize("hook", [{"run": ["/opt/x"]}, {"run": ["true"]}, {"unit": "x.service", "action": "stop"}])
def test_checked_program_is_the_one_that_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, hook: dict[str, Any]
) -> None:
    for name in ("true", "systemctl"):
        (tmp_path / name).write_text("")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setattr(programs, "SEARCH_PATH", str(tmp_path))
    seen: list[str] = []
    monkeypatch.setattr(commands, "check_program", seen.append)
    result = command(hook, OCCASION, SETTINGS, 5.0)
    assert seen == [result.argv[0]]

    def refuse(path: str) -> None:
        raise InputError(f"{path} is bad", "mend it")

    monkeypatch.setattr(commands, "check_program", refuse)
    with pytest.raises(HookError, match=r"is bad\. mend it"):
        command(hook, OCCASION, SETTINGS, 5.0)


# unit


def test_a_unit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    systemctl = tmp_path / "systemctl"
    systemctl.write_text("")
    systemctl.chmod(0o755)
    monkeypatch.setattr(programs, "SEARCH_PATH", str(tmp_path))
    result = made({"unit": "haproxy.service", "action": "stop"})
    assert result.argv == (str(systemctl), "--no-ask-password", "stop", "--", "haproxy.service")
    assert result.environment["FOREWARN_EVENT_TYPE"] == "Reboot"
    monkeypatch.setattr(programs, "SEARCH_PATH", str(tmp_path / "none"))
    assert "there is no program systemctl" in refusal({"unit": "haproxy.service", "action": "stop"})


def test_unit_without_systemd_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_programs, "TARGET", "windows")
    hook = {"unit": "haproxy.service", "action": "stop"}
    assert refusal(hook).startswith("stop haproxy.service needs systemd")
    (missing,) = examine([("web", "drain", hook)], unit_problem=lambda *_: "systemd has no such unit").missing()
    assert missing.startswith("rule drain of policy web: stop haproxy.service needs systemd")


def test_argument_the_system_refuses_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_programs, "problem", lambda _program, arguments: f"not {arguments[0]}")
    assert refusal({"run": ["/bin/true", "a&b"]}) == "not a&b"


# http


def test_request_leaves_no_trace_in_arguments_or_environment(package: Path) -> None:
    hook = {"http": "https://hooks.example.com/secret-path?token=abc", "bearer": {"file": "/etc/forewarn/token"}}
    result = made(hook)
    assert result.argv[0] == sys.executable
    assert result.argv[-1] == str(package.parent)
    everything = " ".join([*result.argv, *result.environment, *result.environment.values()])
    for part in ("hooks.example.com", "secret-path", "abc", "/etc/forewarn/token", "FOREWARN_"):
        assert part not in everything
    first, _, rest = result.stdin.partition(b"\n")
    assert json.loads(first) == {
        "url": "https://hooks.example.com/secret-path?token=abc",
        "shown": "https://hooks.example.com/secret-path?token=…",
        "timeout_seconds": 90.5,
        "proxy": None,
        "ca_file": None,
        "bearer_file": "/etc/forewarn/token",
    }
    assert rest == made({"run": ["/bin/true"]}).stdin


def test_the_configuration_of_requests() -> None:
    settings = HookSettings("http://proxy.example.com:3128", "/etc/ssl/own.pem", "/run/credentials/forewarn.service")
    request = request_of({"http": "https://example.com/", "bearer": {"credential": "webhook"}}, settings)
    assert request["proxy"] == "http://proxy.example.com:3128"
    assert request["ca_file"] == "/etc/ssl/own.pem"
    assert request["bearer_file"] == "/run/credentials/forewarn.service/webhook"
    assert request_of({"http": "http://127.0.0.1:8080/"}, settings)["proxy"] is None
    assert request_of({"http": "http://localhost/"}, settings)["proxy"] is None
    assert request_of({"http": "http://example.com/"}, settings)["proxy"] is not None


def test_a_credential_that_the_runner_has_not_got() -> None:
    message = refusal({"http": "https://example.com/", "bearer": {"credential": "webhook"}})
    assert "add LoadCredential=webhook:" in message


def test_which_python_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "")
    assert "the path of this Python is unknown" in refusal({"http": "https://example.com/"})


# What is said about it


@pytest.mark.parametrize(
    ("hook", "which", "text"),
    [
        ({"run": ["/usr/local/bin/drain", "--wait"]}, "run", "run /usr/local/bin/drain --wait"),
        ({"run": ["/bin/x", "a b", "", 'q"', "\n"]}, "run", 'run /bin/x "a b" "" "q\\"" "\\n"'),
        ({"unit": "haproxy.service", "action": "stop"}, "unit", "stop haproxy.service"),
        ({"http": "https://hooks.example.com/x"}, "http", "http https://hooks.example.com/x"),
        ({"http": "https://me:pw@h.example.com:8443/x"}, "http", "http https://h.example.com:8443/x"),
        ({"http": "https://me:p@w@h/x@y"}, "http", "http https://h/x@y"),
        ({"http": "https://h/x?a=1&b=2#c"}, "http", "http https://h/x?a=…&b=…"),
        ({"http": "https://h?abc"}, "http", "http https://h?…"),
        ({"http": "https://h?a=b@c"}, "http", "http https://h?a=…"),
        ({"http": "nonsense"}, "http", "http nonsense"),
    ],
)
def test_a_hook_in_words(hook: dict[str, Any], which: str, text: str) -> None:
    assert kind(hook) == which
    assert describe(hook) == text


WORD = st.text("abcdefgh", min_size=1, max_size=6)


@given(WORD, WORD, st.lists(st.tuples(WORD, WORD), max_size=3))
def test_no_secret_of_a_url_is_shown(user: str, password: str, query: list[tuple[str, str]]) -> None:
    pairs = "&".join(f"{name}=SECRET-{value}" for name, value in query)
    text = describe({"http": f"https://SECRET-{user}:SECRET-{password}@h.example/p?{pairs}#SECRET"})
    assert "SECRET" not in text
    assert text.startswith("http https://h.example/p")
