# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The form of every kind: order something, and look at all that it promises at one time, until that is there."""

from __future__ import annotations

from typing import Callable, NamedTuple

from .work import HookFailedError, Work

_LOST = " (somebody has undone it meanwhile)"


class EffectSeen(NamedTuple):
    """What one look saw, in words. ``done``: all of the effect is there. ``ordered``: what it rests on is in force."""

    text: str
    done: bool
    ordered: bool


def there(text: str) -> EffectSeen:
    """All of the effect is there: "n1 is drained"."""
    return EffectSeen(text, done=True, ordered=True)


def missing(text: str) -> EffectSeen:
    """What was ordered is in force, and not all of the effect is there yet: "2 jobs on n1"."""
    return EffectSeen(text, done=False, ordered=True)


def undone(text: str) -> EffectSeen:
    """It is not in force, or not any more, and has to be ordered: "n1 is not drained"."""
    return EffectSeen(text, done=False, ordered=False)


Order = Callable[[Work], str]
Look = Callable[[Work], EffectSeen]


def nothing(_work: Work) -> str:
    """Order nothing, where an effect comes by itself."""
    return ""


def attain(work: Work, order: Order, look: Look, every: float = 0.5) -> None:
    """Order something until all of its effect is there, and say so. Raises HookFailedError.

    ``order`` returns what to wait for before the next look, such as why it cannot be ordered now; an empty text: for
    nothing. It may run any number of times. ``look`` reads last what the effect rests on, and has the last word: it is
    asked after all waits, and once more right before success. What somebody has undone meanwhile is ordered again;
    without time for that, it is why the hook fails.
    """
    ordered = in_force = False
    lost = ""
    seen = missing("")

    def lacking() -> str:
        nonlocal ordered, in_force, lost, seen
        seen = look(work)
        if not (seen.ordered or ordered or in_force):
            text = order(work)
            if text:
                return text
            ordered = True
            seen = look(work)
        in_force = in_force or seen.ordered
        if seen.done:
            seen = look(work)
            if seen.done:
                return ""
            lost = _LOST
        if seen.ordered:
            return seen.text
        lost = _LOST if in_force else lost
        return ": ".join(filter(None, (seen.text, order(work))))

    def in_words() -> str:
        try:
            text = lacking()
        except HookFailedError as error:
            raise type(error)(f"{error}{lost}") from error
        return f"{text}{lost}" if text else ""

    work.wait(in_words, every)
    work.say(seen.text)
