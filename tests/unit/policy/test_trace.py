# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The values of a decision, as an operator reads them: written as CEL writes them, and none from inside a loop."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from forewarn.events import Document, Vm
from forewarn.policy.decision import Facts
from tools.fixtures.events import GUID, event
from tools.fixtures.policy_data import policy, policy_set

NOW = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)
FACTS = Facts(NOW, Vm(name="web_0", tags={"role": "web"}))
FREEZE = event(GUID, not_before=NOW + timedelta(minutes=15), description="")


def values(condition: str, **variables: str) -> dict[str, str]:
    """Return what is recorded of an event for which a condition is tried, by the text of each part."""
    rules = policy({"condition": condition, "output": "approve"}, variables=variables)
    (decision,) = policy_set(rules).decide(Document(1, (FREEZE,)), FACTS)
    return {value.expression: value.value for value in decision.values}


@pytest.mark.parametrize(
    ("expression", "shown"),
    [
        ("dyn('a')", '"a"'),
        ("[1, 'a', notice, null]", '[1, "a", 900s, null]'),
        ("[[event.NotBefore]]", "[[2026-01-31T12:15:00Z]]"),
        ("{'a': notice}", '{"a": 900s}'),
        ("{1: 'x', 'y': b'z'}", '{1: "x", "y": b"z"}'),
        ("type(notice)", "google.protobuf.Duration"),
        ("event.?EventType", 'optional.of("Freeze")'),
        ("[event.?NotBefore, optional.none()]", "[optional.of(2026-01-31T12:15:00Z), optional.none()]"),
        ("vm.tags", '{"role": "web"}'),
        ("dyn(1.5) + 1.0", "2.5"),
    ],
)
def test_a_value_is_written_as_cel_writes_it(expression: str, shown: str) -> None:
    assert values("[variables.x].size() == 1 && leader", x=expression)["variables.x"] == shown


@pytest.mark.parametrize(
    ("condition", "recorded"),
    [
        ("event.?EventType.orValue('') == 'Freeze'", ("event.?EventType", '"Freeze"')),
        ("event.?DurationInSeconds.orValue(-1) == -1", ("event.?DurationInSeconds", "optional.none()")),
        ("vm.tags[?'tier'].orValue('') == ''", ("vm.tags[?'tier']", "optional.none()")),
        ("event.Resources[?7].orValue('') == ''", ("event.Resources[?7]", "optional.none()")),
    ],
)
def test_optional_value_is_shown_as_its_content(condition: str, recorded: tuple[str, str]) -> None:
    """And not as the bool that tells whether it has one."""
    rules = policy({"condition": condition, "output": "approve"})
    (decision,) = policy_set(rules).decide(Document(1, (FREEZE._replace(duration_in_seconds=None),)), FACTS)
    assert [value for value in decision.values if value.expression == recorded[0]] == [recorded]


@pytest.mark.parametrize(
    ("condition", "parts"),
    [
        ("event.?DurationInSeconds.orValue(-1) < 9", {"event.?DurationInSeconds.orValue(-1) < 9"}),
        ("cel.bind(x, event.EventType, x == 'Freeze')", {"event.EventType"}),
        ("event.Resources.exists(i, r, i == 0 && r == 'web_0')", {"event.Resources", "event.Resources.exists"}),
    ],
)
def test_bound_names_are_not_shown_alone(condition: str, parts: set[str]) -> None:
    found = values(condition)
    for part in parts:
        assert any(text.startswith(part) for text in found), found
    assert not any(text in ("x", "i", "r") or text.startswith(("x ", "i ", "r ")) for text in found), found
