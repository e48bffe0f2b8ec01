# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Notifies systemd that the runner is ready, what its status is, and that it is alive (``sd_notify(3)``)."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, MutableMapping

from ...errors import InputError
from ...texts import escaped
from .signals import StopSignals

# systemd drops a datagram of more than 4096 bytes; one line of `systemctl status` shows less.
MAX_STATUS_CHARACTERS = 400
# Messages that wait until systemd reads again; the oldest beyond these are dropped.
_MOST_PENDING = 4


class ServiceNotifier:
    """Notifies the service manager, if there is one. ``monotonic`` is that clock, in seconds.

    Removes its variables from ``environ``: they are for this process alone, not for its children.

    Nothing here raises or blocks. What systemd has no room for is sent later, by ``watchdog`` at the next tick.
    """

    def __init__(self, environ: MutableMapping[str, str], monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic  # as systemd's watchdog
        self._status: str | None = None  # that systemd has accepted last
        self._pending: list[str] = []  # messages that systemd has not accepted yet
        self._address = _address(environ.pop("NOTIFY_SOCKET", ""))
        period = _watchdog_seconds(environ.pop("WATCHDOG_USEC", ""), environ.pop("WATCHDOG_PID", ""))
        self._interval = period / 2
        self._next_watchdog = monotonic()

    @property
    def enabled(self) -> bool:
        """Whether there is a service manager to notify."""
        return self._address is not None

    def ready(self, status: str) -> None:
        """Notify that the start or a reload has ended."""
        line = _line(status)
        self._send_reliably(f"READY=1\nSTATUS={line}")
        self._status = line

    def status(self, text: str) -> None:
        """Notify the status: a sentence for ``systemctl status``. It is sent only if it has changed."""
        line = _line(text)
        if line != self._status and self._flush() and self._send(f"STATUS={line}"):
            self._status = line

    def reloading(self) -> None:
        """Notify that a reload has begun; ``ready`` must follow."""
        # By the time, Type=notify-reload knows that this answers its latest signal and not an older one.
        self._send_reliably(f"RELOADING=1\nMONOTONIC_USEC={int(self._monotonic() * 1_000_000)}")

    def stopping(self) -> None:
        """Notify that the stop has begun."""
        self._send_reliably("STOPPING=1")

    def watchdog(self) -> None:
        """Notify, twice per WatchdogSec=, that the loop is alive. Call it every tick."""
        now = self._monotonic()
        if self._flush() and self._interval and now >= self._next_watchdog and self._send("WATCHDOG=1"):
            self._next_watchdog = now + self._interval

    def _send_reliably(self, message: str) -> None:
        self._pending = [*self._pending, message][-_MOST_PENDING:]
        self._flush()

    def _flush(self) -> bool:
        """Send what is pending; return whether systemd has accepted all of it."""
        while self._pending:
            if not self._send(self._pending[0]):
                return False
            del self._pending[0]
        return True

    def _send(self, message: str) -> bool:
        """Send a message; return whether systemd has accepted it."""
        if self._address is None:
            return False
        try:
            # A socket for each: there are few messages, and none is lost when systemd restarts.
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as connection:
                connection.setblocking(False)
                connection.connect(self._address)
                connection.send(message.encode())
        except (OSError, ValueError):  # systemd does not listen or read, or the address is not a path
            return False
        return True


def as_service(_work: Callable[[StopSignals], int]) -> int:
    """Raise InputError: systemd starts a service as anybody would."""
    raise InputError("--service is for a service of Windows: systemd needs no such option.", "Leave it out.")


def _address(text: str) -> str | None:
    """Return where systemd listens: at a path or, written with an @, in Linux's abstract namespace."""
    if not text.startswith(("/", "@")):
        return None  # there is no systemd, or it asks for another kind of socket (vsock)
    return "\0" + text[1:] if text.startswith("@") else text


def _watchdog_seconds(usec: str, pid: str) -> float:
    """Return the watchdog's period; 0 if there is none, or it is for another process."""
    try:
        return 0.0 if pid and int(pid) != os.getpid() else max(0, int(usec)) / 1_000_000
    except (ValueError, OverflowError):
        return 0.0


def _line(text: str) -> str:
    """Return the text as one line. Each line of a message is an assignment, so a line break could forge one."""
    line = escaped(text)
    return line if len(line) <= MAX_STATUS_CHARACTERS else line[: MAX_STATUS_CHARACTERS - 1] + "…"
