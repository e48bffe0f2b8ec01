# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the code of a kind relies on: waiting in its time, programs, requests, and a memory that survives crashes."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from forewarn import hook_kinds
from forewarn.hook_kinds.common import process
from forewarn.hook_kinds.common.declaration import DURATION, INTEGER, TEXT, HookKind, Option
from forewarn.hook_kinds.common.effect import EffectStatus, complete, no_action
from forewarn.hook_kinds.common.work import HookFailedError, Work


def work(seconds: float = 30.0, memory_file: Path | None = None) -> tuple[Work, list[str]]:
    said: list[str] = []
    return Work({}, {}, seconds, None if memory_file is None else str(memory_file), say=said.append), said


# Waiting


def test_thing_missing_at_the_end_is_the_reason() -> None:
    at, _said = work(0.6)
    with pytest.raises(HookFailedError, match=r"^1 session is open, after 0 s$"):
        at.wait(lambda: "1 session is open", every=0.2)
    assert at.seconds_left <= 0.2


# Programs


def test_a_program_that_fails_is_quoted() -> None:
    at, _said = work()
    with pytest.raises(HookFailedError, match=r"^python\S* failed: no such\s+node$"):
        at.run(sys.executable, "-c", "import sys; sys.stderr.write('no such\\n node\\n'); sys.exit(1)")
    done = at.run(sys.executable, "-c", "import sys; print(sys.stdin.read()); sys.exit(3)", check=False, stdin="x")
    assert (done.code, done.output) == (3, "x\n")


def test_program_ends_with_the_hooks_time() -> None:
    at, _said = work(0.7)
    with pytest.raises(HookFailedError, match="has not ended in time"):
        at.run(sys.executable, "-c", "import time; time.sleep(60)")  # which is killed at once


def test_a_program_that_is_not_there() -> None:
    at, _said = work()
    with pytest.raises(HookFailedError, match="/nowhere/x cannot be run: No such file"):
        at.run("/nowhere/x")


# Requests


class Answering(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(412 if self.path == "/refused" else 200)
        self.end_headers()
        self.wfile.write(b"no candidate" if self.path == "/refused" else b'{"got": ' + body + b"}")

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_an_answer_of_any_status_is_an_answer(url: str) -> None:
    at, _said = work()
    assert at.http("POST", f"{url}/x", {"leader": "n1"}) == (200, {"got": {"leader": "n1"}})
    assert at.http("POST", f"{url}/refused", {}) == (412, "no candidate")


def test_refused_connection_names_the_address() -> None:
    at, _said = work()
    with pytest.raises(HookFailedError, match=r"127\.0\.0\.1 port 1: Connection refused"):
        at.http("GET", "http://127.0.0.1:1/")


# Memory


def test_what_was_remembered_first_stays(tmp_path: Path) -> None:
    file = tmp_path / "hooks" / "haproxy.json"
    first, _said = work(memory_file=file)
    assert first.memory == {}
    first.remember(out_of_service=False)
    again, _said = work(memory_file=file)  # a second attempt finds what the first has changed
    again.remember(out_of_service=True)
    assert again.memory == {"out_of_service": False}
    assert work(memory_file=file)[0].memory == {"out_of_service": False}
    again.forget()
    assert work(memory_file=file)[0].memory == {}
    assert list(file.parent.iterdir()) == []


@pytest.mark.parametrize("content", ["", "{", "[]", "\x00"])
def test_a_memory_that_is_cut_off_is_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "m.json").write_text(content)
    assert work(memory_file=tmp_path / "m.json")[0].memory == {}


def test_unwritable_memory_stops_the_preparation(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    at, _said = work(memory_file=tmp_path / "file" / "m.json")
    with pytest.raises(HookFailedError, match="cannot be written"):
        at.remember(was_active=True)


# The process


def fails(at: Work) -> EffectStatus:
    raise HookFailedError(f"{at.options['server']} is still busy")


def says(at: Work) -> EffectStatus:
    return complete(f"{at.outcome} {at.probe_address} {at.event['EventType']}")


STAND_IN = HookKind(
    *("x", "S.", "P.", "R.", "E.", "T.", "N.", "nothing"),
    options=(
        Option("server", TEXT, "A server.", "s1", required=True, pattern="s[0-9]", wording="s and a digit"),
        Option("count", INTEGER, "A count.", 1, default=1, minimum=0, maximum=9),
        Option("after", DURATION, "A pause.", 1.0, minimum=0.5),
    ),
    prepare=no_action,
    check_prepared=fails,
    recover=no_action,
    check_recovered=says,
)


def run(monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], phase: str) -> int:
    monkeypatch.setattr(process, "find", lambda name: STAND_IN if name == "x" else None)
    settings = {"kind": "x", "phase": phase, "options": options, "seconds": 5, "memory": None, "probe": "h:1"}
    event = {"event": {"EventType": "Reboot"}, "outcome": "finished"}
    return process.main(io.BytesIO(json.dumps(settings).encode() + b"\n" + json.dumps(event).encode()))


def test_the_last_line_is_the_reason(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, {"server": "s1"}, "prepare") == 1
    assert capsys.readouterr().out == "s1 is still busy\n"
    assert run(monkeypatch, {"server": "s1"}, "recover") == 0
    assert capsys.readouterr().out == "finished h:1 Reboot\n"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({}, "server is missing"),
        ({"server": "web"}, "server must be s and a digit, not 'web'"),
        ({"server": "s1", "srv": 1}, "srv is not an option of x"),
        ({"server": "s1", "count": True}, "count must be a whole number, not True"),
        ({"server": "s1", "count": 10}, "count must be at most 9, not 10"),
        ({"server": "s1", "after": 0.1}, "after must be at least 0.5, not 0.1"),
        ({"server": 1}, "server must be a text, and not empty, not 1"),
    ],
)
def test_resolved_options_are_validated_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], options: dict[str, Any], problem: str
) -> None:
    assert run(monkeypatch, options, "prepare") == 1
    assert capsys.readouterr().out == f"{problem}\n"


def test_a_kind_that_was_not_shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "find", lambda _name: None)
    with pytest.raises(HookFailedError, match="this runner has no kind haproxy: roll it out again"):
        process.perform("haproxy", "prepare", {}, {}, 5.0)


def test_one_of_several_options(monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = hook_kinds.find("checkpoint")
    assert checkpoint is not None
    both = {"file": "/f", "run": ["x"], "unit": "a.service"}
    for options in ({"file": "/f"}, both):
        assert checkpoint.problems(options) == ["exactly one of run, unit has to be given"]
    assert checkpoint.problems({"file": "/f", "unit": "a.service"}) == []
