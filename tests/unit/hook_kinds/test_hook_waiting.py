# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a hook of a kind waits for its effect."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from forewarn.hook_kinds.common.work import HookFailedError, NotReadyError, Work


def scripted(*answers: str | Exception) -> Callable[[], str]:
    """Return a function that returns, or raises, one answer after the other, and the last one again and again."""
    left = list(answers)

    def answer() -> str:
        found = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(found, Exception):
            raise found
        return found

    return answer


def test_unreachable_software_is_awaited_and_reported() -> None:
    said: list[str] = []
    work = Work({}, {}, 20, say=said.append)
    work.wait(scripted(NotReadyError("nobody answers"), NotReadyError("nobody answers"), "1 job", ""), every=0.01)
    assert said == ["waiting: nobody answers", "waiting: 1 job"]


@pytest.mark.parametrize("last", ["1 job is left", NotReadyError("1 job is left")])
def test_last_missing_condition_is_the_reason(last: str | Exception) -> None:
    work = Work({}, {}, 0.7, say=lambda _text: None)
    with pytest.raises(HookFailedError, match=r"^1 job is left, after 0 s$"):
        work.wait(scripted("2 jobs are left", last), every=0.01)


def test_what_will_not_change_is_not_waited_for() -> None:
    work = Work({}, {}, 20, say=lambda _text: None)
    with pytest.raises(HookFailedError, match=r"^no such node$"):
        work.wait(scripted(HookFailedError("no such node"), ""), every=0.01)


def test_timed_out_question_keeps_the_previous_reason() -> None:
    work = Work({}, {}, 0.8, say=lambda _text: None)
    answer = scripted("1 job is left", "")

    def missing() -> str:
        text = answer()
        if not text:
            work.run("/bin/sleep", "20")
        return text

    with pytest.raises(HookFailedError, match=r"^1 job is left, after [0-9] s$"):
        work.wait(missing, every=0.01)
