# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HAProxy: drains a server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .declaration import CHOICE, NETWORK, TEXT, HookKind, Option, Requirements
from .haproxy_api import FORCED_DRAIN, TAKEN_OUT, Server, ServerState
from .work import Work

_IDLE, _NO_WAIT = "idle", "none"
_EVERY = 0.25  # seconds between two looks


def _prepare(work: Work) -> None:
    server = Server(work)
    state = server.state()
    if state.admin & TAKEN_OUT:
        work.say(f"{server.name} is out of service already")
    else:
        _drain(work, server, state)
    work.wait(lambda: _not_drained(work, server) or _in_use(work, server), _EVERY)
    work.say(f"{server.name} is drained")


def _recover(work: Work) -> None:
    server = Server(work)
    if not work.memory.get("drained"):
        work.say(f"{server.name} was not drained by this hook, and stays as it is")
        return
    admin = _reached(work, server).admin
    if admin & TAKEN_OUT & ~FORCED_DRAIN:
        work.say(f"somebody has taken {server.name} out of service meanwhile: it stays so")
        return
    up = bool(work.memory.get("up"))
    if admin & FORCED_DRAIN:
        # What the checks found before the event must not count: a server can reboot faster than they notice. A server
        # without checks would stay down, and one with sessions is in use.
        if up and server.last_check() and not server.sessions() and not server.ordered("health down"):
            work.wait(lambda: _not_up(server), _EVERY)
        server.order("state ready")
    if up:
        work.wait(lambda: _not_up(server), _EVERY)
    work.say(f"{server.name} is {'up' if up else 'ready: it was down before the event'}")


def _drain(work: Work, server: Server, state: ServerState) -> None:
    work.remember(drained=True, up=not state.stopped)
    server.order("state drain")


def _reached(work: Work, server: Server) -> ServerState:
    """Wait until HAProxy answers: after a reboot it may not be up yet."""
    found: list[ServerState] = []

    def missing() -> str:
        found.append(server.state())
        return ""

    work.wait(missing, _EVERY)
    return found[0]


def _not_drained(work: Work, server: Server) -> str:
    state = server.state()
    if state.admin & TAKEN_OUT:
        return ""
    _drain(work, server, state)
    return f"{server.name} was put back, perhaps by a reload of HAProxy: drained again"


def _in_use(work: Work, server: Server) -> str:
    if work.options["wait"] != _IDLE:
        return ""
    count = server.sessions()
    if count:
        return f"{count} session{'' if count == 1 else 's'} open on {server.name}"
    # A process of HAProxy that began since the state was asked counts none, and knows nothing of the drain.
    return _not_drained(work, server)


def _not_up(server: Server) -> str:
    if not server.state().stopped:
        return ""
    last = server.last_check()
    return f"{server.name} is not up yet{f', by the checks of HAProxy: the last says {last}' if last else ''}"


def _needs(options: Mapping[str, Any]) -> Requirements:
    where = str(options.get("socket", ""))
    if where.startswith("/"):
        return Requirements(sockets=(where,))
    return Requirements(sandbox=(NETWORK,))


KIND = HookKind(
    name="haproxy",
    summary="Drains a server of HAProxy by its runtime API, and waits until its sessions have ended.",
    prepares="It sets the server to drain: HAProxy sends it no new sessions, but for those with a cookie for it.",
    recovers="It lets HAProxy's checks find the server up anew, sets it to ready, and waits until it is up.",
    effect=(
        "It waits until HAProxy counts no session on the server and none queued for it, and after the event until the"
        " server is up. A server that was down before the event is not waited for."
    ),
    repeatable=(
        "A server that is drained already is only waited for. One that a person, or the configuration, took out of"
        " service before or during the event stays so. Where a reload of HAProxy forgets the drain, it drains again,"
        " until the hook has ended; it does not see the sessions that HAProxy's former process still serves."
    ),
    requirements=(
        "A stats socket with `level admin`. One that does not belong to root needs `files` in `forewarn_hooks_need`."
        " Two load balancers are two hooks. The server needs checks (`check`): without them HAProxy sends it requests"
        " before the application is up."
    ),
    tried_with="HAProxy 2.6",
    options=(
        Option(
            "socket",
            TEXT,
            "The stats socket: a path, or HOST:PORT, with an IPv6 address in brackets.",
            "/run/haproxy/admin.sock",
            True,
            pattern=r"/[^\0-\x1f]+|\S+:[0-9]{1,5}",
            wording="a path or HOST:PORT",
        ),
        Option(
            "server",
            TEXT,
            "The server, as HAProxy's configuration names it.",
            "web/${vm.name}",
            True,
            pattern=r"[^\s/;]+/[^\s/;]+",
            wording="BACKEND/SERVER",
        ),
        Option(
            "wait",
            CHOICE,
            "idle: until no session is open; without time for the longest, the hook fails. none: not at all.",
            _IDLE,
            default=_IDLE,
            choices=(_IDLE, _NO_WAIT),
        ),
    ),
    prepare=_prepare,
    recover=_recover,
    needs=_needs,
)
