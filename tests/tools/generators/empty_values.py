# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random expressions about lists, maps and optional values with nothing in them, whose elements have every type."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

_EMPTY = ("[]", "{}", "optional.none()", "[[]]", "{'a': []}", "[{}]", "[optional.none()]", "optional.of([])")
_OTHERS = (
    *("[true]", "[1]", "['a']", "{'a': true}", "{1: 'a'}", "optional.of(true)", "[[], [true]]", "true", "1", "'a'"),
    *("event.Resources", "event.DurationInSeconds", "event.EventType", "affects_me", "vm.name", "vm.tags"),
    *("event.?DurationInSeconds", "event.Resources.filter(r, r == vm.name)", "has(event.NotBefore)"),
)
_STEPS = (
    *("{0}[0]", "{0}['a']", "{0}.a", "{0}[?0]", "{0}[?'a']", "{0}.?a", "{0}[{1}]", "{0}.first()", "{0}.last()"),
    *("{0}.value()", "{0}.hasValue()", "{0}.orValue({1})", "{0}.or({1})", "optional.of({0})", "[?{0}]"),
    *("{0}.optMap(x, x)", "{0}.optFlatMap(x, optional.of(x))", "optional.ofNonZeroValue({0})", "cel.bind(x, {0}, x)"),
    *("{0}.map(x, x)", "{0}.map(x, x, x)", "{0}.filter(x, x)", "{0}.exists(x, x)", "{0}.all(x, x)"),
    *("{0}.exists_one(x, x)", "{0}.exists(x, true)", "{0}.flatten()", "{0}.distinct()", "{0}.sort()", "{0}.reverse()"),
    *("{0}.slice(0, 1)", "[{0}]", "[{0}, {1}]", "{{'a': {0}}}", "dyn({0})", "size({0})", "string({0})", "!{0}", "-{0}"),
    *("{0} || {1}", "{0} && {1}", "{0} ? {1} : {2}", "{0} == {1}", "{0} != {1}", "{0} < {1}", "{0} + {1}"),
    *("{0} in {1}", "{0}.startsWith('a')"),
)


def empty_value(chance: Random, steps: int, is_accepted: Callable[[str], bool]) -> str:
    """Return an accepted expression that begins with something empty, of at most so many steps."""
    text = chance.choice(_EMPTY)
    for _ in range(steps):
        operands = [text, *(chance.choice((*_EMPTY, *_OTHERS)) for _ in range(2))]
        step = chance.choice(_STEPS)
        if "{1}" in step:
            chance.shuffle(operands)
        longer = f"({step.format(*operands)})"
        text = longer if is_accepted(longer) else text
    return text
