# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a command reports while it waits, and what it does not."""

from __future__ import annotations

import io
import threading

from forewarn.cli.output.console import Console
from forewarn.cli.output.progress import slow_start, waiting
from forewarn.imds.client import Client
from tools.servers.scripted_imds import ScriptedServer, document
from tools.sites.waiting import wait_until


def console() -> tuple[Console, io.StringIO]:
    stream = io.StringIO()
    return Console(stream, {}), stream


def test_waiting_is_explained_once_and_then_timed() -> None:
    own, stream = console()
    with Client("http://127.0.0.1:9/vm/web_0") as client, waiting(client, own, 0.01, 0.01):
        wait_until(lambda: stream.getvalue().count("\n") >= 3)
    first, *others = stream.getvalue().splitlines()
    assert first.startswith("note: waiting for http://127.0.0.1:9/vm/web_0, for 0 s now. The first request in a day")
    assert {line.rpartition("for ")[2] for line in others} <= {f"{seconds} s now." for seconds in range(60)}


def test_nothing_is_said_once_the_service_has_answered() -> None:
    """What takes long afterwards, such as a hook of the runner, is not the service."""
    own, stream = console()
    with ScriptedServer(document()) as server, Client(server.url) as client:
        with waiting(client, own, 0.2, 0.01):
            client.read()
            threads = [thread for thread in threading.enumerate() if thread.name == "progress"]
            threads[0].join(30)
            assert not threads[0].is_alive()
        with waiting(client, own, 30.0):
            pass
    assert stream.getvalue() == ""


def test_a_stream_that_is_closed_does_no_harm() -> None:
    own, stream = console()
    stream.close()
    with Client("http://127.0.0.1:9") as client, waiting(client, own, 0.0, 30.0):
        pass


def test_slow_empty_document_is_warned_about() -> None:
    for seconds, said in ((4.9, False), (95.0, True)):
        own, stream = console()
        times = iter([100.0, 100.0 + seconds])
        slow_start(own, lambda times=times: next(times))()  # type: ignore[misc]  # mypy knows no default of a lambda
        assert ("note: the answer took 1 min 35 s. " in stream.getvalue()) is said
        assert ("up to five minutes to appear. Ask again then." in stream.getvalue()) is said
