# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The effect of a hook of a kind: order it, and check it until all of it is there."""

from __future__ import annotations

from typing import Callable, NamedTuple

from .work import HookFailedError, Work

_LOST = " (somebody has undone it meanwhile)"


class EffectStatus(NamedTuple):
    """The result of one check. ``text`` says it in words: "2 jobs on n1".

    ``is_complete``: all of the effect is there. ``is_ordered``: the order is in force, such as a drain of a node.
    """

    text: str
    is_complete: bool
    is_ordered: bool


def complete(text: str) -> EffectStatus:
    """Return the status of an effect that is there: "n1 is drained"."""
    return EffectStatus(text, is_complete=True, is_ordered=True)


def incomplete(text: str) -> EffectStatus:
    """Return the status of an effect that is ordered, and not yet there in full: "2 jobs on n1"."""
    return EffectStatus(text, is_complete=False, is_ordered=True)


def absent(text: str) -> EffectStatus:
    """Return the status of an effect that has to be ordered, maybe once more: "n1 is not drained"."""
    return EffectStatus(text, is_complete=False, is_ordered=False)


Order = Callable[[Work], str]
Check = Callable[[Work], EffectStatus]


def no_action(_work: Work) -> str:
    """Order nothing: for an effect that comes by itself."""
    return ""


def attain_effect(work: Work, order: Order, check: Check, poll_seconds: float = 0.5) -> None:
    """Order an effect, wait until all of it is there, and report that. Raises HookFailedError.

    ``order`` returns what to wait for before the next check, such as why the effect cannot be ordered now, or an empty
    text. It may run any number of times. ``check`` decides: it runs after all waits, and once more right before
    success. It reads last what the effect rests on. An effect that somebody has undone is ordered again; if the time
    ends before it is there again, the hook fails for that reason.
    """
    ordered = in_force = False
    lost = ""
    status = incomplete("")

    def missing_part() -> str:
        nonlocal ordered, in_force, lost, status
        status = check(work)
        if not (status.is_ordered or ordered or in_force):
            text = order(work)
            if text:
                return text
            ordered = True
            status = check(work)
        in_force = in_force or status.is_ordered
        if status.is_complete:
            status = check(work)
            if status.is_complete:
                return ""
            lost = _LOST
        if status.is_ordered:
            return status.text
        lost = _LOST if in_force else lost
        return ": ".join(filter(None, (status.text, order(work))))

    def missing_text() -> str:
        try:
            text = missing_part()
        except HookFailedError as error:
            raise type(error)(f"{error}{lost}") from error
        return f"{text}{lost}" if text else ""

    work.wait(missing_text, poll_seconds)
    work.say(status.text)
