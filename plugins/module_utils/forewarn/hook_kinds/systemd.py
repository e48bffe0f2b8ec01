# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""systemd: stops a unit and what triggers it, lets nothing start them meanwhile, and starts what was active again.

The sources are systemctl(1), systemd.unit(5), systemd.socket(5), systemd.path(5) and systemd.timer(5).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from ..texts import exact_text
from .common.declaration import BOOLEAN, UNIT, HookKind, Option, Requirements
from .common.effect import EffectStatus, absent, complete, incomplete
from .common.work import HookFailedError, Work
from .systemd_blocks import DROP_INS, drop_in, unblock
from .systemd_memory import RESTARTING, recall_states, record_states, restore_states
from .systemd_stop import keep_stopped, running_unit
from .systemd_units import read_units, systemctl

# How long a service has to run before it counts as started. One of Type=simple is active at once, whatever it does.
_SETTLED_SECONDS = 5


def _prepare(work: Work) -> str:
    """Stop and block what triggers the unit, then the unit: a trigger whose unit refuses to start asks without end.

    Before systemd 250 process 1 then does nothing else; since then the trigger fails, and stays so.
    """
    before = recall_states(work) if "looked" in work.notes else record_states(work)
    work.notes["looked"] = True
    *triggers, unit = before.own
    for names in filter(None, (triggers, [unit])):
        keep_stopped(work, names)
        up = running_unit(work, names)
        if up:
            return up
    return ""


def _check_prepared(work: Work) -> EffectStatus:
    unit = work.options["unit"]
    if "looked" not in work.notes:
        return absent(f"{unit} may run")
    before = recall_states(work)
    up = running_unit(work, before.own)
    if up:
        return absent(up)
    others = [name for name in before.active if name != unit]
    return complete(f"{unit} is stopped" + (f", and with it {', '.join(others)}" if others else ""))


def _recover(work: Work) -> str:
    """Let the units start again, and start those that were active: first what triggers others, as systemd does."""
    before = restore_states(work)
    work.notes["started"] = True
    unblock(work, before.own)
    systemctl(
        work, "reset-failed", [unit.name for unit in read_units(work, before.active).values() if unit.state == "failed"]
    )
    # Without the units that a target wants: some may have been stopped on purpose.
    targets = [name for name in before.active if name.endswith(".target")]
    systemctl(work, "start", [name for name in before.active if name not in targets])
    systemctl(work, "start", targets, "--job-mode=ignore-requirements")
    return ""


def _check_recovered(work: Work) -> EffectStatus:
    """Check that all units are active that were. Raises HookFailedError if one is not, and will not become so."""
    before, own = recall_states(work)
    units = read_units(work, before)
    blocked = [name for name in own if drop_in(name).exists()]
    if blocked or "started" not in work.notes:
        return absent(f"{', '.join(blocked) or work.options['unit']} may not start yet")
    active = {name for name, unit in units.items() if unit.state == "active"}
    waiting, lost = [], []
    for name, unit in units.items():
        if before[name] == RESTARTING or unit.is_running_once or unit.has_done_its_work(before[name], active):
            continue
        if unit.is_down and not unit.is_queued:
            lost.append(unit)
        elif unit.state != "active":
            waiting.append(str(unit))
        elif unit.is_long_running and time.monotonic() < unit.active_since + _SETTLED_SECONDS:
            waiting.append(f"{name} is active, and has to stay so for {exact_text(_SETTLED_SECONDS)}")
    if lost:
        found = ", ".join(f"{unit.name} is {unit.state} ({unit.result})" for unit in lost)
        raise HookFailedError(f"not as before: {found}: journalctl --unit={lost[0].name} says why")
    if waiting:
        return incomplete(", ".join(waiting))
    if not units:
        return complete(f"{work.options['unit']} was not running before, and is not started")
    return complete(f"{', '.join(units)} {'is' if len(units) == 1 else 'are'} active")


def _needs(options: Mapping[str, Any]) -> Requirements:
    return Requirements(
        programs=("systemctl",),
        units=(options["unit"],) if "unit" in options else (),
        writable=(DROP_INS,) if options["block"] else (),
    )


KIND = HookKind(
    name="systemd",
    summary="Stops a unit of systemd and what triggers it, and keeps them stopped until the event is over.",
    prepares=(
        "It stops the sockets, paths, timers and automounts that trigger the unit, then the unit, and lets every start "
        "of them fail, until the next boot at the latest. Meanwhile a socket refuses its clients at once, a directory "
        "of an automount is empty, and a call by D-Bus ends with an error, sometimes after 25 s. What requires the "
        "unit cannot start either, what wants it starts without it, and what upholds it tries in vain."
    ),
    recovers=(
        "It allows starts again, and starts all that was active before: first what triggers the unit, then the unit, "
        "then what systemd had stopped with it, such as services that require it. A path finds the files that have "
        "come meanwhile. A timer with Persistent= or OnUnitActiveSec= makes up for what it has missed; "
        "one with OnBootSec= starts its unit once more."
    ),
    effect=(
        "It waits until the unit and what triggers it are inactive. After the event it waits until all that was active "
        f"before is active, each service for {exact_text(_SETTLED_SECONDS)}; where a unit is not, the hook fails and "
        "names it. A service that something triggers, or that is of type oneshot, may have ended with success."
    ),
    repeatable="What is stopped already stays stopped. It remembers how the units were before the first run.",
    requirements="A unit that runs in a scope, or was made by systemd-run, cannot be started again by its name.",
    tried_with="systemd 247, 252 and 257",
    options=(
        Option("unit", UNIT, "The unit, with its suffix.", "app.service", required=True),
        Option(
            "block",
            BOOLEAN,
            "Whether nothing else may start the unit meanwhile. If not, what triggers it goes on.",
            True,
            default=True,
        ),
    ),
    prepare=_prepare,
    check_prepared=_check_prepared,
    recover=_recover,
    check_recovered=_check_recovered,
    poll_seconds=0.2,
    needs=_needs,
)
