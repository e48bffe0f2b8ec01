# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn doctor``: the systemd unit, and the clock."""

from __future__ import annotations

from ....texts import duration_text
from ..check import NOT_CHECKED, OK, TROUBLE, WARNING, Check
from .machine import Machine

# More restarts than this, the last one no longer ago than that, are a crash loop.
_MOST_RESTARTS = 2
_RECENT_SECONDS = 300.0
# Enabled, or perhaps wanted by another unit. enabled-runtime is forgotten at the next boot, linked only makes it known.
_STARTED_AT_BOOT = ("enabled", "static", "indirect", "generated", "alias")
_ROLL_OUT = "Roll it out with the role forewarn.azure.forewarn."


def unit(machine: Machine, name: str, uptime_seconds: float) -> Check:
    """Check that the service is enabled, and runs without crashing. ``uptime_seconds`` is the monotonic clock's."""
    found = machine.properties(
        name,
        *("LoadState", "ActiveState", "SubState", "UnitFileState", "NRestarts", "Result", "NeedDaemonReload"),
        "ActiveEnterTimestampMonotonic",
    )
    if found is None:
        return Check("unit", NOT_CHECKED, "systemctl cannot be asked", "Look at how the runner is started here.")
    if found.get("LoadState") != "loaded":
        text = f"systemd has no usable {name} ({found.get('LoadState') or 'nothing'} is its load state)"
        return Check("unit", TROUBLE, text, _ROLL_OUT)
    log = f"Read the reason: journalctl -u {name} -n 50."
    active, sub, result = (found.get(key, "") for key in ("ActiveState", "SubState", "Result"))
    restarts = _number(found.get("NRestarts", ""))
    if sub == "auto-restart" or (active == "activating" and restarts > _MOST_RESTARTS):
        return Check("unit", TROUBLE, f"{name} crashes: {result}, restarted {restarts} times", log)
    if active == "activating":
        return Check("unit", WARNING, f"{name} is starting", "Ask again in a minute.")
    if active == "failed":
        return Check("unit", TROUBLE, f"{name} is failed ({result})", f"{log} Then: systemctl restart {name}")
    if active not in ("active", "reloading"):
        text = f"{name} is {active or 'in no known state'}: nothing polls the service"
        return Check("unit", TROUBLE, text, f"systemctl enable --now {name}")
    since = uptime_seconds - _number(found.get("ActiveEnterTimestampMonotonic", "")) / 1e6
    if restarts > _MOST_RESTARTS and since < _RECENT_SECONDS:
        return Check("unit", TROUBLE, f"{name} crashes: restarted {restarts} times, {duration_text(since)} ago", log)
    enabled = found.get("UnitFileState", "")
    if enabled not in _STARTED_AT_BOOT:
        text = f"{name} runs, but is {enabled or 'not enabled'}: after a reboot this VM has no runner"
        return Check("unit", TROUBLE, text, f"systemctl enable {name}")
    if found.get("NeedDaemonReload") == "yes":
        hint = f"systemctl daemon-reload && systemctl restart {name}"
        return Check("unit", WARNING, f"{name} runs with settings older than its unit file", hint)
    if restarts:
        return Check("unit", WARNING, f"{name} is enabled and runs; systemd had to restart it {restarts} times", log)
    return Check("unit", OK, f"{name} is enabled and runs")


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def systemd(machine: Machine) -> Check:
    """Report systemd's version."""
    output = machine.command(["systemctl", "--version"])
    words = output.text.split() if output is not None else []
    if len(words) < 2:
        return Check(
            "systemd", NOT_CHECKED, "there is no systemctl", "The role needs systemd; a runner alone does not."
        )
    return Check("systemd", OK, words[1])


def clock(machine: Machine) -> Check:
    """Check that the wall clock is synchronised: NotBefore is a wall-clock time."""
    output = machine.command(["timedatectl", "show", "--property=NTPSynchronized"])
    answer = "" if output is None or output.code != 0 else output.text.strip().partition("=")[2]
    if answer == "yes":
        return Check("clock", OK, "synchronised")
    hint = (
        "Look at chronyc tracking, or timedatectl timesync-status. In Azure, chrony can use the host: /dev/ptp_hyperv."
    )
    if answer == "no":
        text = "not synchronised: the time left until NotBefore is as wrong as the clock"
        return Check("clock", TROUBLE, text, hint)
    return Check("clock", NOT_CHECKED, "timedatectl does not tell whether it is synchronised", hint)
