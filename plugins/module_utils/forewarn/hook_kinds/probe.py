# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The probe of the runner itself: waits until a load balancer has seen that this VM is not ready."""

from __future__ import annotations

from ..texts import duration_text, exact_text
from .common.declaration import DURATION, LINUX, WINDOWS, HookKind, Option
from .common.effect import EffectStatus, complete, incomplete, no_action
from .common.work import HookFailedError, Work

_READY, _NOT_READY = 200, 503
_ANY = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]", "localhost": "127.0.0.1"}  # noqa: S104 - where it listens on all


def _check_prepared(work: Work) -> EffectStatus:
    """Check that the probe has answered 503 for long enough. The runner makes it do so."""
    problem = _probe_problem(work, _url(work))
    if problem:
        work.notes.clear()
        return incomplete(problem)
    seconds = float(work.options["wait"])
    left = seconds - (work.seconds_passed - work.notes.setdefault("since", work.seconds_passed))
    if left > work.seconds_left:
        raise HookFailedError(f"it takes {exact_text(left)}, and {duration_text(work.seconds_left)} are left")
    if left > 0:
        return incomplete(f"/readyz answers {_NOT_READY}: load balancers have {exact_text(seconds)} to see it")
    return complete(f"/readyz has answered {_NOT_READY} for {exact_text(seconds)}")


def _check_recovered(_work: Work) -> EffectStatus:
    return complete(f"/readyz answers {_READY} again once everything is recovered")


def _url(work: Work) -> str:
    if not work.probe_address:
        raise HookFailedError(
            "the runner has no probe, so no load balancer can see that this VM drains: set forewarn_probe_listen"
            " (--probe-listen), and let the load balancer ask /readyz there"
        )
    host, _colon, port = work.probe_address.rpartition(":")
    return f"http://{_ANY.get(host, host)}:{port}/readyz"


def _probe_problem(work: Work, url: str) -> str:
    try:
        status = work.http("GET", url).status
    except HookFailedError as error:
        return f"the runner's own probe does not answer: {error}"
    hint = "it does so for events that name this VM"
    return "" if status == _NOT_READY else f"{url} answers {status}, not {_NOT_READY}: {hint}"


KIND = HookKind(
    name="probe",
    summary="Waits until load balancers that ask the runner's /readyz have seen that this VM is not ready.",
    prepares=(
        "It asks the runner's own probe, which answers 503 from the first prepare hook of an event on, and gives load"
        " balancers time to see that."
    ),
    recovers="There is nothing to do: the probe answers 200 once everything is recovered.",
    effect=(
        "It asks the probe itself, all the time: a 200 begins the wait anew. What load balancers make of the answer it"
        " cannot see: the wait must be long enough for them."
    ),
    repeatable="It only asks and waits.",
    requirements=(
        "`forewarn_probe_listen` (`--probe-listen`) with an address that the load balancer reaches, and a probe of the"
        " load balancer for `/readyz` there."
    ),
    tried_with="HAProxy 2.6; nginx 1.22, which has no checks of its own, with a script that reloads it",
    options=(
        Option(
            "wait",
            DURATION,
            "How long load balancers need to see the 503, and requests under way to end: the interval of their probe,"
            " times the failures that it takes, and the longest request. Azure Load Balancer asks every 15 s unless set"
            " otherwise, and the first 503 counts: 20s. Application Gateway asks every 30 s, and the third failure"
            " counts: 95s.",
            20.0,
            default=20.0,
            minimum=0.0,
            maximum=3600.0,
        ),
    ),
    prepare=no_action,
    check_prepared=_check_prepared,
    recover=no_action,
    check_recovered=_check_recovered,
    systems=(LINUX, WINDOWS),
)
