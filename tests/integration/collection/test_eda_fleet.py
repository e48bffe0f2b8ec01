# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runners post their events to Event-Driven Ansible, with the policy and the rule that docs/event-driven.md shows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from forewarn.emulator.client import EmulatorClient
from tools.docs.guides import blocks
from tools.servers.listener_client import free_port
from tools.servers.webhooks import HANG, Answer, Request, Webhook, server_context
from tools.sites import rulebooks
from tools.sites.commands import in_process
from tools.sites.runner_process import Process, Start, approvals, compiled
from tools.sites.waiting import wait_until

pytestmark = pytest.mark.in_turn(3, together=True)

TOKEN = "the-t0ken.of-the-rulebook"
URL = "https://eda.example.com:5000/forewarn"
# An event is over soon, but not before a runner has told of its start.
BRIEF: dict[str, Any] = {"impact_seconds": 0.1, "gone_after_seconds": 2}


class EdaWebhook(Webhook):
    """A server that checks a request as the source eda.builtin.webhook does: scheme and token, then the JSON body."""

    def answer_to(self, request: Request) -> Answer | str:
        scripted = super().answer_to(request)
        if request.headers.get("authorization", "").strip().split(" ") != ["Bearer", TOKEN]:
            return Answer(401)
        try:
            json.loads(request.body)
        except ValueError:
            return Answer(400)
        return scripted


def of_page(repository: Path, name: str) -> str:
    """Return a file as the page shows it."""
    (text,) = (block.text for block in blocks(repository / "docs" / "event-driven.md") if block.value == name)
    return text


Fleet = Callable[..., Process]


@pytest.fixture
def fleet(start: Start, certificate: Path, tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    """Return a function that starts a VM's runner with the page's policy. It takes the port to post to."""
    credentials = tmp_path / "credentials"
    credentials.mkdir(mode=0o700)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(credentials))

    def run(port: int, vm: str = "web_0", token: str = TOKEN, phase: str = "notify", timeout: str = "30s") -> Process:
        (credentials / "eda-token").unlink(missing_ok=True)  # of an earlier runner, which nobody may write to
        (credentials / "eda-token").write_text(f"{token}\n")
        (credentials / "eda-token").chmod(0o400)
        policy = of_page(repository, "web-tier.yml")
        assert URL in policy
        policy = policy.replace(URL, f"https://127.0.0.1:{port}/forewarn").replace("notify:", f"{phase}:")
        artifact = compiled(tmp_path, policy.replace("timeout: 30s", f"timeout: {timeout}"), f"web-tier-{vm}")
        return start("--artifact", str(artifact), "--hook-ca-file", str(certificate), vm=vm)

    return run


def freeze(emulator: EmulatorClient, duration: int = 5) -> str:
    return emulator.schedule("Freeze", ["web_0"], duration_seconds=duration, notice_seconds=900, **BRIEF)


def test_what_is_posted_satisfies_the_webhook_source(fleet: Fleet, emulator: EmulatorClient, certificate: Path) -> None:
    with EdaWebhook(tls=server_context(certificate)) as server:
        runner = fleet(server.port)
        event_id = freeze(emulator)
        for occasion in ("decided", "started", "ended"):
            line = runner.wait_for("notified", occasion=occasion)
            assert (line["result"], line["event_id"]) == ("succeeded", event_id)
        bodies = [json.loads(request.body) for request in server.requests]
    assert {request.method for request in server.requests} == {"POST"}
    assert {request.target for request in server.requests} == {"/forewarn"}
    assert {request.headers["content-type"] for request in server.requests} == {"application/json"}
    assert [body["occasion"] for body in bodies] == ["decided", "started", "ended"]
    for body in bodies:
        assert body["forewarn"] == {"schema": "hook", "version": 1}
        assert (body["event"]["EventId"], body["event"]["Resources"]) == (event_id, ["web_0"])
        assert (body["vm_name"], body["drill"]) == ("web_0", False)
    assert (bodies[0]["decision"]["output"], bodies[0]["decision"]["rule"]) == ("approve", "brief-freeze")


@pytest.mark.parametrize(
    ("script", "token", "reason"),
    [
        ((Answer(401),), "another-token", "answered 401"),
        ((Answer(503),), TOKEN, "answered 503 ("),
        ((HANG,), TOKEN, "took longer than"),
        (None, TOKEN, "Connection refused"),
    ],
    ids=["another token", "out of order", "does not answer", "is down"],
)
def test_no_approval_waits_for_a_rulebook_in_trouble(
    fleet: Fleet,
    emulator: EmulatorClient,
    certificate: Path,
    script: tuple[Answer | str, ...] | None,
    token: str,
    reason: str,
) -> None:
    with EdaWebhook(*(script or ()), tls=server_context(certificate)) as server:
        runner = fleet(server.port if script else free_port(), token=token, timeout="3s")
        event_id = freeze(emulator)
        runner.wait_for("approved")
        notified = runner.wait_for("notified", occasion="decided")
        requests = len(server.requests)
    names = [line["line"] for line in runner.lines]
    assert names.index("approved") < names.index("notified") or script == (Answer(401),)
    # On a busy machine, the hook's own time limit may pass after the runner's.
    assert notified["result"] in (("failed", "timed-out") if script == (HANG,) else ("failed",))
    assert reason in notified["reason"]
    assert TOKEN not in json.dumps(runner.lines)
    assert approvals(emulator)[0] == [event_id]
    if token != TOKEN:
        assert requests == 1, "a wrong token is not tried again"


def test_an_approval_waits_where_the_policy_says_so(fleet: Fleet, emulator: EmulatorClient, certificate: Path) -> None:
    with EdaWebhook(Answer(404), Answer(200), tls=server_context(certificate)) as server:
        runner = fleet(server.port, phase="prepare")
        freeze(emulator)
        first = runner.wait_for("hook-ended")
        assert first["result"] == "failed"
        runner.wait_for("approved")
        names = [(line["line"], line.get("result")) for line in runner.lines]
    assert names.index(("hook-ended", "succeeded")) < names.index(("approved", None))


Listen = Callable[[str], AbstractContextManager[rulebooks.Rulebook]]


@pytest.fixture
def port(certificate: Path, tmp_path: Path) -> int:
    """Return the port at which the rulebook is to listen, as written to vars.yml; the inventory has three VMs."""
    number = free_port()
    hosts = "".join(f"{name} ansible_connection=local\n" for name in ("web_0", "web_1", "web_2"))
    (tmp_path / "hosts").write_text(hosts)
    (tmp_path / "vars.yml").write_text(
        f"port: {number}\ntoken: {TOKEN}\ncertfile: {certificate}\nkeyfile: {certificate.with_name('key.pem')}\n"
    )
    return number


@pytest.fixture
def listen(port: int, repository: Path, collections_path: Path, tmp_path: Path) -> Listen:
    """Return a function that runs a rulebook, and waits until it listens."""

    @contextmanager
    def run(name: str) -> Iterator[rulebooks.Rulebook]:
        arguments = ["--rulebook", name, "--inventory", "hosts", "--vars", "vars.yml"]
        with rulebooks.running(rulebooks.installed(repository), arguments, tmp_path, collections_path) as rulebook:
            rulebook.listens(port)
            yield rulebook

    return run


def test_one_rulebook_hears_once_what_two_runners_post(
    fleet: Fleet, emulator: EmulatorClient, listen: Listen, port: int
) -> None:
    with listen("forewarn.azure.fleet_events") as rulebook:
        runners = [fleet(port, vm) for vm in ("web_0", "web_1")]
        event_id = emulator.schedule("Reboot", ["web_0", "web_1"], notice_seconds=900, **BRIEF)
        heard = f"Reboot {event_id} of web_0, web_1"
        rulebook.hear(f"HELD {heard}: rule rest applies")
        for runner in runners:
            assert runner.wait_for("notified", occasion="decided")["result"] == "succeeded"
        emulator.start(event_id)
        rulebook.hear(f"STARTED {heard}")
        rulebook.hear(f"ENDED {heard}")
        for runner in runners:
            assert runner.wait_for("notified", occasion="ended")["result"] == "succeeded"
        other = emulator.schedule("Freeze", ["web_1"], notice_seconds=900, duration_seconds=5)
        rulebook.hear(f"APPROVE Freeze {other} of web_1: ")
        third = emulator.schedule("Redeploy", ["web_1"], notice_seconds=900)
        rulebook.hear(f"HELD Redeploy {third} of web_1: ")  # another event is not throttled
        emulator.cancel(third)
        rulebook.hear(f"CANCELLED Redeploy {third} of web_1")
        for word in ("HELD", "STARTED", "ENDED"):
            assert rulebook.count(f"{word} {heard}") == 1


def test_rulebook_opens_no_ticket_for_a_drill(
    fleet: Fleet, emulator: EmulatorClient, listen: Listen, port: int, place: Path
) -> None:
    with listen("forewarn.azure.fleet_events") as rulebook:
        fleet(port).wait_for("identity")
        drilled = in_process(
            "drill", "--type", "Reboot", "--notice", "1s", "--duration", "1s", "--state", str(place / "state-web_0")
        )
        assert drilled.returncode in (0, 1), drilled.stderr
        rulebook.hear("DRILL decided ")
        rulebook.hear("DRILL ended ")
        assert rulebook.count("HELD") == rulebook.count("STARTED") == 0


def test_playbook_runs_once_on_the_vms_affected(
    fleet: Fleet, emulator: EmulatorClient, listen: Listen, port: int, repository: Path, tmp_path: Path
) -> None:
    page = (repository / "extensions" / "eda" / "rulebooks" / "fleet_events.yml").read_text()
    (tmp_path / "tickets.yml").write_text(page.split("  rules:\n")[0] + "  rules:\n" + of_page(repository, "rule.yml"))
    (tmp_path / "ticket.yml").write_text(
        "- hosts: all\n"
        "  gather_facts: false\n"
        "  tasks:\n"
        "    - ansible.builtin.debug: {msg: 'TICKET {{ inventory_hostname }} {{ reason }} {{ starts }}'}\n"
    )
    with listen("tickets.yml") as rulebook:
        runners = [fleet(port, vm) for vm in ("web_0", "web_1")]
        emulator.schedule("Reboot", ["web_0", "web_1"], notice_seconds=900)
        for runner in runners:
            assert runner.wait_for("notified", occasion="decided")["result"] == "succeeded"
        rulebook.hear("TICKET web_1 rule rest applies 20")
        emulator.schedule("Redeploy", ["web_1"], notice_seconds=900)
        wait_until(lambda: rulebook.count("TICKET web_1") == 2)
        assert rulebook.count("TICKET web_0") == 1
        assert rulebook.count("TICKET web_2") == 0, "it is none of the event's VMs"
