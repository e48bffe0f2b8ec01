# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HAProxy: drains a server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .common.declaration import CHOICE, NETWORK, TEXT, HookKind, Option, Requirements
from .common.effect import EffectStatus, absent, complete, incomplete
from .common.work import Work
from .haproxy_api import FORCED_DRAIN, TAKEN_OUT, Server

_IDLE, _NO_WAIT = "idle", "none"
_EVERY = 0.25  # seconds between two looks


def _prepare(work: Work) -> str:
    server = Server(work)
    work.remember(drained=True, up=not server.state().stopped)
    server.set("state drain")
    return ""


def _check_prepared(work: Work) -> EffectStatus:
    server = Server(work)
    # The state is asked last: a process of HAProxy that has just begun counts no session, and knows of no drain.
    count = server.sessions() if work.options["wait"] == _IDLE else 0
    if not server.state().admin & TAKEN_OUT:
        return absent(f"{server.name} is in service, perhaps after a reload of HAProxy")
    if count:
        return incomplete(f"{count} session{'' if count == 1 else 's'} open on {server.name}")
    return complete(f"{server.name} is drained")


def _recover(work: Work) -> str:
    server = Server(work)
    # What the checks found before the event must not count: a server can reboot faster than they notice. A server
    # without checks would stay down, and one with sessions is in use.
    if "checking" not in work.notes:
        anew = work.memory.get("up") and server.last_check() and not server.sessions()
        work.notes["checking"] = bool(anew and not server.try_to_set("health down"))
    if work.notes["checking"] and server.state().stopped:
        return _not_up(server)
    server.set("state ready")
    return ""


def _check_recovered(work: Work) -> EffectStatus:
    server = Server(work)
    if not work.memory.get("drained"):
        return complete(f"{server.name} was not drained by this hook, and stays as it is")
    state, up = server.state(), work.memory.get("up")
    if state.admin & TAKEN_OUT & ~FORCED_DRAIN:
        return complete(f"somebody has taken {server.name} out of service meanwhile: it stays so")
    if state.admin & FORCED_DRAIN:
        return absent(f"{server.name} drains")
    if up and state.stopped:
        return incomplete(_not_up(server))
    return complete(f"{server.name} is {'up' if up else 'ready: it was down before the event'}")


def _not_up(server: Server) -> str:
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
    check_prepared=_check_prepared,
    recover=_recover,
    check_recovered=_check_recovered,
    poll_seconds=_EVERY,
    needs=_needs,
)
