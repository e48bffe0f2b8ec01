# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Windows service: stops it and what needs it, and starts what was running again."""

from __future__ import annotations

from ..system.common.service_status import RUNNING, STOP_PENDING, STOPPED, ServiceStatus
from ..texts import exact_text
from .common.declaration import TEXT, WINDOWS, HookKind, Option, Requirements
from .common.effect import EffectStatus, absent, complete, incomplete
from .common.work import HookFailedError, Work
from .service_control import query, running_dependents, services_up, start, stop

# How long a service has to run before it counts as started: it may say that it runs, and end right after that.
_SETTLED_SECONDS = 5.0
_NEVER_STARTED = 1077  # since the system has started: the exit code of such a service


def _prepare(work: Work) -> str:
    """Stop what is up, first what nothing else needs; return what is still up."""
    name = work.options["name"]
    up = services_up(name)
    if "looked" not in work.notes:
        was_running = {one.name: STOPPED if one.state == STOP_PENDING else RUNNING for one in reversed(up)}
        work.remember(**(was_running or {name: STOPPED}))
        work.notes["looked"] = True
    for status in up:
        if status.state != STOP_PENDING and not running_dependents(status.name):
            stop(status.name)
    return ", ".join(map(str, up))


def _check_prepared(work: Work) -> EffectStatus:
    name = work.options["name"]
    if "looked" not in work.notes:
        return absent(f"{name} may run")
    up = services_up(name)
    if up:
        return absent(", ".join(map(str, up)))
    others = [one for one in _before(work) if one != name]
    return complete(f"{name} is stopped" + (f", and with it {', '.join(others)}" if others else ""))


def _recover(work: Work) -> str:
    """Start what was running: the manager starts what a service needs before it."""
    for name in _before(work):
        if query(name).state == STOPPED:
            start(name)
    work.notes["started"] = True
    return ""


def _check_recovered(work: Work) -> EffectStatus:
    """Check that all services run that did. Raises HookFailedError if one has ended with an error."""
    before = _before(work)
    if not before:
        return complete(f"{work.options['name']} was not running before, and is not started")
    if "started" not in work.notes:
        return absent(f"{', '.join(before)} may not run yet")
    stopped, waiting = [], []
    for status in [query(name) for name in before]:
        settled = _is_settled(work, status)
        if status.state == STOPPED:
            if status.exit_code not in (0, _NEVER_STARTED):
                why = f"{status.name} has ended with exit code {status.exit_code}"
                raise HookFailedError(f"not as before: {why}: the event log System says why")
            stopped.append(str(status))
        elif status.state != RUNNING:
            waiting.append(str(status))
        elif not settled:
            waiting.append(f"{status}, and has to stay so for {exact_text(_SETTLED_SECONDS)}")
    if stopped:
        return absent(", ".join(stopped))
    if waiting:
        return incomplete(", ".join(waiting))
    return complete(f"{', '.join(before)} {'is' if len(before) == 1 else 'are'} running")


def _is_settled(work: Work, status: ServiceStatus) -> bool:
    """Return whether a service has been running for long enough, in one process."""
    key = f"{status.name} runs"  # its process, and when it was first seen running
    if status.state != RUNNING:
        work.notes.pop(key, None)
    elif work.notes.setdefault(key, (status.pid, work.seconds_passed))[0] != status.pid:
        work.notes[key] = (status.pid, work.seconds_passed)
    return key in work.notes and bool(work.seconds_passed >= work.notes[key][1] + _SETTLED_SECONDS)


def _before(work: Work) -> list[str]:
    """Return the services that were running before the event, each before those that need it.

    So who looks at them in this order knows, once the last one runs, that what it needs has not stopped meanwhile.
    """
    return [name for name, state in work.memory.items() if state == RUNNING]


KIND = HookKind(
    name="service",
    summary="Stops a Windows service and the services that need it, and after the event starts what was running.",
    prepares=(
        "It stops the services that need this one, each once nothing else needs it, and then the service itself."
        " Somebody may start one again: while the hook runs, it stops that again; later it does not notice."
    ),
    recovers=(
        "It starts all that was running before; Windows starts what a service needs before it. What was stopped before"
        " stays stopped."
    ),
    effect=(
        "It waits until the service and all that needs it have stopped. After the event it waits until all that was"
        f" running before has been running for {exact_text(_SETTLED_SECONDS)}; where a service ends with an exit code"
        " other than 0, the hook fails and names it."
    ),
    repeatable="What is stopped already stays stopped. It remembers what was running before the first run.",
    requirements=(
        "The right to stop and start it, which LocalSystem and administrators have for most services. A service that is"
        " disabled meanwhile cannot be started again."
    ),
    tried_with="a simulated service control manager alone, not with Windows",
    options=(
        Option(
            "name",
            TEXT,
            "The name of the service, as Get-Service lists it: not the display name.",
            "W3SVC",
            required=True,
            pattern=r"[^/\\\x00-\x1f]{1,256}",
            wording="the name of a service, such as W3SVC",
        ),
    ),
    prepare=_prepare,
    check_prepared=_check_prepared,
    recover=_recover,
    check_recovered=_check_recovered,
    needs=lambda options: Requirements(services=(options["name"],) if "name" in options else ()),
    systems=(WINDOWS,),
)
