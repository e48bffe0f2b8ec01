# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The questions of ``forewarn policy init``: what each asks, what may be answered, and what an answer means."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Callable, NamedTuple, TextIO

from ....errors import InputError
from ...output.console import Console

HOLD, APPROVE, NONE = "hold", "approve", "none"
# Kinds of hooks that need no options but those that the policy gives them.
KINDS = ("probe", "haproxy", "patroni", "slurm", "rabbitmq", "galera", "pacemaker")
LONGEST_FREEZE = 600  # seconds
_TRIES = 3
# systemd.unit(5): a name, or a template and its instance.
_SERVICE = re.compile(r"[A-Za-z0-9:_][A-Za-z0-9:_.-]*(@[A-Za-z0-9:_.-]+)?\.service")
# On Linux, or on Windows.
_PROGRAM = re.compile(r"(/[A-Za-z0-9_.+@-]+)+|[A-Za-z]:(\\[A-Za-z0-9_+@-][A-Za-z0-9_.+@ -]*)+\.(exe|cmd|bat|ps1)")


class Question(NamedTuple):
    """A question. ``accepts`` says what may be answered, ``more`` are lines that explain it.

    ``check`` returns an answer as it is meant, None for what is no answer.
    """

    option: str
    text: str
    accepts: str
    more: Sequence[str]
    default: str
    check: Callable[[str], str | None]


def _freeze(text: str) -> str | None:
    word = text.lower()
    seconds = int(word) if re.fullmatch("[1-9][0-9]{0,2}", word) else None
    return word if word == HOLD or (seconds is not None and seconds <= LONGEST_FREEZE) else None


def _reboot(text: str) -> str | None:
    return text.lower() if text.lower() in (HOLD, APPROVE) else None


def _prepare(text: str) -> str | None:
    if text.lower() in (NONE, *KINDS):
        return text.lower()
    return text if _SERVICE.fullmatch(text) or (_PROGRAM.fullmatch(text) and "/.." not in text) else None


QUESTIONS = (
    Question(
        "freeze",
        "Approve freezes that are shorter than how many seconds?",
        f"hold, or a number of seconds from 1 to {LONGEST_FREEZE}",
        (
            "A Freeze pauses the VM, mostly for a few seconds. Held, it begins at the announced time; approved, it",
            "begins at once. Longer ones, and those of unknown length, are held. Azure's own sample has 9 here.",
        ),
        HOLD,
        _freeze,
    ),
    Question(
        "reboot",
        "Approve a Reboot or a Redeploy?",
        "hold or approve",
        (
            "Held, it begins at the announced time, mostly 15 minutes later. Approved, it begins at once, or as soon",
            "as this VM is prepared.",
        ),
        HOLD,
        _reboot,
    ),
    Question(
        "prepare",
        "What prepares this VM for a Reboot or a Redeploy, approved or held?",
        f"none, one of {', '.join(KINDS)}, a systemd service, or the whole path of a program",
        (
            "'forewarn hook list' explains the names. A service, such as app.service, is stopped before the event and",
            "started after it. A program is run with the argument prepare before the event, and with recover after it.",
        ),
        NONE,
        _prepare,
    ),
)


def checked(question: Question, text: str) -> str:
    """Return the answer that an option gives. Raises InputError."""
    answer = question.check(text)
    if answer is None:
        raise InputError(f"--{question.option}: {text!r} is no answer.", f"Write {question.accepts}.")
    return answer


def ask(question: Question, source: TextIO, console: Console) -> str:
    """Ask a person; an empty line is the default. Raises InputError at the end of the input, and after three tries."""
    console.line(console.style(question.text, "bold"))
    for line in (question.accepts, *question.more):
        console.line(console.style(f"  {line}", "dim"))
    for _try in range(_TRIES):
        console.stream.write(console.style(f"  [{question.default}]", "cyan") + " ")
        console.stream.flush()
        line = source.readline()
        if not line:
            console.line()
            raise InputError("there was no answer, and nothing was written.", f"Use the option --{question.option}.")
        text = line.rstrip("\r\n") or question.default
        answer = question.check(text)
        if answer is not None:
            return answer
        console.line(console.style(f"  {text!r} is no answer. Please answer {question.accepts}.", "yellow"))
    raise InputError(
        f"no answer after {_TRIES} tries, and nothing was written.", f"Use the option --{question.option}."
    )


class Answers(NamedTuple):
    """What the policy shall do. ``freeze``: the seconds below which a freeze is approved, None if all are held.

    ``prepare`` is ``none``, a kind of hook, a systemd service, or the path of a program.
    """

    freeze: int | None
    reboot: str
    prepare: str
