# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn doctor``: the configuration, the policy, what its hooks need, and the runner that works with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import InputError
from ...policy.engine import PolicySet
from ...runner.hooks.credentials import names
from ...runner.hooks.needs import examine
from ..run import next_start
from ..status.report import RUNNING
from .check import OK, TROUBLE, WARNING, Check, Orders
from .system import Machine, credentials

_SHOWN_NAMES = 5


def policy(policies: PolicySet, problem: str | None) -> Check:
    """Report the policies on disk, and where they came from if the artifact says so.

    ``problem`` is why they are not those of the configuration.
    """
    if problem is not None:
        return Check("policy", TROUBLE, f"the policies that were in use last are in use: {problem}")
    names = ", ".join(policies.names[:_SHOWN_NAMES]) + (" and others" if len(policies.names) > _SHOWN_NAMES else "")
    serial = "" if policies.artifact.serial is None else f", serial {policies.artifact.serial}"
    return Check("policy", OK, f"{names}; {policies.digest[:19]}…{serial}{_origin(policies.artifact.source or {})}")


def _origin(source: Mapping[str, Any]) -> str:
    repository, commit = source.get("repository"), source.get("commit")
    text = f", from {repository}" if repository else ""
    text += f", commit {str(commit)[:12]}" if commit else ""
    return text + (" with changes that were not committed" if source.get("modified") else "")


def hooks(machine: Machine, policies: PolicySet, unit: str) -> Check:
    """Check that what the hooks name is here: programs, units and secrets."""
    every = list(policies.every_hook())
    wanted = {name for hook in every for name in names(hook)}
    given, lost = credentials(machine, unit, wanted) if wanted else ((), [])
    # Without its manager nobody can tell what the service is given.
    promised = wanted if given is None else given
    needs = examine(policies.hooks_by_rule(), None, promised, machine.unit_problem)
    try:
        needs.refuse_untrusted()
    except InputError as error:
        return Check("hooks", TROUBLE, error.message, error.hint or "The runner refuses to start with this policy.")
    absent = [*needs.missing(), *lost]
    if absent:
        hint = "Install what is missing before an event needs it: until then such events are held."
        return Check("hooks", TROUBLE, "; ".join(absent), hint)
    return Check("hooks", OK, "the policy has none" if not every else "what they name is here")


def runner(report: Mapping[str, Any], orders: Orders) -> Check:
    """Check the running service, from the content of ``forewarn status --json``."""
    found, service = report["runner"], report["service"]
    log = f"Read its log: {orders.log}."
    if found["condition"] != RUNNING:
        return Check("runner", TROUBLE, found["text"], f"{log} Then: {orders.restart}")
    if service["state"] not in ("ok", "waiting"):
        return Check("runner", TROUBLE, f"it runs, but the service {service['text']}", log)
    if found["reload_problem"]:
        text = f"its last reload was refused: {found['reload_problem']}"
        return Check("runner", TROUBLE, text, f"Correct it, then: {orders.reload}")
    disk = report["on_disk"]
    differs = [] if disk is None else next_start.problems(found, disk, running=True)
    if differs:
        starts = disk["error"] is None and (disk["program"] is None or disk["version"] is not None)
        hint = orders.reload_or_restart if starts else "Roll it out again before this VM reboots."
        return Check("runner", WARNING if starts else TROUBLE, "; ".join(differs), hint)
    text = f"forewarn {found['version']}, {found['text']}"
    if service["state"] == "waiting":
        hint = "The first can take 2 minutes: ask again."
        return Check("runner", WARNING, f"{text}; no answer of the service yet", hint)
    if found["dry_run"]:
        hint = "When its log says what you want, set dry_run to false in the configuration, and restart it."
        return Check("runner", WARNING, f"{text}; a dry run: it approves nothing and runs no hooks", hint)
    return Check("runner", OK, text)


def journal(report: Mapping[str, Any]) -> Check:
    """Check what must survive a restart, from the content of ``forewarn status --json``."""
    trouble, damaged, unkept = report["journal"]["trouble"], report["damaged"], report["unkept"]
    if trouble:
        hint = "Look at the disk of the state directory: is it full, or read-only?"
        return Check("journal", TROUBLE, str(trouble), hint)
    if unkept["number"]:
        return Check(
            "journal", TROUBLE, f"listed events are not in it: {unkept['events']}", "forewarn status says more."
        )
    if damaged:
        hint = "Undo or finish by hand what its hooks would have done, then remove the file that is named."
        return Check("journal", TROUBLE, damaged[0]["text"], hint)
    fails = report["failing_recoveries"]
    if fails:
        text = f"whole; {len(fails)} {'recovery fails' if len(fails) == 1 else 'recoveries fail'}"
        return Check("journal", WARNING, text, "forewarn status names them; forewarn recover ends them.")
    return Check("journal", OK, f"whole, in {report['state_directory']}")
