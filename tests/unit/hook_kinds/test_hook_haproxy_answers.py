# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kind haproxy, where HAProxy refuses, talks nonsense or is not there: what the real one does not show."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from forewarn.hook_kinds.common.process import PREPARE, RECOVER, perform
from forewarn.hook_kinds.common.work import HookFailedError

EVENT = {"EventId": "1", "EventType": "Reboot"}
COLUMNS = "be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state"
UP = f"1\n# {COLUMNS}\n2 web 1 s1 127.0.0.1 2 0\n"
DRAINED = UP.replace("2 0\n", "2 8\n")
STATISTICS = "# pxname,svname,qcur,scur,status,check_status,\nweb,s1,{},{},UP,L7OK,\n"


class StatsSocket:
    """A stats socket. ``answers``: command -> its answer, or several, of which the last one stays."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.answers: dict[str, str | list[str]] = {}
        self.asked: list[str] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> StatsSocket:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def orders(self) -> list[str]:
        return [command for command in self.asked if command.startswith("set ")]

    def _serve(self) -> None:
        while True:
            try:
                connection = self._listener.accept()[0]
            except OSError:
                return
            with connection:
                command = connection.makefile().readline().strip()
                self.asked.append(command)
                answer = self.answers.get(command, "\n")
                if isinstance(answer, list):
                    answer = answer.pop(0) if len(answer) > 1 else answer[0]
                connection.sendall(answer.encode())


@pytest.fixture
def haproxy(tmp_path: Path) -> Iterator[StatsSocket]:
    with StatsSocket(tmp_path / "admin.sock") as server:
        server.answers = {"show servers state web": UP, "show stat": STATISTICS.format(0, 0)}
        yield server


@pytest.fixture
def memory(tmp_path: Path) -> str:
    return str(tmp_path / "memory.json")


def run(
    phase: str, where: Path | str, memory: str | None = None, seconds: float = 1.2, options: Mapping[str, str] = {}
) -> None:
    perform("haproxy", phase, {"socket": str(where), "server": "web/s1", **options}, EVENT, seconds, memory)


def test_a_socket_without_the_right_is_named(haproxy: StatsSocket) -> None:
    haproxy.answers["set server web/s1 state drain"] = "Permission denied\n\n"
    with pytest.raises(HookFailedError, match=r"refused 'set server web/s1 state drain': .*needs 'level admin'"):
        run(PREPARE, haproxy.path)


@pytest.mark.parametrize("answer", ["Can't find backend.\n\n", "220 mail.example ESMTP\n", "\xff\0\n", ""])
def test_an_answer_without_the_server_is_quoted(haproxy: StatsSocket, answer: str) -> None:
    haproxy.answers["show servers state web"] = answer
    with pytest.raises(HookFailedError, match=r"HAProxy knows no server web/s1") as caught:
        run(PREPARE, haproxy.path)
    assert answer.strip("\n\0") in str(caught.value)


def test_server_with_a_longer_name_is_not_matched(haproxy: StatsSocket) -> None:
    haproxy.answers["show servers state web"] = UP.replace(" s1 ", " s10 ")
    with pytest.raises(HookFailedError, match=r"HAProxy knows no server web/s1$"):
        run(PREPARE, haproxy.path)
    assert haproxy.orders() == []


def test_open_and_queued_sessions_are_counted(haproxy: StatsSocket) -> None:
    haproxy.answers["show servers state web"] = [UP, UP, DRAINED]
    haproxy.answers["show stat"] = STATISTICS.format(1, 2)
    with pytest.raises(HookFailedError, match=r"3 sessions open on web/s1, after \d s"):
        run(PREPARE, haproxy.path)


def test_wait_none_waits_for_no_session(haproxy: StatsSocket) -> None:
    haproxy.answers["show servers state web"] = [UP, UP, DRAINED]
    haproxy.answers["show stat"] = STATISTICS.format(0, 2)
    run(PREPARE, haproxy.path, options={"wait": "none"})
    assert haproxy.orders() == ["set server web/s1 state drain"]


def test_reload_before_the_count_ends_no_drain(haproxy: StatsSocket) -> None:
    """The process before the reload says that the server drains, the one after it that no session is open."""
    haproxy.answers["show servers state web"] = [UP, UP, DRAINED, UP, UP, DRAINED]
    run(PREPARE, haproxy.path)
    assert haproxy.orders() == ["set server web/s1 state drain"] * 2


def test_ineffective_order_is_a_failure(haproxy: StatsSocket) -> None:
    with pytest.raises(HookFailedError, match="web/s1 is in service"):
        run(PREPARE, haproxy.path)


@pytest.mark.parametrize("where", ["localhost:1", "[::1]:1", "localhost:99999"])
def test_an_address_where_nobody_answers_is_named(where: str) -> None:
    with pytest.raises(HookFailedError, match="HAProxy does not answer at"):
        run(PREPARE, where)


def test_a_recovery_without_a_preparation_changes_nothing(haproxy: StatsSocket, memory: str) -> None:
    haproxy.answers["show servers state web"] = DRAINED
    run(RECOVER, haproxy.path, memory)
    assert haproxy.orders() == []


def test_recovery_waits_for_a_starting_haproxy(tmp_path: Path, memory: str) -> None:
    path = tmp_path / "later.sock"
    Path(memory).write_text('{"drained": true, "up": true}')
    with pytest.raises(HookFailedError, match=r"HAProxy does not answer at .*, after \d s"):
        run(RECOVER, path, memory)
    assert Path(memory).exists(), "the next attempt has to know"
    with StatsSocket(path) as server:
        server.answers = {
            "show servers state web": [DRAINED, DRAINED, UP],
            "show stat": STATISTICS.format(0, 0),
        }
        run(RECOVER, path, memory)
        assert server.orders() == ["set server web/s1 health down", "set server web/s1 state ready"]
    assert not Path(memory).exists()


def test_server_without_checks_is_not_declared_down(haproxy: StatsSocket, memory: str) -> None:
    Path(memory).write_text('{"drained": true, "up": true}')
    haproxy.answers["show servers state web"] = [DRAINED, UP]
    haproxy.answers["show stat"] = STATISTICS.format(0, 0).replace("L7OK", "")
    run(RECOVER, haproxy.path, memory)
    assert haproxy.orders() == ["set server web/s1 state ready"]


def test_server_that_was_down_is_not_awaited(haproxy: StatsSocket, memory: str) -> None:
    down = UP.replace("2 0\n", "0 0\n")
    haproxy.answers["show servers state web"] = [down, down, DRAINED]
    run(PREPARE, haproxy.path, memory)
    haproxy.answers["show servers state web"] = [down.replace("0 0\n", "0 8\n"), down]
    run(RECOVER, haproxy.path, memory)
    assert haproxy.orders() == ["set server web/s1 state drain", "set server web/s1 state ready"]
