# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Patroni: switches the primary of a PostgreSQL cluster over by the REST API (Patroni's manual, "Patroni REST API")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .common.declaration import NETWORK, PATH, TEXT, URL, HookKind, Option, Requirements
from .common.effect import EffectStatus, absent, complete, incomplete, no_action
from .common.work import HookFailedError, Work
from .patroni_api import STANDBY_LEADER, is_leader, read_cluster, read_status, reply_text, request, streaming_members

# Roles of a PostgreSQL that takes writes; since version 4 Patroni says primary.
_WRITABLE = ("master", "primary")
_STOPPED = ("stopped", "start failed", "crashed")
_URL = "http://127.0.0.1:8008"
_SWITCHOVER_SECONDS = 120.0  # Patroni answers when it is over: after 2 to 3 s, or when its own patience ends


def _prepare(work: Work) -> str:
    """Request a switchover, or return why no other member can take over now."""
    cluster = read_cluster(work)
    candidate = work.options.get("candidate")
    if cluster.leader != cluster.own:
        return ""
    if cluster.members[cluster.own]["role"] == STANDBY_LEADER:
        raise HookFailedError("this is a standby cluster, whose leader takes no writes: use a run hook for it")
    if cluster.is_paused:
        raise HookFailedError(
            f"{cluster.own} is the primary of a paused cluster, in which somebody works: see 'patronictl resume'"
        )
    if candidate is not None and (candidate not in cluster.members or candidate == cluster.own):
        others = sorted(set(cluster.members) - {cluster.own})
        raise HookFailedError(f"{candidate} cannot take over: the other members are {', '.join(others) or 'none'}")
    # One that does not stream, soon after a failover, may lack what this member has committed.
    ready = streaming_members(work) & ({candidate} if candidate is not None else set(cluster.members))
    if not ready:
        return f"{candidate or 'no other member'} {'does not stream' if candidate else 'streams'} from {cluster.own}"
    return _switch_over(work, cluster.own, candidate)


def _check_prepared(work: Work) -> EffectStatus:
    """Check that another member is a primary that takes writes. Its status is read last: it needs the leader lock."""
    try:
        cluster = read_cluster(work)
        if "stopped" not in work.memory:
            work.remember(stopped=read_status(work)["state"] in _STOPPED)
        leads = is_leader(work)
    except HookFailedError as error:
        if not work.notes:
            raise
        return incomplete(str(error))  # an API that has answered will answer again
    work.notes["answered"] = True
    own, leader = cluster.own, cluster.leader
    if leader is None:
        return incomplete("the cluster has no leader")
    if (leader == own) != leads:
        here = "leads, too" if leads else "does not lead"
        return incomplete(f"the leader is {leader}, but the member at {work.options['url']} {here}: is it {own}?")
    if leads:
        return absent(f"{own} leads")
    waits = _takes_no_writes(work, leader, cluster.members[leader])
    return incomplete(waits) if waits else complete(f"{leader} is the primary and takes writes, {own} is not")


def _switch_over(work: Work, own: str, candidate: str | None) -> str:
    """Request a switchover; return what Patroni says. Only ``_check_prepared`` tells whether another member leads."""
    body = {"leader": own, **({} if candidate is None else {"candidate": candidate})}
    try:
        reply = request(work, "POST", "/switchover", body, _SWITCHOVER_SECONDS)
    except HookFailedError as error:  # the switchover may continue
        return str(error)
    if reply.status in (401, 403):
        raise HookFailedError(
            f"Patroni's REST API refuses a switchover ({reply.status}): it wants other credentials, "
            "which are a file that the option 'credentials' names"
        )
    if reply.status != 200:
        return f"Patroni does not switch over ({reply.status}): {reply_text(reply)}"
    return "Patroni has switched over"


def _takes_no_writes(work: Work, name: str, member: Mapping[str, Any]) -> str:
    """Return why a leader does not take writes, by its own status: a member is elected before it is promoted."""
    try:
        found = read_status(work, member)
    except HookFailedError as error:
        return f"{name} leads: {error}"
    takes_writes = found["state"] == "running" and found["role"] in _WRITABLE
    return "" if takes_writes else f"{name} leads, and does not take writes yet"


def _check_recovered(work: Work) -> EffectStatus:
    """Check that this member runs, and streams from another one or is the primary."""
    if work.memory.get("stopped"):
        return complete("PostgreSQL did not run here before the event, so it is left as it is")
    try:
        own = read_status(work)
        cluster = read_cluster(work)
    except HookFailedError as error:
        return incomplete(str(error))
    name, leader = cluster.own, cluster.leader
    if own["state"] != "running":
        pause = ", and the cluster is paused, so Patroni does not start it" if cluster.is_paused else ""
        return incomplete(f"PostgreSQL of {name} is in state '{own['state']}'{pause}")
    if leader is None:
        return incomplete("the cluster has no leader")
    if leader == name:
        waits = incomplete(f"{name} leads, and does not take writes yet")
        return complete(f"{name} is the primary") if own["role"] in _WRITABLE else waits
    for other in sorted(set(cluster.members) - {name}, key=lambda one: one != leader):
        if name in streaming_members(work, cluster.members[other]):  # a replica may stream from another replica
            return complete(f"{name} streams from {other}")
    return incomplete(f"{name} runs, and does not stream from {leader} yet")


KIND = HookKind(
    name="patroni",
    summary="Makes another member of a Patroni cluster the primary, if this VM has it.",
    prepares=(
        "It asks Patroni for a switchover where this member is the leader, once another member streams from it. "
        "It does nothing to a replica."
    ),
    recovers="It waits until PostgreSQL runs here again. It does not switch back.",
    effect=(
        "It waits until another member leads and says that it takes writes. "
        "After the event it waits until this member streams from another one, or is the primary."
    ),
    repeatable="A member that is not the leader, or no longer, is left as it is. So no switchover is done twice.",
    requirements=(
        "Patroni's REST API answers on the VM, and those of the other members can be reached from it. "
        "It refuses in a paused cluster and in a standby cluster, and fails where no replica can take over."
    ),
    tried_with="Patroni 3.0, PostgreSQL 15 and etcd 3.4: three members, with and without synchronous_mode",
    options=(
        Option("url", URL, "The REST API of the member on this VM.", _URL, default=_URL),
        Option("member", TEXT, "The name of this member, if it is not the VM's host name.", "${vm.name}"),
        Option("candidate", TEXT, "The member that shall lead. Otherwise Patroni chooses the best one.", "db-2"),
        Option(
            "credentials",
            PATH,
            "A file with USER:PASSWORD of the REST API, if it has a password (restapi.authentication).",
            "/etc/forewarn/patroni",
        ),
        Option(
            "ca_file",
            PATH,
            "A file with the certificate authorities of the REST API (PEM), if the system does not know them.",
            "/etc/ssl/certs/patroni-ca.pem",
        ),
    ),
    prepare=_prepare,
    check_prepared=_check_prepared,
    recover=no_action,
    check_recovered=_check_recovered,
    needs=lambda _options: Requirements(sandbox=(NETWORK,)),  # the other members are asked, too
)
