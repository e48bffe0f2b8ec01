# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn events``, against a scripted service on loopback."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from forewarn.emulator.client import EmulatorClient
from forewarn.emulator.server import EmulatorServer
from forewarn.imds import retry
from tools.fixtures.events import in_minutes, listed
from tools.servers.scripted_imds import Answer, ScriptedServer, document, instance, raw, status
from tools.sites.commands import FOREWARN, forewarn, in_process

HEADER = ["TYPE", "STATUS", "NOT BEFORE", "DURATION", "SOURCE", "THIS VM", "RESOURCES"]


def event(event_id: str = "A1", minutes: float = 14.5, **fields: Any) -> dict[str, Any]:
    return listed(event_id, **{"NotBefore": in_minutes(minutes, datetime.now(timezone.utc)), **fields})


def ask(*answers: Answer, arguments: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    with ScriptedServer(*answers) as server:
        return in_process("events", "--endpoint", server.url, *arguments)


def test_table_shows_schedule_and_effect_on_this_vm() -> None:
    started = event("C3", EventType="Reboot", EventStatus="Started", NotBefore="", DurationInSeconds=-1)
    started["Description"] = "Host maintenance."
    others = event("D4", EventSource="User", Resources=["x", "web_10", "y", "z"])
    result = ask(document(event("A1"), event("B2", Resources=["web_1", "WEB_0"]), started, others), instance("web_0"))
    assert (result.returncode, result.stderr) == (0, "")
    header, *rows = [re.split(r" {2,}", line) for line in result.stdout.splitlines()]
    assert header == [*HEADER, "EVENT ID", "DESCRIPTION"]
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ \(in 14 min \d+ s\)", rows[0][2])
    assert [row[:2] + row[3:] for row in rows] == [
        ["Freeze", "Scheduled", "5 s", "Platform", "leads", "web_0, web_1", "A1", "-"],
        ["Freeze", "Scheduled", "5 s", "Platform", "affected", "web_1, WEB_0", "B2", "-"],
        ["Reboot", "Started", "unknown", "Platform", "leads", "web_0, web_1", "C3", "Host maintenance."],
        ["Freeze", "Scheduled", "5 s", "User", "not affected", "x, web_10, y and 1 more", "D4", "-"],
    ]
    assert rows[2][2] == "-"
    columns = {line.index(word) for line, word in zip(result.stdout.splitlines(), ["EVENT ID", "A1", "B2", "C3", "D4"])}
    assert len(columns) == 1


def test_nothing_scheduled() -> None:
    assert ask(document()).stdout == "No events are scheduled.\n"
    assert ask(status(200)).stdout == "No events are scheduled.\n"


def test_json_is_versioned() -> None:
    result = ask(document(event("A1", Resources=["web_1", "web_0"])), instance("web_0"), arguments=("--json",))
    assert (result.returncode, result.stderr) == (0, "")
    data = json.loads(result.stdout)
    assert data["forewarn"] == {"schema": "events", "version": 1}
    assert (data["incarnation"], data["api_version"], data["vm_name"]) == (1, "2020-07-01", "web_0")
    (shown,) = data["events"]
    assert shown["event"]["EventId"] == "A1"
    assert (shown["affects_me"], shown["leader"], shown["problems"]) == (True, False, [])
    assert 14 * 60 < shown["notice_seconds"] <= 14.5 * 60


def test_given_vm_name_needs_no_metadata_request() -> None:
    with ScriptedServer(document(event())) as server:
        result = in_process("events", "--endpoint", server.url, "--vm-name", "web_1", "--api-version", "2019-08-01")
        assert len(server.requests) == 1
    assert "affected" in result.stdout
    assert server.requests[0].target.endswith("api-version=2019-08-01")


def test_api_version_2017_03_01_uses_vm_names() -> None:
    """In that version names begin with "_", and neither the instance metadata nor an operator says them so."""
    with EmulatorServer(vms=["web_0", "web_1"]) as server, EmulatorClient(server.url) as emulator:
        emulator.schedule("Reboot", ["web_0", "web_1"])
        for vm, leads in (("web_0", True), ("web_1", False)):
            result = in_process("events", "--endpoint", server.vm_endpoint(vm), "--api-version", "2017-03-01", "--json")
            (shown,) = json.loads(result.stdout)["events"]
            assert shown["event"]["Resources"] == ["web_0", "web_1"]
            assert (shown["affects_me"], shown["leader"]) == (True, leads)
        named = in_process(
            "events", "--endpoint", server.url, "--api-version", "2017-03-01", "--json", "--vm-name", "WEB_1"
        )
        assert json.loads(named.stdout)["events"][0]["affects_me"] is True


def test_without_a_vm_name_effects_are_unknown() -> None:
    result = ask(document(event()), status(403))
    assert result.returncode == 0
    assert "  ?  " in result.stdout
    assert "--vm-name" in result.stderr
    shown = json.loads(ask(document(event()), status(403), arguments=("--json",)).stdout)
    assert (shown["vm_name"], shown["events"][0]["affects_me"], shown["events"][0]["leader"]) == (None, None, None)


APOLOGY = "The page that you are looking for cannot be found. Check the address, go back, or try again later. " * 3


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            f"<!DOCTYPE html>\n<html><head><title>404 - File or directory not found.</title></head><p>{APOLOGY}</html>",
            "a web page with the title '404 - File or directory not found.'. Name it with --vm-name.",
        ),
        (f"<html><body>{APOLOGY}</body></html>", "a web page. Name it with --vm-name."),
        (
            APOLOGY,
            "cannot be found. Check the address, go back, or try again later. … Name it with",
        ),
        ("x" * 500, f"{'x' * 200} … Name it with"),
        ('{"error": "nothing here"}', '{"error": "nothing here"}. Name it with --vm-name.'),
        ("Try again!", "Try again! Name it with --vm-name."),
        ("", "when reading the instance metadata. Name it with --vm-name."),
    ],
    ids=["page", "page-without-title", "long", "one-word", "json", "sentence", "nothing"],
)
def test_error_page_is_quoted_as_one_sentence(body: str, said: str) -> None:
    result = ask(document(event()), status(404, body.encode()), arguments=("--patience", "0"))
    assert result.returncode == 0
    (line,) = result.stderr.splitlines()
    assert line.startswith("warning: it is not known which events affect this VM: http://127.0.0.1:")
    assert said in line
    assert line.endswith(" Name it with --vm-name.")


def test_slow_first_answer_is_explained_while_waiting(tmp_path: Path) -> None:
    """SE-05. In a pipe, which takes no colour, and before the answer is there."""
    policy = tmp_path / "policy.yml"
    policy.write_text("name: calm\ndescription: Holds.\nrule: {match: [{output: hold}]}\n")
    commands = (("events",), ("approve", "A1"), ("run", "--once", "--policy", str(policy), "--log-format", "text"))
    slow = document(delay=60)
    with ScriptedServer(slow) as server, contextlib.ExitStack() as stack:
        processes = []
        for command in commands:
            process = stack.enter_context(
                subprocess.Popen(
                    [*FOREWARN, *command, "--endpoint", server.url],
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
            stack.callback(process.kill)
            processes.append(process)
        for process in processes:
            assert process.stderr is not None
            line = process.stderr.readline()
            assert re.match(rf"note: waiting for {server.url}, for \d+ s now\. The first request in a day ", line)
            assert "may take two minutes; events may then take up to five minutes to appear." in line


def test_problems_go_to_standard_error() -> None:
    odd = event("A1", DurationInSeconds="soon")
    result = ask(document(odd, {"EventId": None}), instance("web_0"))
    assert result.returncode == 0
    assert "A1" in result.stdout
    assert "warning: event A1: DurationInSeconds" in result.stderr
    assert "warning: Events[1]" in result.stderr


def test_service_text_contains_no_control_characters() -> None:
    forged = event("\x1b[31mA1\x07", EventType="Fr\neeze", Resources=["a\tb"], DurationInSeconds="x\ny")
    result = ask(document(forged), instance("web_0"))
    assert [len(result.stdout.splitlines()), len(result.stderr.splitlines())] == [2, 1]
    assert "\x1b" not in result.stdout
    assert "\\x1b[31mA1\\x07" in result.stdout


def test_the_endpoint_comes_from_the_environment_too() -> None:
    with ScriptedServer(document()) as server:
        assert in_process("events", FOREWARN_ENDPOINT=server.url + "/vm/a/").returncode == 0
    assert server.requests[0].target.startswith("/vm/a/metadata/")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--endpoint", "https://x"), "http only"),
        (("--api-version", "latest"), "api-version"),
        (("--patience", "-1"), "seconds"),
        (("--patience", "nan"), "seconds"),
        (("surplus",), "surplus"),
    ],
)
def test_bad_usage_is_2(arguments: tuple[str, ...], said: str) -> None:
    result = in_process("events", *arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert said in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("answer", [status(403), status(302, headers={"Location": "/x"}), status(400, b"api-version?")])
def test_a_lasting_fault_is_3_at_once(answer: Answer) -> None:
    result = ask(answer)
    assert (result.returncode, result.stdout) == (3, "")
    assert result.stderr.startswith("error: ")


@pytest.mark.parametrize("answer", [status(503), raw(b"junk", "close")])
def test_a_passing_fault_is_3_when_patience_ends(answer: Answer) -> None:
    result = ask(answer, arguments=("--patience", "0"))
    assert (result.returncode, result.stdout) == (3, "")
    assert "Traceback" not in result.stderr


def test_nobody_there_is_3() -> None:
    assert forewarn("events", "--patience", "0").returncode == 3  # as a process, which it is for people


def test_a_passing_fault_is_waited_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "FIRST_DELAY_SECONDS", 0.05)
    result = ask(status(503), document())
    assert (result.returncode, result.stdout) == (0, "No events are scheduled.\n")
    assert [line.split(":")[0] for line in result.stderr.splitlines()] == ["note", "note"]
