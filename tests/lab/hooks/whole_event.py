# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whole events for hosts that the role has protected: announced, drained, approved, rebooted, recovered; and not so."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import forewarn
from forewarn.bundle import build
from tools.sites.waiting import PATIENCE_SECONDS
from tools.suite.sizes import NAME

from ..hosts import Host
from ..lab import Lab
from ..role.control_node import ROLE_PLAY, SITE
from ..role.playbooks import Playbooks
from ..runner.journals import event_state
from ..runner.service import install_runner
from .snapshot import nothing_is_lost, standing

_NO_EVENTS = '{"events": []}'
_SHIPPED = Path(__file__).resolve().parents[3] / "policies"
_OVER = {"done", "cancelled"}
# EventId -> its host, how that stood when it was announced, and what may differ
_STANDING: dict[str, tuple[Host, frozenset[str], frozenset[str]]] = {}
PATIENCE = PATIENCE_SECONDS  # seconds for anything that the software does


def roll_out(
    lab: Lab,
    directory: Path,
    collections_path: Path,
    policy: str,
    names: Sequence[str],
    variables: Mapping[str, Any] | None = None,
) -> None:
    """Roll out a policy to the hosts of these names with the role, so that the unit is in its sandbox.

    At size small the runner is installed without it, which takes a tenth of the time: the other tests of the role judge
    how it installs.
    """
    given = dict(variables or {})
    if NAME == "small":
        pyz = build(Path(forewarn.__file__).parent, directory / "forewarn.pyz").path
        settings = {name.removeprefix("forewarn_"): given[name] for name in given.keys() & {"forewarn_probe_listen"}}
        for name in names:
            install_runner(lab.host(name), pyz, policy, **settings)
        return
    for name, content in {"policies/policy.yml": policy, SITE: ROLE_PLAY}.items():
        path = directory / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
    playbooks = Playbooks(lab, directory, collections_path)
    # One policy after another is tried on the same hosts.
    wanted = {"forewarn_policies": ["policies"], "forewarn_health_seconds": 60, "forewarn_accept_less": True, **given}
    playbooks.play(SITE, wanted, "--limit", ",".join(names)).changed()


def announce(
    lab: Lab, host: Host, event_type: str = "Reboot", moving: frozenset[str] = frozenset(), **values: Any
) -> str:
    """Schedule an event for a host; return its EventId. ``wait_for_state`` sees to it that nothing remains of it.

    ``moving`` is what need not come back, or may come, in the words of ``standing``.
    """
    before = standing(host)
    event_id = lab.emulator.schedule(event_type, [host.name], **values)
    _STANDING[event_id] = (host, before, moving)
    return event_id


def wait_for_state(host: Host, event_id: str, *states: str, timeout: float = PATIENCE) -> dict[str, Any]:
    """Wait until an event has come to a state; return what the history has of it.

    Where it is over, its host stands as it did before: what ran or listened there does so again. AssertionError if not.
    """
    host.wait_for(lambda: event_state(host, event_id) in states, timeout)
    if _OVER.intersection(states) and event_id in _STANDING:
        nothing_is_lost(*_STANDING.pop(event_id))
    return history(host, event_id)


def reboot_by_azure(lab: Lab, host: Host, before: Callable[[], object] = lambda: None) -> dict[str, Any]:
    """Announce a reboot; once it is approved, the host loses power and boots again, as by Azure.

    ``before`` is called when the event has started, and the host is still up. Return what the history has of the event
    when all is recovered.
    """
    event_id = announce(lab, host)
    wait_for_state(host, event_id, "started")
    before()
    host.cut_power()
    host.start()
    lab.emulator.finish(event_id)
    return wait_for_state(host, event_id, "done")


def rehearse_shipped(
    lab: Lab,
    host: Host,
    directory: Path,
    collections_path: Path,
    policy: str,
    variables: Mapping[str, Any] | None = None,
) -> None:
    """Roll out a shipped policy to a host, and hold a drill with its real hooks: all of them succeed."""
    roll_out(lab, directory, collections_path, shipped(policy), [host.name], variables)
    hooks = {(phase, status) for phase, _kind, status in rehearse(host)}
    assert hooks == {("prepare", "succeeded"), ("recover", "succeeded")}


def shipped(policy: str) -> str:
    """Return the text of a shipped policy."""
    return (_SHIPPED / f"{policy}.yml").read_text(encoding="utf-8")


def rehearse(host: Host, event_type: str = "Reboot", notice: str = "5m") -> list[tuple[str, str, str]]:
    """Hold a drill on a host, with its real hooks; return phase, kind and status of each once it is over."""
    done = host.ssh(f"forewarn drill --json --type {event_type} --notice {notice} --duration 1s")
    event_id = json.loads(done.stdout)["id"]
    return hooks_of(wait_for_state(host, event_id, "done"))


def hooks_of(entry: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return phase, kind and status of each hook of an event."""
    return [(hook["phase"], hook["hook"].partition(" ")[0], hook["status"]) for hook in entry["hooks"]]


def history(host: Host, event_id: str) -> dict[str, Any]:
    """Return what ``forewarn history --json`` has of an event; empty if it has nothing."""
    entries: list[dict[str, Any]] = json.loads(host.ssh("forewarn history --json", check=False).stdout or _NO_EVENTS)[
        "events"
    ]
    return next((entry for entry in entries if entry["event"]["EventId"] == event_id), {})


def power_cut(host: Host, during: Callable[[], object] | None = None) -> None:
    """Reboot a host of a joined lab as by an event that nobody has prepared for.

    ``during`` is called while the host is down.
    """
    host.ssh("systemctl stop forewarn")
    host.cut_off()
    if during is not None:
        during()
    host.place.plug(True)
    host.start()
