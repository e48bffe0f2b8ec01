# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from forewarn.system.posix.service_manager import MAX_STATUS_CHARACTERS, ServiceNotifier
from hypothesis import given
from hypothesis import strategies as st
from tools.fixtures.clocks import ManualClocks


class Systemd:
    """Listens where systemd would."""

    def __init__(self, path: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(path)
        self.socket.setblocking(False)

    def heard(self) -> list[str]:
        messages = []
        with suppress(BlockingIOError):
            while True:
                messages.append(self.socket.recv(65536).decode())
        return messages


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[Systemd]:
    systemd = Systemd(str(tmp_path / "notify"))
    yield systemd
    systemd.socket.close()


def notifier(systemd: Systemd, clocks: ManualClocks | None = None, **environ: str) -> ServiceNotifier:
    return ServiceNotifier(
        {"NOTIFY_SOCKET": systemd.socket.getsockname(), **environ}, (clocks or ManualClocks(1000.25)).monotonic
    )


def test_ready_comes_with_a_sentence(systemd: Systemd) -> None:
    notifier(systemd).ready("Nothing is scheduled.")
    assert systemd.heard() == ["READY=1\nSTATUS=Nothing is scheduled."]


def test_the_abstract_namespace_is_known() -> None:
    name = f"forewarn-test-{os.getpid()}"
    systemd = Systemd("\0" + name)
    with systemd.socket:
        ServiceNotifier({"NOTIFY_SOCKET": "@" + name}, ManualClocks(1000.25).monotonic).stopping()
        assert systemd.heard() == ["STOPPING=1"]


def test_a_status_is_sent_only_when_it_changes(systemd: Systemd) -> None:
    ours = notifier(systemd)
    ours.ready("fine")
    for text in ("fine", "draining", "draining", "fine"):
        ours.status(text)
    assert systemd.heard() == ["READY=1\nSTATUS=fine", "STATUS=draining", "STATUS=fine"]


def test_a_reload_says_when_it_began(systemd: Systemd) -> None:
    ours = notifier(systemd)
    ours.reloading()
    ours.ready("fine")
    assert systemd.heard() == ["RELOADING=1\nMONOTONIC_USEC=1000250000", "READY=1\nSTATUS=fine"]


def test_watchdog_is_notified_twice_per_interval(systemd: Systemd) -> None:
    clocks = ManualClocks(1000.25)
    ours = notifier(systemd, clocks, WATCHDOG_USEC="10000000", WATCHDOG_PID=str(os.getpid()))
    heard_at = []
    for _ in range(300):
        ours.watchdog()
        if systemd.heard():
            heard_at.append(clocks.now - 1000.25)
        clocks.now += 0.1
    assert heard_at == pytest.approx([0, 5, 10, 15, 20, 25], abs=0.2)


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"WATCHDOG_USEC": "0"},
        {"WATCHDOG_USEC": "-5"},
        {"WATCHDOG_USEC": "soon"},
        {"WATCHDOG_USEC": "9" * 400},
        {"WATCHDOG_USEC": "10", "WATCHDOG_PID": "1"},
        {"WATCHDOG_USEC": "10", "WATCHDOG_PID": "me"},
    ],
)
def test_a_watchdog_that_is_not_ours_hears_nothing(systemd: Systemd, environ: dict[str, str]) -> None:
    ServiceNotifier(
        {"NOTIFY_SOCKET": systemd.socket.getsockname(), **environ}, ManualClocks(1000.25).monotonic
    ).watchdog()
    assert systemd.heard() == []


def test_its_variables_are_taken_out_of_the_environment(systemd: Systemd) -> None:
    environ = {"NOTIFY_SOCKET": systemd.socket.getsockname(), "WATCHDOG_USEC": "1", "WATCHDOG_PID": "1", "PATH": "/bin"}
    ServiceNotifier(environ, ManualClocks(1000.25).monotonic)
    assert environ == {"PATH": "/bin"}


@pytest.mark.parametrize("address", [None, "", "relative", "vsock:2:1234", "/none/there", "@none-there", "/a\0b", "@"])
def test_without_systemd_nothing_happens(address: str | None) -> None:
    environ = {"WATCHDOG_USEC": "1"} if address is None else {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "1"}
    ours = ServiceNotifier(environ, ManualClocks(1000.25).monotonic)
    ours.ready("fine")
    ours.status("fine")
    ours.reloading()
    ours.watchdog()
    ours.stopping()


def test_undelivered_message_is_sent_again(tmp_path: Path) -> None:
    path = tmp_path / "notify"
    ours = ServiceNotifier({"NOTIFY_SOCKET": str(path), "WATCHDOG_USEC": "10000000"}, ManualClocks(1000.25).monotonic)
    ours.status("fine")
    ours.watchdog()
    systemd = Systemd(str(path))
    with systemd.socket:
        ours.status("fine")
        ours.watchdog()
        ours.watchdog()
        assert systemd.heard() == ["STATUS=fine", "WATCHDOG=1"]


def test_blocked_systemd_is_notified_later(systemd: Systemd) -> None:
    """The runner does not wait for it: not even for 100 ms, within which a hook that is due has to start."""
    clocks = ManualClocks(1000.25)
    ours = notifier(systemd, clocks, WATCHDOG_USEC="10000000")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.setblocking(False)
        with suppress(BlockingIOError):
            while True:  # until its queue is full
                other.sendto(b"x", systemd.socket.getsockname())
    started = time.monotonic()
    ours.reloading()
    ours.ready("fine")
    for _ in range(400):
        ours.status("draining")
        ours.watchdog()
    assert time.monotonic() - started < 2, "waiting 2.5 ms for each of 802 messages takes longer"
    assert set(systemd.heard()) == {"x"}
    ours.watchdog()
    ours.status("draining")
    assert systemd.heard() == [
        "RELOADING=1\nMONOTONIC_USEC=1000250000",
        "READY=1\nSTATUS=fine",
        "WATCHDOG=1",
        "STATUS=draining",
    ]


@given(text=st.one_of(st.text(), st.text(max_size=20).map(lambda text: f"{text}\nWATCHDOG=trigger\r\n{text}")))
def test_no_text_can_forge_a_message(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "forging"
    path.unlink(missing_ok=True)
    systemd = Systemd(str(path))
    with systemd.socket:
        notifier(systemd).status(text)
        (message,) = systemd.heard()
    assert message.startswith("STATUS=")
    assert message.isprintable()
    assert len(message.encode()) < 4096


def test_a_long_status_is_cut_visibly(systemd: Systemd) -> None:
    notifier(systemd).status("\U0001f9ca" * 5000)
    (message,) = systemd.heard()
    assert message == "STATUS=" + "\U0001f9ca" * (MAX_STATUS_CHARACTERS - 1) + "…"
    assert len(message.encode()) < 4096
