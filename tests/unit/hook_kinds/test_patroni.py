# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kind patroni makes of answers that a real cluster, as in tests/lab, seldom gives."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from forewarn.hook_kinds.common import work
from forewarn.hook_kinds.common.process import PREPARE, RECOVER, perform
from forewarn.hook_kinds.common.work import HookFailedError
from tools.fixtures.clocks import ManualClocks


class Api:
    """A REST API of members n1, which is this one, and n2. What it answers is changed by assignment."""

    def __init__(self) -> None:
        self.leader: str | None = "n1"
        self.leads: bool | None = None  # None: as the cluster says
        self.pause = False
        self.leader_role = "leader"
        self.switchover = (200, 'Successfully switched over to "n2"')
        self.moves = True  # whether a switchover has an effect
        sender = {"application_name": "n2", "state": "streaming"}
        self.own: dict[str, Any] = {"state": "running", "role": "master", "replication": [sender]}
        self.others: list[dict[str, Any]] = [{"state": "running", "role": "master"}]  # in turn; the last one stays
        self.raw: bytes | None = None
        self.requests: list[tuple[str, Any, str | None]] = []
        self.url = ""

    def answer(self, path: str, body: Any, authorization: str | None) -> tuple[int, Any]:
        if path == "/cluster":
            roles = {name: self.leader_role if name == self.leader else "replica" for name in ("n1", "n2")}
            members = [
                {"name": name, "role": role, "state": "running", "api_url": f"{self.url}/{name}/patroni"}
                for name, role in roles.items()
            ]
            return 200, {"members": members, **({"pause": True} if self.pause else {})}
        if path == "/leader":
            return 200 if (self.leader == "n1" if self.leads is None else self.leads) else 503, {}
        if path == "/patroni":
            return 200, self.own
        if path == "/n2/patroni":
            return 200, self.others.pop(0) if len(self.others) > 1 else self.others[0]
        self.requests.append((path, body, authorization))
        if self.switchover[0] == 200 and self.moves:
            self.leader = "n2"
        return self.switchover


@pytest.fixture(autouse=True)
def _no_time_but_the_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let time pass only between two looks, and give each request as long as a busy machine needs."""
    monkeypatch.setattr(work, "time", ManualClocks())
    monkeypatch.setattr(work, "_LEAST_SECONDS", 5.0)


@pytest.fixture
def api() -> Iterator[Api]:
    found = Api()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            status, content = found.answer(self.path, body, self.headers.get("Authorization"))
            text = content if isinstance(content, str) else json.dumps(content)
            sent = found.raw if found.raw is not None else text.encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        do_POST = do_GET  # noqa: N815 - the server's name

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield found
    server.shutdown()
    thread.join()
    server.server_close()


def run(api: Api, phase: str = PREPARE, seconds: float = 6.0, memory: Path | None = None, **options: Any) -> None:
    given = {"url": api.url, "member": "n1", **options}
    perform("patroni", phase, given, {}, seconds, None if memory is None else str(memory))


def refusal(api: Api, phase: str = PREPARE, **options: Any) -> str:
    with pytest.raises(HookFailedError) as caught:
        run(api, phase, **options)
    return str(caught.value)


def test_new_primary_is_awaited_until_it_takes_writes(api: Api, capsys: pytest.CaptureFixture[str]) -> None:
    api.others = [
        {"state": "running", "role": "replica"},
        {"state": "starting"},
        {"state": "running", "role": "primary"},
    ]
    run(api)
    assert api.requests == [("/switchover", {"leader": "n1"}, None)]
    assert capsys.readouterr().out.splitlines() == [
        "waiting: Patroni has switched over",
        "waiting: n2 leads, and does not take writes yet",
        "n2 is the primary and takes writes, n1 is not",
    ]


def test_switchover_without_an_effect_is_a_failure(api: Api) -> None:
    api.moves = False
    assert refusal(api).startswith("Patroni has switched over, after ")
    api.switchover = (503, "Switchover failed")
    assert refusal(api).startswith("Patroni does not switch over (503): Switchover failed, after ")


def test_cluster_without_a_leader_is_a_failure(api: Api) -> None:
    api.leader = None
    assert refusal(api).startswith("the cluster has no leader, after ")
    assert api.requests == []


@pytest.mark.parametrize("leads", [True, False])
def test_conflicting_leader_information_stops_the_switchover(api: Api, leads: bool) -> None:
    api.leads, api.leader = leads, "n2" if leads else "n1"
    here = "leads, too" if leads else "does not lead"
    assert f"the leader is {api.leader}, but the member at {api.url} {here}: is it n1?" in refusal(api)
    assert api.requests == []


def test_lagging_member_does_not_take_over(api: Api) -> None:
    api.own["replication"][0]["state"] = "catchup"
    assert refusal(api).startswith("no other member streams from n1, after ")
    assert refusal(api, candidate="n2").startswith("n2 does not stream from n1, after ")
    del api.own["replication"]
    assert refusal(api).startswith("no other member streams from n1, after ")
    assert api.requests == []


def test_it_refuses_where_no_switchover_can_be_right(api: Api) -> None:
    assert refusal(api, member="db") == "the cluster has no member db: set the option 'member' to one of n1, n2"
    assert refusal(api, candidate="n3") == "n3 cannot take over: the other members are n2"
    assert refusal(api, candidate="n1") == "n1 cannot take over: the other members are n2"
    api.leader_role = "standby_leader"
    assert refusal(api).startswith("this is a standby cluster")
    assert api.requests == []


def test_credentials_go_with_the_switchover_alone(api: Api, tmp_path: Path) -> None:
    file = tmp_path / "credentials"
    assert f"the credentials cannot be read: {file}: No such file" in refusal(api, credentials=str(file))
    file.write_text("secret\n")
    assert refusal(api, credentials=str(file)).startswith(f"{file} must have USER:PASSWORD in its first line")
    file.write_text("user:pass word\nnot this\n")
    api.switchover = (401, "no auth header received")
    assert refusal(api, credentials=str(file)).startswith("Patroni's REST API refuses a switchover (401)")
    api.switchover = (503, "not for user:pass word, whose password is pass word")
    assert "(503): not for ***, whose password is ***, after" in refusal(api, credentials=str(file))
    api.switchover = (200, "")
    run(api, credentials=str(file), candidate="n2")
    assert {authorization for _path, _body, authorization in api.requests} == {
        "Basic " + base64.b64encode(b"user:pass word").decode()
    }
    assert api.requests[-1][1] == {"leader": "n1", "candidate": "n2"}


@pytest.mark.parametrize("raw", [b"", b"<html>", b"[]", b"{}", b'{"members": []}'])
def test_what_is_no_cluster_is_told(api: Api, raw: bytes) -> None:
    api.raw = raw
    assert refusal(api).startswith("Patroni does not know its cluster (200): ")


def test_unreachable_api_and_bad_ca_file_are_reported(api: Api, tmp_path: Path) -> None:
    assert "Patroni does not answer: 127.0.0.1 port 1: Connection refused" in refusal(api, url="http://127.0.0.1:1")
    message = refusal(api, url="https://127.0.0.1:1", ca_file=str(tmp_path / "ca.pem"))
    assert message == f"Patroni does not answer: {tmp_path}/ca.pem cannot be used: No such file or directory"


def test_member_that_does_not_stream_is_not_recovered(api: Api) -> None:
    api.leader, api.own = "n2", {"state": "starting", "role": "replica"}
    assert refusal(api, RECOVER).startswith("PostgreSQL of n1 is in state 'starting', after ")
    api.pause = True
    assert "and the cluster is paused, so Patroni does not start it" in refusal(api, RECOVER)
    api.own = {"state": "running", "role": "replica"}
    api.others = [
        {"state": "running", "role": "master", "replication": [{"application_name": "n1", "state": "catchup"}]}
    ]
    assert refusal(api, RECOVER).startswith("n1 runs, and does not stream from n2 yet, after ")
    api.others[0]["replication"] = [{"application_name": "n1", "state": "streaming"}]
    run(api, RECOVER)


def test_stopped_member_is_not_awaited(api: Api, tmp_path: Path) -> None:
    api.leader, api.own = "n2", {"state": "stopped", "role": "replica"}
    run(api, memory=tmp_path / "memory")
    run(api, RECOVER, memory=tmp_path / "memory")
    assert not (tmp_path / "memory").exists()
    assert "state 'stopped'" in refusal(api, RECOVER, memory=tmp_path / "memory")
