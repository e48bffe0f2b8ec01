# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A server of HAProxy, by the runtime API of its stats socket (HAProxy's management guide, "Unix Socket commands")."""

from __future__ import annotations

import csv
import socket
from typing import NamedTuple

from .common.work import HookFailedError, NotReadyError, Work

# Bits of srv_admin_state: taken out of service by a person, the configuration, or a server that this one tracks.
FORCED_DRAIN, TAKEN_OUT = 0x08, 0x1F
_QUOTED = 200  # characters of an answer
_PATIENCE_SECONDS = 5.0


class ServerState(NamedTuple):
    """``admin`` are the bits of srv_admin_state. ``stopped``: the checks found it down."""

    admin: int
    stopped: bool


class Server:
    """The server in the option ``server``: BACKEND/SERVER. All methods raise HookFailedError."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._where = str(work.options["socket"])
        self.name = str(work.options["server"])

    def state(self) -> ServerState:
        """Return the server's state by ``show servers state``: only that tells whether a draining server is down."""
        backend, _slash, server = self.name.partition("/")
        answer = self._ask(f"show servers state {backend}")
        lines = answer.splitlines()
        columns = next((line for line in lines if line.startswith("# ")), "")[2:].split()
        for line in lines:
            row = dict(zip(columns, line.split()))
            if row.get("srv_name") == server and "srv_admin_state" in row:
                return ServerState(int(row["srv_admin_state"]), row["srv_op_state"] == "0")
        raise self._unknown("" if columns else answer)

    def sessions(self) -> int:
        """Return how many sessions the server has, with those in its queue, by ``show stat``."""
        row = self._statistics()
        return int(row.get("scur") or 0) + int(row.get("qcur") or 0)

    def last_check(self) -> str:
        """Return the result of HAProxy's last check of the server; empty if it has no check."""
        return self._statistics().get("check_status") or ""

    def set(self, what: str) -> None:
        """Set ``what`` of the server: ``state drain``."""
        answer = self.try_to_set(what)
        if answer:
            hint = "; its stats socket needs 'level admin'" if answer.startswith("Permission denied") else ""
            raise HookFailedError(f"HAProxy refused 'set server {self.name} {what}': {answer}{hint}")

    def try_to_set(self, what: str) -> str:
        """Set ``what`` of the server; return why HAProxy refused, or an empty text."""
        return _quoted(self._ask(f"set server {self.name} {what}"))

    def _statistics(self) -> dict[str, str]:
        answer = self._ask("show stat")
        for row in csv.DictReader(answer[2:].splitlines()):
            if f"{row.get('pxname')}/{row.get('svname')}" == self.name:
                return row
        raise self._unknown("" if answer.startswith("# ") else answer)

    def _unknown(self, answer: str) -> HookFailedError:
        said = _quoted(answer)
        return HookFailedError(f"HAProxy knows no server {self.name}{': ' if said else ''}{said}")

    def _ask(self, command: str) -> str:
        patience = max(0.1, min(_PATIENCE_SECONDS, self._work.seconds_left))
        try:
            with _connect(self._where, patience) as connection:
                connection.sendall(command.encode("utf-8") + b"\n")
                return b"".join(iter(lambda: connection.recv(65536), b"")).decode("utf-8", "replace")
        except PermissionError as error:
            need = "files" if self._where.startswith("/") else "network"
            raise HookFailedError(
                f"the runner may not connect to {self._where}: that can need forewarn_hooks_need: [{need}]"
            ) from error
        except (OSError, OverflowError, UnicodeError) as error:
            why = getattr(error, "strerror", None) or error
            raise NotReadyError(f"HAProxy does not answer at {self._where}: {why}") from error


def _quoted(answer: str) -> str:
    return " ".join(answer.split())[:_QUOTED]


def _connect(where: str, patience: float) -> socket.socket:
    if not where.startswith("/"):
        host, _colon, port = where.rpartition(":")
        return socket.create_connection((host.strip("[]"), int(port)), patience)
    connection = socket.socket(socket.AF_UNIX)  # type: ignore[attr-defined,unused-ignore]  # Windows: no HAProxy either
    connection.settimeout(patience)
    try:
        connection.connect(where)
    except OSError:
        connection.close()
        raise
    return connection
