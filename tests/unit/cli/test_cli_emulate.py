# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of the commands that drive an emulator: what they read, what they refuse, which hosts they may ask."""

from __future__ import annotations

import argparse
import socket
from typing import Any

import pytest
from forewarn.cli import main as cli
from forewarn.cli.emulate import command, fail, publish
from forewarn.cli.emulate.control import add_control_arguments, client_of
from forewarn.emulator.actions import schema
from forewarn.errors import InputError


def parsed(module: Any, *arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    module.add_arguments(parser)
    return parser.parse_args(arguments)


def options(module: Any) -> set[str]:
    return set(vars(parsed(module)))


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return the message about arguments that are refused, with exit code 2, before anybody is asked."""
    code: object = None
    try:
        code = cli.main(["emulate", *arguments, "--control", "http://127.0.0.1:9"])
    except SystemExit as exit_:
        code = exit_.code
    shown = capsys.readouterr()
    assert (code, shown.out) == (2, "")
    return shown.err


def test_publish_and_fail_cover_the_schema() -> None:
    event, failure, fault = (schema()["$defs"][name]["properties"] for name in ("event", "hardware_failure", "fault"))
    assert set(publish._KEYS) == set(event)
    assert set(publish._NOT_OF_FAILED_HARDWARE) == set(event) - set(failure)
    assert set(event) <= options(publish)
    assert set(fault) - {"status"} <= options(fail)


def test_commands_use_the_emulators_default_address() -> None:
    assert parsed(fail).control == f"http://{parsed(command).listen}"


@pytest.mark.parametrize(
    ("option", "text", "expected"),
    [
        ("--notice", "15m", 900.0),
        ("--notice", "1h30m", 5400.0),
        ("--notice", "7d", 604800.0),
        ("--notice", "2.5s", 2.5),
        ("--notice", "0", 0.0),
        ("--notice", "90", 90.0),
        ("--duration", "8", 8),
        ("--duration", "2m", 120),
        ("--duration", "-1", -1),
        ("--fields", '{"EventStatus": null}', {"EventStatus": None}),
        ("--gone-after", "1m", 60.0),
    ],
)
def test_values_are_read(option: str, text: str, expected: object) -> None:
    args = parsed(publish, option, text)
    assert getattr(args, option[2:].replace("-", "_")) == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["publish"], "--type is needed"),
        (["publish", "--type", "Freeze", "--notice", "soon"], "argument --notice: 'soon' is not a time"),
        (["publish", "--type", "Freeze", "--notice", "-5"], "argument --notice: '-5' is not a time"),
        (["publish", "--type", "Freeze", "--duration", "2.5s"], "argument --duration: '2.5s' is not a whole number"),
        (["publish", "--type", "Freeze", "--duration", "-2"], "argument --duration: '-2' is not a time"),
        (["publish", "--type", "Freeze", "--fields", "[]"], "argument --fields: '[]' is not a JSON object"),
        (["publish", "--type", "Freeze", "--fields", "{"], "argument --fields: '{' is not a JSON object"),
        (["publish", "--type", "Freeze", "--start-on", "x"], "argument --start-on: invalid choice"),
        (["publish", "--type", "Freeze", "--seen-by", "x"], "argument --seen-by: invalid choice"),
        (["publish", "--type", "Freeze", "--pause", "5s"], "Give --fault-domains as well"),
        (["publish", "--hardware-failure", "--notice", "5s"], "--notice does not go with --hardware-failure"),
        (["publish", "--hardware-failure", "--start-on", "not_before"], "--start-on does not go with"),
        (["publish", "--hardware-failure", "--fault-domains"], "not allowed with argument"),
        (["publish", "--type", ""], "the argument after --type is empty"),
        (["cancel"], "the following arguments are required: EVENT"),
        (["impact", "e"], "the following arguments are required: --duration"),
        (["fail"], "KIND is needed"),
        (["fail", "99"], "argument KIND: '99' is neither a status from 100 to 599 nor one of latency, "),
        (["fail", "503", "--times", "0"], "argument --times: '0' is not a number from 1 on"),
        (["fail", "503", "--for", "x"], "argument --for: 'x' is not a time"),
        (["fail", "503", "--request", "put"], "argument --request: invalid choice"),
        (["fail", "latency"], "--latency is needed"),
        (["fail", "503", "--clear"], "--clear ends all faults"),
        (["fail", "--clear", "--processed"], "--clear ends all faults"),
        (["time"], "--advance or --scale is needed"),
        (["time", "--scale", "fast"], "argument --scale: invalid float value: 'fast'"),
        (["log", "--since", "x"], "argument --since: 'x' is not a number from 1 on"),
        (["log", "--since", "1", "--clear"], "--since shows requests, and --clear forgets all of them"),
    ],
    ids=" ".join,
)
def test_bad_input_is_reported_by_its_option(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert message in refusal(capsys, *arguments)


@pytest.mark.parametrize(
    "arguments", [["--port", "0", "log"], ["--vm", "log", "log"], ["--json", "log"], ["--allow-remote", "reset"]]
)
def test_server_options_before_a_command_are_refused(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert cli.main(["emulate", *arguments]) == 2
    assert f"Write it like: forewarn emulate {arguments[-1]}" in capsys.readouterr().err


def client(control: str, *more: str) -> str:
    parser = argparse.ArgumentParser()
    add_control_arguments(parser)
    with client_of(parser.parse_args(["--control", control, *more])) as made:
        return made.base_url


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8254", "http://localhost:1/", "http://[::1]:8254", "http://127.1.2.3"]
)
def test_loopback_is_asked(url: str) -> None:
    assert client(url) == url.rstrip("/")


@pytest.mark.parametrize(
    "url", ["http://192.0.2.7:8254", "http://emulator.test", "http://localhost.test", "http://[::]"]
)
def test_others_are_asked_only_if_that_is_said(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: [(2, 1, 6, "", ("192.0.2.7", 0))])
    with pytest.raises(InputError, match="Add --allow-remote"):
        client(url)
    assert client(url, "--allow-remote") == url


def test_unresolvable_name_is_left_to_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object) -> None:
        raise socket.gaierror

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert client("http://emulator.test", "--allow-remote") == "http://emulator.test"


@pytest.mark.parametrize(
    "url",
    ["http://169.254.169.254", "http://169.254.169.254:80/", "http://[::ffff:a9fe:a9fe]", "http://2852039166"],
)
@pytest.mark.parametrize("more", [(), ("--allow-remote",)], ids=str)
def test_azures_own_service_is_never_asked(monkeypatch: pytest.MonkeyPatch, url: str, more: tuple[str, ...]) -> None:
    """Nor under another spelling, or a name that leads there."""
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: [(2, 1, 6, "", ("169.254.169.254", 0))])
    with pytest.raises(InputError, match=r"^--control: "):
        client(url, *more)


@pytest.mark.parametrize(
    "url",
    [
        *("127.0.0.1:8254", "https://127.0.0.1", "http://", "http://127.0.0.1:port", "http://[::1"),
        *("http://127.0.0.1:8254/vm/web_0", "http://127.0.0.1?x=1", "http://127.0.0.1#x", "http://a@127.0.0.1"),
    ],
)
def test_what_is_no_base_address_is_reported(url: str) -> None:
    with pytest.raises(InputError, match="is not the base address of an emulator"):
        client(url)
