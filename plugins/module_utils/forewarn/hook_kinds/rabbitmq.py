# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""RabbitMQ: puts a node into maintenance mode (rabbitmq-upgrade(8), rabbitmq-diagnostics(8), rabbitmqctl(8))."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable

from .common.declaration import NETWORK, TEXT, USERS, HookKind, Option, Requirements
from .common.effect import EffectStatus, absent, complete, incomplete
from .common.work import HookFailedError, NotReadyError, Work

_UPGRADE, _DIAGNOSTICS, _CONTROL = "rabbitmq-upgrade", "rabbitmq-diagnostics", "rabbitmqctl"
_QUORUM_SECONDS = 3  # of one question whether the quorum is there: the hook says what it waits for in between
_USAGE = (1, 2, 64, 65, 77)  # exit codes of a command that will not succeed by waiting: wrong words, no permission
# Each question starts an Erlang of its own, which is up sooner with one scheduler that does not spin.
_ENVIRONMENT = {"ERL_FLAGS": "+S 1:1 +sbwt none"}
_MAINTENANCE = "is_under_maintenance"
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_BEGIN = re.compile(r"^\s*(?=[\[{])", re.MULTILINE)
_MOVABLE = ("quorum", "stream")  # types of queues whose leader goes to another node


def _prepare(work: Work) -> str:
    with ThreadPoolExecutor() as pool:  # each question takes half a second
        asked, missed = pool.submit(_in_maintenance, work), pool.submit(_no_quorum, work)
    # Where the node is drained already its own members are offline, and the quorum cannot be there.
    if missed.result() and not asked.result():
        return missed.result()
    if work.notes.get("drained"):
        work.forget()  # somebody has ended the maintenance mode since, so that this one is the hook's own
    work.remember(maintenance=asked.result())
    _run_program(work, _UPGRADE, "drain")
    work.notes["drained"] = True
    return ""


def _check_prepared(work: Work) -> EffectStatus:
    if not work.notes.get("drained"):  # a drain that was cut short is only repeated
        return absent("the node is not drained")
    led = _leaders_here(work)
    if not _in_maintenance(work):  # asked last: only with it no leader comes back
        return absent("the node is not in maintenance mode")
    return incomplete(led) if led else complete("the node is in maintenance mode, and leads no quorum queue")


def _recover(work: Work) -> str:
    _run_program(work, _UPGRADE, "drain" if work.memory.get("maintenance") else "revive")
    return ""


def _check_recovered(work: Work) -> EffectStatus:
    before = work.memory.get("maintenance")  # without memory, this hook has drained nothing
    down = "" if before or _in_maintenance(work) else _no_quorum(work)
    maintenance = _in_maintenance(work)
    if before is not None and maintenance != before:  # a restart ends the maintenance mode, a person's too
        return absent(f"the node is {'still' if maintenance else 'not'} in maintenance mode")
    if maintenance:
        return complete("the node was in maintenance mode before, and is so again")
    if down:
        # Right after a drain, a revive leaves those down that led: until they are up, the node is revived again.
        return incomplete(down) if before is None else absent(down)
    return complete("the node is in service, and every quorum queue has the members online that it needs")


def _in_maintenance(work: Work) -> bool:
    return bool(_read_json(work, _is_status, _DIAGNOSTICS, "status")[_MAINTENANCE])


def _leaders_here(work: Work) -> str:
    queues = _read_json(work, _are_queues, _CONTROL, "list_queues", "--local", "name", "type")
    left = [str(queue["name"]) for queue in queues if queue["type"] in _MOVABLE]
    return f"this node still leads {', '.join(left[:3])}{' and others' if len(left) > 3 else ''}" if left else ""


def _no_quorum(work: Work) -> str:
    """Return why a queue would lose its quorum without this node, or an empty text."""
    seconds = max(1, min(_QUORUM_SECONDS, int(work.seconds_left)))
    try:
        _run_program(work, _UPGRADE, "await_online_quorum_plus_one", "--timeout", str(seconds))
    except NotReadyError as error:
        return f"some quorum queue has no member online to spare: {error}"
    return ""


def _is_status(value: Any) -> bool:
    return isinstance(value, dict) and _MAINTENANCE in value


def _are_queues(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, dict) and {"name", "type"} <= one.keys() for one in value)


def _read_json(work: Work, fits: Callable[[Any], bool], program: str, *words: str) -> Any:
    """Return the JSON in the output for which ``fits`` is true: programs also print coloured warnings with brackets."""
    text = _COLOUR.sub("", _run_program(work, program, "--silent", *words, "--formatter", "json"))
    for mark in _BEGIN.finditer(text):
        try:
            value, end = json.JSONDecoder().raw_decode(text, mark.end())
        except ValueError:
            continue
        if fits(value) and not text[end:].partition("\n")[0].strip():
            return value
    raise NotReadyError(f"{program} {words[0]} answered no JSON: {text.strip()[:200]}")


def _run_program(work: Work, program: str, *words: str) -> str:
    node = ("--node", str(work.options["node"])) if "node" in work.options else ()
    done = work.run(program, *words, *node, check=False, environment=_ENVIRONMENT)
    if done.code == 0:
        return done.output
    text = f"{program} {next(word for word in words if word[0] != '-')} failed: {done.message}"
    raise (HookFailedError if done.code in _USAGE else NotReadyError)(text)


KIND = HookKind(
    name="rabbitmq",
    summary="Drains a node of RabbitMQ by its maintenance mode, once every quorum queue can spare it.",
    prepares="It waits until every quorum queue has a member to spare, and drains the node: clients go to other nodes.",
    recovers=(
        "It revives the node once it is up, and waits until every quorum queue has a member to spare again. Until then"
        " it revives it again: right after a drain, RabbitMQ can leave members of queues down."
    ),
    effect=(
        "It waits until the node is in maintenance mode and leads no quorum queue and no stream, and after the event"
        " for the quorum."
    ),
    repeatable=(
        "A drained node is drained once more, which changes nothing, and so is one that somebody revives meanwhile. One"
        " that was in maintenance mode before is so again afterwards."
    ),
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
    check_prepared=_check_prepared,
    recover=_recover,
    check_recovered=_check_recovered,
    # The programs become the user rabbitmq, whose cookie they need, and talk to the node at the address of the host.
    needs=lambda _options: Requirements(programs=(_UPGRADE, _DIAGNOSTICS, _CONTROL), sandbox=(NETWORK, USERS)),
)
