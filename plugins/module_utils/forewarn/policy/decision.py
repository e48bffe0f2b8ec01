# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A decision and its parts: the facts, the verdict of each policy, and the decision of all policies together.

Named tuples where possible: a dataclass costs each start of the runner half a millisecond.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from ..events import Event, Vm

APPROVE, HOLD, ABSTAIN = "approve", "hold", "abstain"
# From the most careful to the least careful: if policies differ, the most careful value applies.
APPROVERS = ("leader", "any", "witness")
GROUPS = ("hold", "ready", "independent")
# Which events recover hooks follow: prepared ones only, or also those that started without preparation (SE-22).
RECOVER_WHEN = ("prepared", "started")
PHASES = ("prepare", "recover", "notify")  # of hooks; also the keys of a rule that has them
NOTIFY = PHASES[2]
OCCASIONS = ("decided", "started", "ended", "cancelled")  # of notify hooks
HTTP_TEMPLATES = ("slack", "teams", "discord", "pagerduty", "alertmanager")  # what an http hook can send
HOOK_TIMEOUT_SECONDS = 60.0  # of a hook without a timeout
MOST_SLOTS = 100_000  # of a limit


def strictest_group(groups: Collection[str], *, prepares: bool) -> str:
    """Return the most careful of GROUPS among those of several policies, the default without any.

    ``hold`` has an effect only if there are prepare hooks; without them, ``ready`` counts as more careful.
    """
    hold, ready, _independent = GROUPS
    if not prepares and ready in groups:
        return ready
    return min(groups, key=GROUPS.index, default=hold)


_NO_TIMES: Mapping[str, datetime] = {}


class Facts(NamedTuple):
    """The facts besides the document.

    ``first_seen`` maps ``Event.key`` to an aware time; without one, it is ``now``.
    """

    now: datetime
    vm: Vm = Vm()
    first_seen: Mapping[str, datetime] = _NO_TIMES


class Value(NamedTuple):
    """The source of a part of an expression, and its value as CEL writes it, or ``error: …``."""

    expression: str
    value: str


class Values:
    """The values that a rule read. They are computed on first use, since at most polls nobody needs them."""

    __slots__ = ("_arguments", "_compute", "_values")

    def __init__(self, compute: Callable[..., tuple[Value, ...]] = tuple, *arguments: Any) -> None:
        self._compute: Callable[..., tuple[Value, ...]] | None = compute
        self._arguments = arguments

    def __iter__(self) -> Iterator[Value]:
        if self._compute is not None:
            self._values = self._compute(*self._arguments)
            self._compute, self._arguments = None, ()
        return iter(self._values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Values) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"Values({tuple(self)})"


_NO_VALUES = Values()


class Limit(NamedTuple):
    """How many VMs of a group may be disturbed at once: ``at_most``, or a share in ``percent``; the other one is None.

    ``group`` is the name of the group, None for the one in the VM's configuration.
    """

    group: str | None
    at_most: int | None
    percent: int | None

    @property
    def text(self) -> str:
        """The number or the share as in a policy, and the name of the group: ``1``, ``25% of web``."""
        most = f"{self.at_most}" if self.percent is None else f"{self.percent}%"
        return most if self.group is None else f"{most} of {self.group}"


class Verdict(NamedTuple):
    """The verdict of one policy on one event: ``approve``, ``hold`` or ``abstain``, with rule, reason and values.

    ``error`` is set if the policy could not be evaluated. Then the output is ``hold``, and ``failed`` is the part of
    the rule that has no value: ``condition``, ``explanation`` or ``limit``. ``where`` is FILE:LINE:COLUMN of the rule,
    or FILE without one. Hooks are as in the artifact, with the values of their expressions.

    Preparation begins when NotBefore is at most ``prepare_within_seconds`` away (None: at once). ``recover_when`` is
    one of ``RECOVER_WHEN``.
    """

    policy: str
    output: str
    rule: str | None
    reason: str
    where: str
    values: Values = _NO_VALUES
    error: str | None = None
    approver: str = "leader"
    group: str = "hold"
    on_failure: str = "hold"
    parallel: bool = False
    prepare: tuple[Mapping[str, Any], ...] = ()
    recover: tuple[Mapping[str, Any], ...] = ()
    notify: tuple[Mapping[str, Any], ...] = ()
    prepare_within_seconds: float | None = None
    recover_when: str = "prepared"
    limit: Limit | None = None
    failed: str | None = None

    @property
    def in_doubt(self) -> bool:
        """Whether no rule was tried, since the event's type or status is unknown."""
        return self.output == HOLD and self.rule is None


class Decision(NamedTuple):
    """The decision of all policies together for one event: ``approve`` or ``hold``.

    ``policy`` and ``rule`` are those of the verdict that decided. They are None if none did: no rule applies, or the
    event is in doubt. The decision has the hooks of all verdicts, in the order of the policies, and their limits, each
    once.
    """

    event: Event
    output: str
    policy: str | None
    rule: str | None
    reason: str
    values: Values = _NO_VALUES
    verdicts: tuple[Verdict, ...] = ()
    approver: str = "leader"
    group: str = "hold"
    prepare: tuple[Mapping[str, Any], ...] = ()
    recover: tuple[Mapping[str, Any], ...] = ()
    notify: tuple[Mapping[str, Any], ...] = ()
    limits: tuple[Limit, ...] = ()
