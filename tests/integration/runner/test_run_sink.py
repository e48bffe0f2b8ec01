# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sink of a real runner: nothing is lost, whatever happens to the receiver and to the runner."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from forewarn.emulator.client import EmulatorClient
from tools.fixtures.journals import entries
from tools.servers.sink_receiver import DIE_AFTER, DIE_BEFORE, SLOW, Receiver
from tools.sites.runner_process import DRAINS, Host, Process, Start
from tools.sites.waiting import wait_until


class SinkHost(Host):
    """A VM that has a sink."""

    arguments: tuple[str, ...] = ()

    def run(self) -> Process:
        return self._start("--artifact", str(self._artifact), *self.arguments)

    def sink(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.forewarn("status", "--json").stdout)["runner"]["sink"]
        return found

    def one_event(self, runner: Process) -> None:
        """Let an event come, be prepared, go, and be recovered from."""
        runner.wait_for("document")
        event_id = self.emulator.schedule("Reboot", ["web_0"], notice_seconds=300, impact_seconds=0.1)
        self.wait_for(event_id, "done")


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    with Receiver(tmp_path / "receiver") as found:
        yield found


@pytest.fixture
def host(tmp_path: Path, emulator: EmulatorClient, start: Start, receiver: Receiver) -> SinkHost:
    found = SinkHost(tmp_path, emulator, start, DRAINS, "exit 0")
    token = tmp_path / "token"
    token.write_text("s3cret\n")
    token.chmod(0o600)
    found.arguments = ("--sink-url", f"{receiver.url}?key=hidden", "--sink-bearer-file", str(token))
    return found


def in_journal(host: SinkHost) -> list[tuple[int, str]]:
    return [(entry.id, entry.kind) for entry in entries(host.state)]


def received(receiver: Receiver) -> dict[int, dict[str, Any]]:
    """Return what was received, by its number, in the order of arrival; what came twice came unchanged."""
    found: dict[int, dict[str, Any]] = {}
    for line in receiver.kept():
        line.pop("vm")  # not known at the start
        assert found.setdefault(line["sequence"], line) == line
    assert len({line["stream"] for line in found.values()}) <= 1
    return found


def has_everything(host: SinkHost, receiver: Receiver) -> bool:
    return [(number, line["kind"]) for number, line in received(receiver).items()] == in_journal(host)


def test_what_is_recorded_arrives_once_and_in_order(host: SinkHost, receiver: Receiver) -> None:
    receiver.start()
    runner = host.run()
    host.one_event(runner)
    wait_until(lambda: has_everything(host, receiver), pause=0.05)
    lines = receiver.kept()
    assert [line["sequence"] for line in lines] == list(range(1, len(lines) + 1))
    states = [line["fields"]["to"] for line in lines if line["kind"] == "state"]
    assert (states[0], states[-1]) == ("preparing", "done")
    ended = next(line for line in lines if line["kind"] == "hook-ended")
    assert (ended["event_type"], ended["drill"], ended["vm"]) == ("Reboot", False, "web_0")
    request = receiver.requests()[0]
    assert request["headers"]["Content-Type"] == "application/x-ndjson"
    assert request["headers"]["Authorization"] == "Bearer s3cret"
    wait_until(lambda: host.sink()["behind"] == 0, pause=0.05)
    assert "has everything" in host.forewarn("status").stdout
    assert "hidden" not in host.forewarn("status").stdout
    assert runner.stop() == (0, "")
    assert "s3cret" not in (host.state / "sink.json").read_text()


def test_nothing_is_lost_whatever_fails(host: SinkHost, receiver: Receiver) -> None:
    runner = host.run()  # the receiver is down
    host.one_event(runner)
    runner.wait_for("sink-failed")
    wait_until(lambda: host.sink()["behind"] > 5, pause=0.05)
    status = host.forewarn("status")
    assert status.returncode == 0  # the VM is well
    assert "entries behind: 127.0.0.1 port" in " ".join(status.stdout.split())
    runner.stop(signal.SIGKILL)
    for mode in (DIE_BEFORE, DIE_AFTER):
        receiver.start(mode)
        runner = host.run()
        wait_until(receiver.died)
        runner.stop(signal.SIGKILL)
    receiver.start("500")
    runner = host.run()
    wait_until(lambda: receiver.requests()[-1]["mode"] == "500")
    receiver.answer("429")
    wait_until(lambda: receiver.requests()[-1]["mode"] == "429")
    receiver.answer("200")
    host.one_event(runner)
    wait_until(lambda: has_everything(host, receiver), pause=0.05)
    runner.wait_for("sink-recovered")
    assert len(receiver.kept()) > len(received(receiver))  # what died with the receiver came again


def test_a_refusal_is_reported_and_drops_nothing(host: SinkHost, receiver: Receiver) -> None:
    receiver.start("400")
    runner = host.run()
    line = runner.wait_for("sink-failed")
    assert (line["reason"], line["lasting"]) == ("answered 400", True)
    wait_until(lambda: host.sink()["problem"] == "answered 400", pause=0.05)
    assert host.sink()["acknowledged"] == 0
    assert runner.stop() == (0, "")
    receiver.answer("200")
    host.run()
    wait_until(lambda: has_everything(host, receiver), pause=0.05)


def test_slow_receiver_delays_neither_runner_nor_exit(host: SinkHost, receiver: Receiver) -> None:
    receiver.start(SLOW)
    runner = host.run()
    wait_until(lambda: receiver.requests() != [])
    host.one_event(runner)
    began = time.monotonic()
    assert runner.stop() == (0, "")
    assert time.monotonic() - began < 15  # half of what the receiver takes
    assert len(receiver.requests()) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--sink-url", "ftp://x"], "sink_url is 'ftp://x'"),
        (["--sink-url", "http://user:pass@x/"], "sink_url is 'http://x/'"),
        (["--sink-url", "http://192.0.2.1/", "--sink-credential", "x"], "would send a secret without encryption"),
        (["--sink-format", "otlp"], "sink_format is set, but no sink_url"),
        (["--sink-url", "https://x", "--sink-credential", "../x"], "sink_credential is '../x'"),
    ],
)
def test_a_sink_that_cannot_be_meant_is_refused(host: SinkHost, options: list[str], message: str) -> None:
    host.arguments = tuple(options)
    code, text = host.run().end()
    assert code == 2
    assert message in text


def test_credential_printed_by_a_hook_is_masked(
    tmp_path: Path, emulator: EmulatorClient, start: Start, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = DRAINS.replace("timeout: 1m", "credentials: [drain], timeout: 1m")
    # It fails once, so that its last line is a reason, too.
    prints = 'cd "$CREDENTIALS_DIRECTORY" && echo * && cat drain && [ "$FOREWARN_ATTEMPT" -gt 1 ]'
    host = SinkHost(tmp_path, emulator, start, policy, prints)
    given = tmp_path / "given"
    given.mkdir(mode=0o700)
    for name in ("drain", "pager"):
        (given / name).write_text(f"s3cret-of-{name}\n")
        (given / name).chmod(0o400)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(given))
    host.arguments = ("--sink-url", receiver.url)
    receiver.start()
    runner = host.run()
    host.one_event(runner)
    wait_until(lambda: has_everything(host, receiver), pause=0.05)
    shown = [host.forewarn("status", "--json").stdout, host.forewarn("history", "--json").stdout]
    runner.stop()
    shown += [json.dumps(runner.lines), json.dumps(receiver.kept())]
    shown += [
        path.read_text(errors="replace") for path in host.state.rglob("*") if path.is_file() and not path.is_symlink()
    ]
    assert "s3cret" not in "".join(shown)
    assert "drain\\n***" in json.dumps(receiver.kept())
    assert "exit code 1: ***" in json.dumps(runner.lines)
