# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pacemaker: puts this node into standby (crm_attribute(8), crm_mon(8), crm_node(8))."""

from __future__ import annotations

from typing import NamedTuple
from xml.etree import ElementTree

from .common.declaration import USERS, HookKind, Requirements
from .common.effect import EffectStatus, absent, complete, incomplete
from .common.work import HookFailedError, NotReadyError, Work

_ATTRIBUTE, _MONITOR, _NODE = "crm_attribute", "crm_mon", "crm_node"
# Exit codes (crm_error --exit) that waiting does not change: wrong words, no permission.
_FINAL = (4, 64, 77)
# The user of Pacemaker's daemons, who may do all in the cluster. Root in a sandbox may not open what they share.
_AS_USER = ("setpriv", "--reuid=hacluster", "--regid=haclient", "--init-groups", "--")


class _Cluster(NamedTuple):
    """What the cluster knows: this node, nodes that could take its resources, those that run here, actions."""

    name: str
    online: bool
    standby: bool
    others: int
    running: tuple[str, ...]
    pending: tuple[str, ...]


def _prepare(work: Work) -> str:
    """Put this node into standby, or return why it cannot be now."""
    cluster = _read_cluster(work)
    if cluster.running and not cluster.others and not cluster.standby:
        return f"no other node is online to take what runs on {cluster.name}: {', '.join(cluster.running)}"
    if not cluster.standby:
        if work.notes.get("standby"):
            work.forget()  # somebody has ended it since, so that this one is the hook's own
        work.remember(standby=False)
        # Not for the lifetime of a boot: the resources would come back before what else the policy recovers first.
        _run_program(work, _ATTRIBUTE, *_standby_of(cluster), "--update", "on")
    return ""


def _check_prepared(work: Work) -> EffectStatus:
    cluster = _read_cluster(work)
    if not cluster.standby:
        return absent(f"{cluster.name} is not in standby")
    work.notes["standby"] = True
    work.remember(standby=True)
    if cluster.running:
        return incomplete(f"on {cluster.name} there still runs {', '.join(cluster.running)}")
    if cluster.pending:
        return incomplete(f"elsewhere there is not done: {', '.join(cluster.pending)}")
    return complete(f"{cluster.name} is in standby, and nothing runs there")


def _recover(work: Work) -> str:
    _run_program(work, _ATTRIBUTE, *_standby_of(_read_cluster(work)), "--delete")
    return ""


def _check_recovered(work: Work) -> EffectStatus:
    cluster = _read_cluster(work)
    if cluster.standby and work.memory.get("standby") is False:
        return absent(f"{cluster.name} is in standby")
    if not cluster.online:
        return incomplete(f"{cluster.name} is not online in the cluster: see crm_mon")
    return complete(f"{cluster.name} is {'in standby as before, and stays so' if cluster.standby else 'online'}")


def _standby_of(cluster: _Cluster) -> tuple[str, ...]:
    return ("--node", cluster.name, "--name", "standby", "--lifetime", "forever")


def _read_cluster(work: Work) -> _Cluster:
    own = _run_program(work, _NODE, "--name").strip()
    try:
        root = ElementTree.fromstring(_run_program(work, _MONITOR, "--one-shot", "--inactive", "--output-as", "xml"))  # noqa: S314 - of the local cluster
    except ElementTree.ParseError as error:
        raise NotReadyError(f"{_MONITOR} answered no XML: {error}") from error
    nodes = {str(node.get("name")): node for node in root.findall("./nodes/node")}
    if own not in nodes:
        raise NotReadyError(f"the cluster does not know {own} yet")
    running, pending = [], []
    for resource in root.iterfind("./resources//resource"):
        name = str(resource.get("id"))
        if own in [node.get("name") for node in resource.findall("node")]:
            running.append(name if resource.get("managed") == "true" else f"{name} (unmanaged)")
        if resource.get("pending"):
            pending.append(f"{name} ({resource.get('pending')})")
    others = sum(1 for name, node in nodes.items() if name != own and _available(node))
    node = nodes[own]
    online = node.get("online") == "true" and node.get("pending") != "true"
    return _Cluster(own, online, node.get("standby") == "true", others, tuple(running), tuple(pending))


def _available(node: ElementTree.Element) -> bool:
    states = {state: node.get(state) == "true" for state in ("online", "standby", "maintenance", "pending", "shutdown")}
    return states.pop("online") and not any(states.values())


def _run_program(work: Work, *words: str) -> str:
    done = work.run(*_AS_USER, *words, check=False)
    if done.code == 0:
        return done.output
    text = f"{words[0]} failed: {done.message}"
    raise (HookFailedError if done.code in _FINAL else NotReadyError)(text)


KIND = HookKind(
    name="pacemaker",
    summary="Puts this node of a Pacemaker cluster into standby, and waits until its resources run elsewhere.",
    prepares="It sets the node's attribute standby, if another node is online: the cluster moves the resources away.",
    recovers="It deletes the attribute, once Pacemaker runs on this node again.",
    effect="It waits until nothing runs on the node and no action is pending, and after the event until it is online.",
    repeatable="A node in standby is only waited for. One that was in standby before stays so.",
    requirements="Pacemaker must start at boot, or somebody has to start it before the node can come back.",
    tried_with="Pacemaker 2.1 with Corosync 3.1: a service that clients use, under a reboot and a power cut",
    options=(),
    prepare=_prepare,
    check_prepared=_check_prepared,
    recover=_recover,
    check_recovered=_check_recovered,
    needs=lambda _options: Requirements(programs=(_ATTRIBUTE, _MONITOR, _NODE, _AS_USER[0]), sandbox=(USERS,)),
)
