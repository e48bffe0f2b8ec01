# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""RabbitMQ: puts a node into maintenance mode (rabbitmq-upgrade(8), rabbitmq-diagnostics(8), rabbitmqctl(8))."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from .declaration import NETWORK, TEXT, USERS, HookKind, Option, Requirements
from .work import HookFailedError, NotYetError, Work

_UPGRADE, _DIAGNOSTICS, _CONTROL = "rabbitmq-upgrade", "rabbitmq-diagnostics", "rabbitmqctl"
_QUORUM_SECONDS = 3  # of one question whether the quorum is there: the hook says what it waits for in between
_USAGE = (1, 2, 64, 65, 77)  # exit codes of a command that will not succeed by waiting: wrong words, no permission
# Each question starts an Erlang of its own, which is up sooner with one scheduler that does not spin.
_ENVIRONMENT = {"ERL_FLAGS": "+S 1:1 +sbwt none"}
_MOVABLE = ("quorum", "stream")  # types of queues whose leader goes to another node


def _prepare(work: Work) -> None:
    work.wait(lambda: _undrained(work))
    work.wait(lambda: _led_here(work))
    work.say("the node is in maintenance mode, and leads no quorum queue")


def _recover(work: Work) -> None:
    work.wait(lambda: _unrevived(work))
    if _in_maintenance(work):
        work.say("the node was in maintenance mode before, and is so again")
        return
    work.wait(lambda: _members_down(work))
    work.say("the node is in service, and every quorum queue has the members online that it needs")


def _undrained(work: Work) -> str:
    """Return why the node cannot be drained now; else drain it."""
    with ThreadPoolExecutor() as pool:  # each question takes half a second
        asked, missed = pool.submit(_in_maintenance, work), pool.submit(_no_quorum, work)
    # Where the node is drained already its own members are offline, and the quorum cannot be there.
    if missed.result() and not asked.result():
        return missed.result()
    work.remember(maintenance=asked.result())
    _ask(work, _UPGRADE, "drain")
    return ""


def _unrevived(work: Work) -> str:
    maintenance = _in_maintenance(work)
    before = work.memory.get("maintenance", maintenance)  # without memory, this hook has drained nothing
    if maintenance != before:  # a restart ends the maintenance mode, a person's too
        _ask(work, _UPGRADE, "drain" if before else "revive")
    return ""


def _members_down(work: Work) -> str:
    """Return which queues miss members. Revive again: right after a drain, a revive leaves those down that led."""
    missing = _no_quorum(work)
    if missing and work.memory.get("maintenance") is False and not _in_maintenance(work):
        _ask(work, _UPGRADE, "revive")
    return missing


def _in_maintenance(work: Work) -> bool:
    return bool(_json(work, _DIAGNOSTICS, "status")["is_under_maintenance"])


def _led_here(work: Work) -> str:
    queues = _json(work, _CONTROL, "list_queues", "--local", "name", "type")
    left = [str(queue["name"]) for queue in queues if queue["type"] in _MOVABLE]
    return f"this node still leads {', '.join(left[:3])}{' and others' if len(left) > 3 else ''}" if left else ""


def _no_quorum(work: Work) -> str:
    """Return which queues would lose their quorum with one member less."""
    seconds = max(1, min(_QUORUM_SECONDS, int(work.seconds_left)))
    try:
        _ask(work, _UPGRADE, "await_online_quorum_plus_one", "--timeout", str(seconds))
    except NotYetError as error:
        return f"some quorum queue has no member online to spare: {error}"
    return ""


def _json(work: Work, program: str, *words: str) -> Any:
    text = _ask(work, program, "--silent", *words, "--formatter", "json")
    try:
        return json.loads(text[min(text.find(mark) for mark in "[{" if mark in text) :])
    except ValueError as error:
        raise NotYetError(f"{program} {words[0]} answered no JSON: {text.strip()[:200]}") from error


def _ask(work: Work, program: str, *words: str) -> str:
    node = ("--node", str(work.options["node"])) if "node" in work.options else ()
    done = work.run(program, *words, *node, check=False, environment=_ENVIRONMENT)
    if done.code == 0:
        return done.output
    text = f"{program} {next(word for word in words if word[0] != '-')} failed: {done.said}"
    raise (HookFailedError if done.code in _USAGE else NotYetError)(text)


KIND = HookKind(
    name="rabbitmq",
    summary="Drains a node of RabbitMQ by its maintenance mode, once every quorum queue can spare it.",
    prepares="It waits until every quorum queue has a member to spare, and drains the node: clients go to other nodes.",
    recovers=(
        "It revives the node once it is up, and waits until every quorum queue has a member to spare again. Until then"
        " it revives it again: right after a drain, RabbitMQ can leave members of queues down."
    ),
    effect="It waits until the node leads no quorum queue and no stream, and after the event for the quorum.",
    repeatable="A drained node is only checked. One that was in maintenance mode before is so again afterwards.",
    requirements="Classic queues that are not mirrored stay on the node, and are not available while it is down.",
    tried_with="RabbitMQ 3.10: publishers with confirms on a quorum queue, under a reboot, a power cut and a freeze",
    options=(
        Option(
            "node",
            TEXT,
            "The node, by RabbitMQ's name. Left out: the one that RabbitMQ's programs take on this host.",
            "rabbit@${vm.name}",
            pattern=r"[\w.-]+@[\w.-]+",
            wording="NAME@HOST",
        ),
    ),
    prepare=_prepare,
    recover=_recover,
    # The programs become the user rabbitmq, whose cookie they need, and talk to the node at the address of the host.
    needs=lambda _options: Requirements(programs=(_UPGRADE, _DIAGNOSTICS, _CONTROL), sandbox=(NETWORK, USERS)),
)
