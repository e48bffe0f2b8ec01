# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hooks of a kind in the runner: their process, what they need on the VM, and what is said about them."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest
from forewarn import hook_kinds
from forewarn.errors import InputError
from forewarn.runner.hooks import commands
from forewarn.runner.hooks.commands import HookError, HookSettings, command, describe, kind
from forewarn.runner.hooks.needs import Needs, examine

from .test_hook_commands import OCCASION

DRAIN: dict[str, Any] = {"kind": "haproxy", "options": {"socket": "/run/haproxy/admin.sock", "server": "web/web_0"}}
INTERPOLATED = {"parts": ["web/", {"source": "vm.name", "line": 1, "column": 1, "form": []}]}


def needs_of(hook: dict[str, Any], **more: Any) -> Needs:
    return examine([("p", "drain", hook)], **more)


def test_process_reads_its_settings_and_the_event() -> None:
    settings = HookSettings(memory_directory="/var/lib/forewarn/hooks", probe_address="0.0.0.0:9780")
    made = command(DRAIN, OCCASION, settings, 300.0, 42.5)
    first, second = made.stdin.splitlines()
    request = json.loads(first)
    memory = request.pop("memory")
    assert memory.startswith("/var/lib/forewarn/hooks/haproxy-")
    assert request == {
        "kind": "haproxy",
        "phase": "prepare",
        "options": DRAIN["options"],
        "seconds": 42.5,
        "probe": "0.0.0.0:9780",
    }
    assert json.loads(second)["event"]["EventType"] == "Reboot"
    assert made.environment["FOREWARN_EVENT_TYPE"] == "Reboot"
    assert made.timeout_seconds == 300.0
    assert not [word for word in made.argv if "web_0" in word], "ps shows arguments"


def test_memory_depends_on_options_and_not_timeouts() -> None:
    settings = HookSettings(memory_directory="/m")
    other = {**DRAIN, "options": {**DRAIN["options"], "server": "web/web_1"}}
    assert settings.memory_file(DRAIN) == settings.memory_file({**DRAIN, "timeout_seconds": 5})
    assert settings.memory_file(DRAIN) != settings.memory_file(other)
    assert HookSettings().memory_file(DRAIN) is None


def test_a_hook_without_a_value_is_not_run() -> None:
    with pytest.raises(HookError, match="server: web"):
        command({**DRAIN, "problem": "server: web/${vm.name} has no value"}, OCCASION, HookSettings(), 5.0)


def test_a_kind_that_was_not_shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook_kinds, "find", lambda _name: None)
    message = "this runner has no kind haproxy: roll it out again, together with the policies that use it"
    with pytest.raises(HookError, match=message):
        command(DRAIN, OCCASION, HookSettings(), 5.0)
    assert needs_of(DRAIN).missing() == (f"rule drain of policy p: {message}",)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"socket": "/s", "server": "web/a b"}, "server must be BACKEND/SERVER, not 'web/a b'"),
        ({"socket": "/s"}, "server is missing"),
        ({"socket": "/s", "server": "web/a", "more": 1}, "more is not an option of haproxy"),
    ],
)
def test_options_that_the_kind_cannot_use_are_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(HookError, match=problem):
        command({"kind": "haproxy", "options": options}, OCCASION, HookSettings(), 5.0)


def test_program_writable_by_others_is_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> None:
        raise InputError(f"{path} can be changed by others")

    monkeypatch.setattr(commands, "check_program", refuse)
    stop = {"kind": "systemd", "options": {"unit": "app.service"}}
    with pytest.raises(HookError, match="systemctl can be changed by others"):
        command(stop, OCCASION, HookSettings(), 5.0)


@pytest.mark.parametrize(
    ("hook", "text"),
    [
        (DRAIN, "haproxy server=web/web_0 socket=/run/haproxy/admin.sock"),
        ({"kind": "haproxy", "options": {"server": INTERPOLATED}}, 'haproxy server="web/${vm.name}"'),
        ({"kind": "checkpoint", "options": {"run": ["/bin/a", "b c"]}}, 'checkpoint run="/bin/a \\"b c\\""'),
        ({"kind": "systemd", "options": {"block": False}}, "systemd block=false"),
    ],
)
def test_a_hook_in_words(hook: dict[str, Any], text: str) -> None:
    assert kind(hook) == hook["kind"]
    assert describe(hook) == text


# What it needs


def test_a_socket_has_to_be_there(tmp_path: Path) -> None:
    path = tmp_path / "admin.sock"
    hook = {"kind": "haproxy", "options": {"socket": str(path), "server": "web/s"}}
    assert needs_of(hook).missing() == (f"rule drain of policy p: there is no socket {path}",)
    path.write_text("")
    assert needs_of(hook).missing() != ()
    path.unlink()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        assert needs_of(hook).missing() == ()


def test_interpolated_path_is_not_required() -> None:
    assert needs_of({"kind": "haproxy", "options": {"socket": INTERPOLATED, "server": "web/s"}}).missing() == ()


def test_units_and_programs() -> None:
    stop = {"kind": "systemd", "options": {"unit": "app.service"}}
    missing = needs_of(stop, unit_problem=lambda unit, action: f"{action} {unit}: no such unit").missing()
    assert missing == ("rule drain of policy p: stop app.service: no such unit",)
    save = {"kind": "checkpoint", "options": {"file": "/f", "run": ["/nowhere/save"]}}
    assert needs_of(save).missing() == ("rule drain of policy p: there is no program /nowhere/save",)
