# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts of a decision: the facts that go in, the verdict of each policy, the decision that comes out.

Named tuples where possible: a dataclass costs each start of the runner half a millisecond.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from ..events import Event, Vm

APPROVE, HOLD, ABSTAIN = "approve", "hold", "abstain"
# From the most careful to the least: where policies differ, the most careful one applies.
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


def joint_group(groups: Collection[str], *, prepares: bool) -> str:
    """Return which of GROUPS applies where several policies act, the default without any.

    It is the most careful one. But ``hold`` has an effect only where something is prepared: elsewhere ``ready`` is.
    """
    held, ready, _independent = GROUPS
    if not prepares and ready in groups:
        return ready
    return min(groups, key=GROUPS.index, default=held)


_NEVER_SEEN: Mapping[str, datetime] = {}


class Facts(NamedTuple):
    """The facts known besides the document. ``first_seen`` maps ``Event.key`` to an aware time; unknown means now."""

    now: datetime
    vm: Vm = Vm()
    first_seen: Mapping[str, datetime] = _NEVER_SEEN


class Value(NamedTuple):
    """A sub-expression as it is written, and its value; an error reads ``error: …``."""

    expression: str
    value: str


class Values:
    """The values that a rule read, found when they are first asked for: at most polls, nobody asks."""

    __slots__ = ("_arguments", "_find", "_found")

    def __init__(self, find: Callable[..., tuple[Value, ...]] = tuple, *arguments: Any) -> None:
        self._find: Callable[..., tuple[Value, ...]] | None = find
        self._arguments = arguments

    def __iter__(self) -> Iterator[Value]:
        if self._find is not None:
            self._found = self._find(*self._arguments)
            self._find, self._arguments = None, ()
        return iter(self._found)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Values) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"Values({tuple(self)})"


_NO_VALUES = Values()


class Limit(NamedTuple):
    """How many VMs of a group may be disturbed at once: a number, or a share in percent; the other is None.

    ``group`` is its name, None for the group in the VM's configuration.
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
    """One policy's verdict on one event: ``approve``, ``hold`` or ``abstain``, with rule, reason and values.

    ``error`` is set where the policy could not be evaluated; the output is then ``hold``, and ``failed`` is the part of
    the rule that has no value: its ``condition``, ``explanation`` or ``limit``. ``where`` is file:line:column of the
    rule, or of the error. Hooks are as the artifact has them.

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
        """Whether no rule was asked, since the event's own type or status is unknown."""
        return self.output == HOLD and self.rule is None


class Decision(NamedTuple):
    """The decision of all policies together for one event: ``approve`` or ``hold``.

    ``policy`` and ``rule`` name the verdict that decided, None where none did (no policy approved, or the event itself
    is in doubt). Hooks of several verdicts add up, in the order of the policies, and so do their limits, each once.
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
