# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests of Patroni's REST API (Patroni's manual, "Patroni REST API")."""

from __future__ import annotations

import base64
import socket
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from .common.work import HookFailedError, HttpReply, Work

LEADER, STANDBY_LEADER = "leader", "standby_leader"


class Cluster(NamedTuple):
    """The answer to ``GET /cluster``. ``own`` is this member's name, ``leader`` the leader's or None."""

    own: str
    leader: str | None
    members: Mapping[str, Mapping[str, Any]]
    is_paused: bool


def read_cluster(work: Work) -> Cluster:
    """Return the cluster as Patroni's configuration store has it now. Raises HookFailedError."""
    reply = request(work, "GET", "/cluster")
    if reply.status != 200 or not isinstance(reply.body, dict) or not reply.body.get("members"):
        raise HookFailedError(f"Patroni does not know its cluster ({reply.status}): {reply_text(reply)}")
    members = {str(member["name"]): member for member in reply.body["members"]}
    leaders = [name for name, member in members.items() if member.get("role") in (LEADER, STANDBY_LEADER)]
    own = str(work.options.get("member") or socket.gethostname())
    if own not in members:
        raise HookFailedError(
            f"the cluster has no member {own}: set the option 'member' to one of {', '.join(members)}"
        )
    return Cluster(own, leaders[0] if leaders else None, members, bool(reply.body.get("pause")))


def is_leader(work: Work) -> bool:
    """Return whether this member says that it holds the leader lock. Raises HookFailedError."""
    return request(work, "GET", "/leader").status == 200


def read_status(work: Work, member: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
    """Return the status of PostgreSQL on a member, by default this one. Raises HookFailedError."""
    url = None if member is None else str(member.get("api_url"))
    reply = request(work, "GET", "/patroni", url=url)
    if not isinstance(reply.body, dict) or "state" not in reply.body:
        raise HookFailedError(f"Patroni does not say how PostgreSQL is ({reply.status}): {reply_text(reply)}")
    return {"role": "", **reply.body}


def streaming_members(work: Work, source: Mapping[str, Any] | None = None) -> set[str]:
    """Return the names of the members that stream from ``source``, by default this one; none if it does not answer."""
    try:
        senders = read_status(work, source).get("replication") or []
    except HookFailedError:
        return set()
    return {str(sender.get("application_name")) for sender in senders if sender.get("state") == "streaming"}


def request(
    work: Work, method: str, path: str, body: Any = None, seconds: float = 5.0, url: str | None = None
) -> HttpReply:
    """Send a request for a path of this member, or for another URL. Raises HookFailedError without a response."""
    headers = {}
    if method != "GET" and "credentials" in work.options:
        headers["Authorization"] = f"Basic {_credentials(work)}"
    whole = url or str(work.options["url"]).rstrip("/") + path
    ca_file = cast("str | None", work.options.get("ca_file"))
    try:
        return work.http(method, whole, body, headers, seconds, ca_file)
    except HookFailedError as error:
        raise HookFailedError(f"Patroni does not answer: {error}") from error


def _credentials(work: Work) -> str:
    path = str(work.options["credentials"])
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - without pathlib, as everything that runs at each event
            line = file.readline().strip()
    except OSError as error:
        raise HookFailedError(f"the credentials cannot be read: {path}: {error.strerror}") from error
    if b":" not in line:
        raise HookFailedError(f"{path} must have USER:PASSWORD in its first line")
    work.hide_secret(line)
    work.hide_secret(line.partition(b":")[2])
    return base64.b64encode(line).decode("ascii")


def reply_text(reply: HttpReply) -> str:
    """Return the body of a response, for a message."""
    return str(reply.body)[:300] or "it says nothing more"
