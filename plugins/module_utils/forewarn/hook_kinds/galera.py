# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Galera: takes a node of a MariaDB cluster out of it in order (MariaDB's documentation, "Galera Cluster")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .common.declaration import INTEGER, PATH, TEXT, HookKind, Option, Requirements
from .common.effect import EffectStatus, absent, complete, incomplete
from .common.work import HookFailedError, Work
from .galera_node import query, read_node, reason_to_stay

_STOPPED = ("inactive", "failed")
# A node that was frozen claims what was true before, until it notices. A read that waits for the earlier writes of the
# cluster needs answers of the others, so it fails as long as they have excluded the node.
_CAUSAL_READ = "SET SESSION wsrep_sync_wait = 1; SELECT COUNT(*) FROM information_schema.SCHEMATA"


def _prepare(work: Work) -> str:
    """Stop the unit, or return why the cluster needs this node now."""
    needed = reason_to_stay(work)
    if needed:
        return needed
    if not work.memory.get("running", True):
        work.forget()  # somebody has started it since
    work.remember(running=True)
    work.run("systemctl", "--no-ask-password", "stop", "--", str(work.options["unit"]))
    return ""


def _check_prepared(work: Work) -> EffectStatus:
    unit, state = work.options["unit"], _active_state(work)
    if state == "deactivating":
        return incomplete(f"{unit} is {state}")
    if state not in _STOPPED:
        return absent(f"{unit} is {state}")
    work.remember(running=False)
    return complete(f"{unit} does not run")


def _recover(work: Work) -> str:
    # It returns at once: a node that needs a copy of all data takes its time, and is waited for.
    work.run("systemctl", "--no-ask-password", "--no-block", "start", "--", str(work.options["unit"]))
    work.notes["started"] = True
    return ""


def _check_recovered(work: Work) -> EffectStatus:
    """Check that the node has all data of the cluster."""
    unit = str(work.options["unit"])
    if _active_state(work) in _STOPPED:
        if not work.memory.get("running"):
            return complete(f"{unit} does not run, and this hook has not stopped it: it is left as it is")
        failed = f"{unit} does not run: 'journalctl --unit={unit}' says why"
        return incomplete(failed) if work.notes.get("started") else absent(failed)
    try:
        query(work, _CAUSAL_READ)
        node = read_node(work)
    except HookFailedError as error:
        return incomplete(str(error))
    return (
        complete(f"the node is synced, one of {node.size}")
        if node.is_synced
        else incomplete(f"this node is {node.state}")
    )


def _active_state(work: Work) -> str:
    unit = str(work.options["unit"])
    shown = work.run("systemctl", "show", "--property=ActiveState,Job,LoadState", "--", unit).output
    values = dict(line.partition("=")[::2] for line in shown.splitlines())
    if values.get("LoadState") == "not-found":
        raise HookFailedError(f"there is no unit {unit}: name MariaDB's by the option 'unit'")
    state = values.get("ActiveState", "")
    # Soon after a boot it may be about to start.
    return "activating" if state in _STOPPED and values.get("Job") else state


def _needs(options: Mapping[str, Any]) -> Requirements:
    return Requirements(programs=("mariadb", "systemctl"), units=(str(options["unit"]),) if "unit" in options else ())


KIND = HookKind(
    name="galera",
    summary="Stops a node of a MariaDB Galera cluster in order, and waits until it has rejoined.",
    prepares=(
        "It stops MariaDB on this VM, if enough other nodes are synced. The node leaves its cluster in order: "
        "the others go on at once, where they would wait for a node that is frozen or gone."
    ),
    recovers=(
        "It starts MariaDB, if it stopped it and nothing has started it since, "
        "and waits until the node is synced. A state transfer may take long: choose the timeout for it."
    ),
    effect=(
        "It waits until the unit is inactive. After the event it waits until the node answers a read that includes "
        "all earlier writes of the cluster: a node that was frozen says that it is synced before it notices the others."
    ),
    repeatable="A server that is stopped is left so. One that was stopped before the event stays stopped after it.",
    requirements=(
        "Root may log in by the socket (unix_socket), or the file of 'defaults_file' has a user and a password. "
        "Only with that file are the other nodes asked whether they are synced; "
        "without it, all nodes that are in the cluster count. "
        "Clients of the node are cut off: drain its load balancer by a hook before this one. "
        "To desync the node instead would not help: in a freeze the others wait for a desynced node too."
    ),
    tried_with="MariaDB 10.11 and Galera 4, three nodes",
    options=(
        Option(
            "remaining",
            INTEGER,
            "How many other nodes must be synced, or the hook fails. With 2, the loss of another node can be survived.",
            2,
            default=2,
            minimum=1,
            maximum=100,
        ),
        Option("unit", TEXT, "The unit of MariaDB.", "mariadb.service", default="mariadb.service"),
        Option(
            "defaults_file",
            PATH,
            "An option file of the client, with a user and a password that all nodes accept. "
            "The user needs no privilege but USAGE.",
            "/etc/forewarn/galera.cnf",
        ),
    ),
    prepare=_prepare,
    check_prepared=_check_prepared,
    recover=_recover,
    check_recovered=_check_recovered,
    needs=_needs,
    timeout_seconds=600.0,
)
