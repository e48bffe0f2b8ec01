# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An approval that is sent again, because nothing answered it, may have started the event at the first sending.

The service takes it and closes the connection; the event, a short freeze, is over when it arrives again.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from forewarn.imds import retry
from tools.client_bench import EVENT
from tools.commands import in_process, run_program, vm_command
from tools.runner_process import Process, compiled
from tools.scripted_imds import Answer, AnsweringServer, raw, status, vm_service
from tools.waiting import wait_until

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


def forgetful(*first: Answer) -> AnsweringServer:
    """Return a service that takes the first approval with this answer, and later says that there is no such event."""
    events: list[dict[str, Any]] = [{**EVENT, "Resources": ["web_0"], "NotBefore": ""}]
    answers = list(first)

    def approve() -> Answer:
        events.clear()
        return answers.pop(0) if answers else GONE

    return vm_service(events, approve)


def artifact(directory: Path) -> str:
    directory.chmod(0o700)
    return str(compiled(directory, POLICY.format(ran=directory / "ran")))


def test_what_may_have_started_at_the_first_sending_is_recovered(tmp_path: Path) -> None:
    with forgetful(raw(b"", "close")) as server:
        runner = Process("--artifact", artifact(tmp_path), endpoint=server.url, state=tmp_path / "state", quick=True)
        try:
            failed = runner.wait_for("approval-failed")
            gone = runner.wait_for("event-gone")
            wait_until((tmp_path / "ran").exists)
        finally:
            runner.stop()
    assert [request.method for request in server.requests].count("POST") == 2
    assert (failed["status"], failed["unsure"]) == (400, True)
    assert gone["outcome"] == "unseen"


def test_a_command_says_that_it_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "FIRST_DELAY_SECONDS", 0.05)
    for first in (raw(b"", "close"), status(503)):
        with forgetful(first) as server:
            done = in_process("approve", EVENT["EventId"], FOREWARN_ENDPOINT=server.url)
        assert (done.returncode, done.stdout) == (3, "")
        assert "400" in done.stderr
        assert "Whether the approval arrived is not known" in done.stderr
        with forgetful(first) as server:
            command = ("run", "--once", "--log-format", "text", "--artifact", artifact(tmp_path))
            environ = {**os.environ, "FOREWARN_ENDPOINT": server.url}
            done = run_program(*vm_command(quick=True), *command, env=environ)
        assert done.returncode == 3
        assert "not known" in done.stdout


def test_of_a_first_refusal_it_is_known(tmp_path: Path) -> None:
    with forgetful() as server:
        done = in_process("approve", EVENT["EventId"], FOREWARN_ENDPOINT=server.url)
        assert (done.returncode, "not known" in done.stderr) == (3, False)
