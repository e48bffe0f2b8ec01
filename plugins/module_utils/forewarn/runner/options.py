# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of a runner, the configuration that a reload reads, and what is known of the runner before."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from ..policy.engine import PolicySet
from ..system.service_manager import ServiceNotifier
from .clocks import Clocks, Stamp
from .hooks.commands import HookSettings
from .hooks.needs_watch import NeedsCheck, NeedsWatch
from .requester import Requester
from .shadow import Shadow
from .telemetry.log import Log
from .telemetry.metrics import Metrics
from .telemetry.readiness import Readiness

if TYPE_CHECKING:  # loaded where there is a group or a sink: most runners have none
    from .groups.settings import GroupSettings
    from .groups.store import Store
    from .policy_source.source import SourceOptions
    from .sink.sink import SinkSettings
    from .state.accepted_policy import SignedPolicy


class Mode(NamedTuple):
    """``dry_run``: nothing is sent and no hook runs. ``once``: there is no time for hooks."""

    dry_run: bool = False
    once: bool = False


class Configuration(NamedTuple):
    """``missing`` are sentences on what hooks lack; ``check`` returns them anew, None if they need nothing.

    ``facts`` are for the heartbeat.
    """

    policies: PolicySet
    shadow: Shadow | None
    interval_seconds: float
    missing: Sequence[str] = ()
    check: NeedsCheck | None = None
    facts: Mapping[str, Any] = MappingProxyType({})


class PreviousRunner(NamedTuple):
    """When the previous runner had its last answer, how long a reboot since then took, and the pause that it had
    reported.
    """

    last_poll: Stamp | None = None
    down_seconds: float | None = None
    pause: str | None = None


class GroupOptions(NamedTuple):
    """The group of the VM, its store, and the thread that makes the requests to it.

    ``jitter`` returns a random number from 0 to 1, which spreads the retries of VMs that start together.
    """

    settings: GroupSettings
    store: Store
    requester: Requester
    jitter: Callable[[], float] = lambda: os.urandom(1)[0] / 255
    sleep: Callable[[float], None] = time.sleep


class RunnerOptions(NamedTuple):
    """``directory`` is the state directory, None to save nothing; ``fallback_directory`` is one in memory, for the
    heartbeat when the disk is full. Without a ``requester`` the runner makes one.
    """

    clocks: Clocks
    log: Log
    mode: Mode = Mode()
    directory: str | None = None
    hook_settings: HookSettings = HookSettings()
    metrics: Metrics | None = None
    textfile: str | None = None
    notifier: ServiceNotifier | None = None
    readiness: Readiness | None = None
    requester: Requester | None = None
    fallback_directory: str | None = None
    shadow: Shadow | None = None
    reload: Callable[[SignedPolicy | None], Configuration] | None = None
    previous: PreviousRunner = PreviousRunner()
    needs_watch: NeedsWatch | None = None
    sink: SinkSettings | None = None
    group: GroupOptions | None = None
    policy_source: SourceOptions | None = None
