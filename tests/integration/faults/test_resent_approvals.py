# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An approval that nothing answered may have started the event: only another document tells.

The service takes it and closes the connection; the event, a short freeze, is over when it is asked next.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from forewarn.imds import retry
from tools.fixtures.client_bench import EVENT
from tools.servers.scripted_imds import Answer, AnsweringServer, ScriptedServer, raw, status, vm_service
from tools.sites.commands import in_process, run_program, vm_command
from tools.sites.runner_process import Process, compiled

POLICY = """name: freezes
description: Approves each freeze, and undoes what it did.
rule:
  match:
    - id: freeze
      condition: event.EventType == "Freeze"
      output: approve
      recover_when: started
      recover: [{{run: [/usr/bin/touch, {ran}], timeout: 5s}}]
"""
GONE = status(400, b'{"error": "no such event"}')
LISTED = {**EVENT, "Resources": ["web_0"], "NotBefore": ""}


def forgetful(answer: Answer) -> AnsweringServer:
    """Return a service that takes an approval with this answer, and no longer lists the event."""
    events: list[dict[str, Any]] = [LISTED]

    def approve() -> Answer:
        events.clear()
        return answer

    return vm_service(events, approve)


def losing(answer: Answer, **changes: Any) -> AnsweringServer:
    """Return a service that loses the first approval, with this answer, and lists the event with changes then."""
    events: list[dict[str, Any]] = [LISTED]
    answers = [answer]

    def approve() -> Answer:
        events[:] = [{**LISTED, **changes}]
        return answers.pop() if answers else status(200)

    return vm_service(events, approve)


def posts(server: ScriptedServer) -> int:
    return [request.method for request in server.requests].count("POST")


def artifact(directory: Path) -> str:
    directory.chmod(0o700)
    return str(compiled(directory, POLICY.format(ran=directory / "ran")))


def test_unanswered_approval_is_sent_again_after_a_document(tmp_path: Path) -> None:
    with losing(raw(b"", "close")) as server:
        runner = Process("--artifact", artifact(tmp_path), endpoint=server.url, state=tmp_path / "state", quick=True)
        try:
            runner.wait_for("approved")
        finally:
            runner.stop()
    asked = [request.method for request in server.requests if "/instance" not in request.target]
    first = asked.index("POST")
    assert asked[first : first + 3] == ["POST", "GET", "POST"], "at once"


def test_a_command_says_that_it_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "FIRST_DELAY_SECONDS", 0.05)
    for answer in (raw(b"", "close"), status(503)):
        with forgetful(answer) as server:
            done = in_process("approve", EVENT["EventId"], FOREWARN_ENDPOINT=server.url)
            assert posts(server) == 1
        assert (done.returncode, done.stdout) == (3, "")
        assert "is no longer listed since" in done.stderr
        assert "Whether the approval arrived is not known" in done.stderr
        with forgetful(answer) as server:
            done = once(tmp_path, server)
            assert posts(server) == 1
        assert done.returncode == 3
        assert "not known" in done.stdout


def once(directory: Path, server: ScriptedServer) -> Any:
    command = ("run", "--once", "--log-format", "text", "--artifact", artifact(directory))
    return run_program(*vm_command(quick=True), *command, env={**os.environ, "FOREWARN_ENDPOINT": server.url})


@pytest.mark.parametrize(
    ("changes", "sent"), [({}, 2), ({"EventStatus": "Started"}, 1), ({"EventType": "Redeploy"}, 1)]
)
def test_command_resends_an_approval_for_an_unchanged_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], sent: int
) -> None:
    monkeypatch.setattr(retry, "FIRST_DELAY_SECONDS", 0.05)
    code = 3 if "EventType" in changes else 0
    with losing(raw(b"", "close"), **changes) as server:
        done = in_process("approve", EVENT["EventId"], FOREWARN_ENDPOINT=server.url)
        assert (done.returncode, posts(server)) == (code, sent)
    with losing(status(503), **changes) as server:
        done = once(tmp_path, server)
        assert (done.returncode, posts(server)) == (code, sent)


def test_of_a_first_refusal_it_is_known() -> None:
    with vm_service([LISTED], lambda: GONE) as server:
        done = in_process("approve", EVENT["EventId"], FOREWARN_ENDPOINT=server.url)
        assert (done.returncode, "not known" in done.stderr) == (3, False)
