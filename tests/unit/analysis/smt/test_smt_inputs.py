# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is true of every event that a decision can be about, and of those that the service normally sends."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from forewarn.analysis.smt.encode.inputs import FIRST_NORMAL, LAST_NORMAL, Inputs
from forewarn.analysis.smt.encode.problem import Problem
from forewarn.analysis.smt.terms import Formula, conj, neg, same
from forewarn.events import API_VERSIONS, MAX_ID_CHARACTERS, MAX_TEXT_CHARACTERS
from forewarn.policy.functions.timevalues import MAX_TIMESTAMP, MIN_TIMESTAMP
from tools.judges.smt_facts import Facts

LATEST = "2020-07-01"
FIRST, LAST = MIN_TIMESTAMP // 1000, MAX_TIMESTAMP // 1000


def inputs(api_version: str = LATEST) -> Inputs:
    return Inputs(Problem(), api_version)


def is_text(given: Inputs, field: str, text: str) -> Formula:
    return same(given.text(field)[0], given.problem.texts.code(text))


@pytest.mark.parametrize(
    ("term", "right", "wrong"),
    [
        (lambda given: given.now_us, (FIRST, LAST), (FIRST - 1, LAST + 1)),
        (lambda given: given.not_before_us, (FIRST, LAST), (FIRST - 1, LAST + 1)),
        (lambda given: given.age_us, (0, LAST - FIRST), (-1, LAST - FIRST + 1)),
        (lambda given: given.now_us - given.age_us, (FIRST, LAST), (FIRST - 1, LAST + 1)),
        (lambda given: given.event_field("DurationInSeconds")[0], (-1, 2**63 - 1), (-2, 2**63)),
        (lambda given: given.resources.count, (1, 2), (0, -1)),
        (lambda given: given.tags.count, (0, 1), (-1,)),
        (lambda given: given.variable("now").value, (FIRST * 1000, LAST * 1000), (1, 999, -1)),
        (lambda given: given.variable("age").value, (0, 1000), (-1000, 1)),
    ],
)
def test_ranges(term: Callable[[Inputs], Any], right: tuple[int, ...], wrong: tuple[int, ...]) -> None:
    for given in (inputs(), inputs().variant(("now", "age", "NotBefore"), same_document=True)):
        value = term(given)
        facts = Facts(given.problem, *given.facts())
        assert all(facts.possible(value == one) for one in right)
        assert not any(facts.possible(value == one) for one in wrong)


def test_notice() -> None:
    given = inputs()
    value, error = given.variable("notice")
    left = given.not_before_us - given.now_us
    started = is_text(given, "EventStatus", "Started")
    there = given.has_not_before
    facts = Facts(given.problem, *given.facts())
    assert facts.certain(value == 5000, neg(started), there, left == 5)
    assert facts.certain(value == 0, neg(started), there, left == 0)
    assert facts.certain(value == 0, neg(started), there, left == -5)
    assert facts.certain(value == 0, started, left == 5)
    assert facts.certain(neg(error), started)
    assert facts.certain(neg(error), there)
    assert facts.certain(error, neg(started), neg(there))


def test_what_depends_on_the_name_of_the_vm() -> None:
    given = inputs()
    affected, leads = given.variable("affects_me"), given.variable("leader")
    facts = Facts(given.problem, *given.facts())
    for value, error in (affected, leads):
        assert facts.certain(neg(error), given.named)
        assert facts.certain(error, neg(given.named))
        assert facts.possible(given.named, value)
        assert facts.possible(given.named, neg(value))
    assert facts.certain(affected.value, leads.value)
    assert facts.possible(affected.value, neg(leads.value))


@pytest.mark.parametrize(
    ("field", "right", "wrong"),
    [
        ("EventId", ("a", " a", "a" * MAX_ID_CHARACTERS), ("", " ", "a" * (MAX_ID_CHARACTERS + 1))),
        ("EventType", ("a", " ", "a" * MAX_TEXT_CHARACTERS), ("", "a" * (MAX_TEXT_CHARACTERS + 1))),
        ("EventStatus", ("a", " ", "a" * MAX_TEXT_CHARACTERS), ("", "a" * (MAX_TEXT_CHARACTERS + 1))),
        ("Description", ("", "a" * MAX_TEXT_CHARACTERS), ("a" * (MAX_TEXT_CHARACTERS + 1),)),
        ("EventSource", ("", "a" * MAX_TEXT_CHARACTERS), ("a" * (MAX_TEXT_CHARACTERS + 1),)),
    ],
)
def test_texts_of_an_event(field: str, right: tuple[str, ...], wrong: tuple[str, ...]) -> None:
    given = inputs()
    cases = {text: is_text(given, field, text) for text in (*right, *wrong)}
    _value, there = given.text(field)
    facts = Facts(given.problem, *given.facts())
    assert [text for text in cases if facts.possible(cases[text])] == list(right)
    assert (there is True) is (field in ("EventId", "EventType", "EventStatus"))


@pytest.mark.parametrize("api_version", API_VERSIONS)
def test_fields_of_an_api_version(api_version: str) -> None:
    given = inputs(api_version)
    for field, since in (
        ("EventSource", "2019-08-01"),
        ("DurationInSeconds", "2020-07-01"),
        ("Description", "2020-07-01"),
    ):
        if field != "Description":
            assert (given.event_field(field)[1] is not False) is (api_version >= since), field
    assert given.event_field("Resources") == (given.resources, True)
    assert given.event_field("DurationInSeconds") == given.event_field("DurationInSeconds")
    normal = given.normal({})
    assert Facts(given.problem, *given.facts()).possible(normal)


def test_tags() -> None:
    given = inputs()
    (first, one), (second, other) = given.tags.tag("a"), given.tags.tag("b")
    assert one is not other
    assert given.tags.tag("a") == (first, one)
    facts = Facts(given.problem, *given.facts())
    assert facts.possible(first, second, given.tags.count == 2)
    assert not facts.possible(first, second, given.tags.count == 1)
    assert facts.possible(first, neg(second), given.tags.count == 1)
    assert facts.possible(neg(first), neg(second), given.tags.count == 0)


def test_facts_about_the_vm() -> None:
    given = inputs()
    assert given.vm_fact("tags") == (given.tags, given.tags.known)
    assert given.vm_fact("name") == (given.own_name, given.named)
    assert given.facts_read() == []
    assert given.vm_fact("zone") == given.vm_fact("zone")
    assert given.facts_read() == ["zone"]
    assert not given.reads("Description")
    given.text("Description")
    assert given.reads("Description")


def test_the_years_2000_to_2100() -> None:
    first, last = (
        datetime.fromtimestamp(0, timezone.utc) + timedelta(microseconds=one) for one in (FIRST_NORMAL, LAST_NORMAL)
    )
    assert (first, last) == tuple(datetime(year, 1, 1, tzinfo=timezone.utc) for year in (2000, 2100))


def normal_without(api_version: str, change: Callable[[Inputs], Formula]) -> bool:
    """Return whether the service normally sends an event that also is as ``change`` says."""
    given = inputs(api_version)
    formula = change(given)
    normal = given.normal({"EventType": ("Other",), "EventStatus": ("Paused",)})
    return Facts(given.problem, *given.facts()).possible(normal, formula)


@pytest.mark.parametrize(
    ("change", "sent"),
    [
        (lambda given: is_text(given, "EventType", "Freeze"), True),
        (lambda given: is_text(given, "EventType", "Other"), True),
        (lambda given: is_text(given, "EventType", "Another"), False),
        (lambda given: is_text(given, "EventStatus", "Scheduled"), True),
        (lambda given: is_text(given, "EventStatus", "Paused"), True),
        (lambda given: is_text(given, "EventStatus", "Another"), False),
        (lambda given: is_text(given, "ResourceType", "VirtualMachine"), True),
        (lambda given: is_text(given, "ResourceType", "Another"), False),
        (lambda given: neg(given.text("ResourceType")[1]), False),
        (lambda given: is_text(given, "EventSource", "User"), True),
        (lambda given: is_text(given, "EventSource", "Another"), False),
        (lambda given: neg(given.text("EventSource")[1]), False),
        (lambda given: neg(given.event_field("DurationInSeconds")[1]), False),
        (lambda given: neg(given.text("Description")[1]), True),
        (lambda given: conj((is_text(given, "EventStatus", "Started"), neg(given.has_not_before))), True),
        (lambda given: conj((is_text(given, "EventStatus", "Started"), given.has_not_before)), False),
        (lambda given: conj((is_text(given, "EventStatus", "Scheduled"), neg(given.has_not_before))), False),
        (lambda given: neg(given.named), False),
        (lambda given: neg(given.resources.each_once), False),
        (lambda given: neg(given.tags.known), False),
        (lambda given: neg(given.vm_fact("location")[1]), False),
        (lambda given: neg(given.vm_fact("size")[1]), False),
        (lambda given: neg(given.vm_fact("zone")[1]), True),
        (lambda given: given.now_us == FIRST_NORMAL, True),
        (lambda given: given.now_us == LAST_NORMAL, True),
        (lambda given: given.now_us == FIRST_NORMAL - 1, False),
        (lambda given: given.now_us == LAST_NORMAL + 1, False),
        (lambda given: conj((given.has_not_before, given.not_before_us == FIRST_NORMAL)), True),
        (lambda given: conj((given.has_not_before, given.not_before_us == LAST_NORMAL)), True),
        (lambda given: conj((given.has_not_before, given.not_before_us == FIRST_NORMAL - 1)), False),
        (lambda given: conj((given.has_not_before, given.not_before_us == LAST_NORMAL + 1)), False),
        (lambda given: conj((neg(given.has_not_before), given.not_before_us == LAST_NORMAL + 1)), True),
        (lambda given: given.now_us - given.age_us == FIRST_NORMAL, True),
        (lambda given: given.now_us - given.age_us == FIRST_NORMAL - 1, False),
    ],
)
def test_what_the_service_sends(change: Callable[[Inputs], Formula], sent: bool) -> None:
    assert normal_without(LATEST, change) is sent


def test_older_api_version_limits_normal_events() -> None:
    assert normal_without(LATEST, lambda given: is_text(given, "EventType", "Terminate"))
    assert not normal_without("2017-11-01", lambda given: is_text(given, "EventType", "Terminate"))
    assert normal_without("2017-11-01", lambda given: neg(given.text("EventSource")[1]))


def test_another_event_differs_in_what_may_differ() -> None:
    base = inputs()
    base.text("Description")
    base.vm_fact("zone")
    other = base.variant(("EventSource", "now"), same_document=True)
    further = base.variant(("EventType", "DurationInSeconds", "age", "NotBefore"), same_document=False)
    assert (other.number, further.number) == (1, 2)
    assert (base.document, other.document, further.document) == (0, 0, 2)
    assert other.text("Description") == base.text("Description")
    assert other.text("EventSource")[0] is not base.text("EventSource")[0]
    assert other.event_field("EventSource") == other.text("EventSource")
    assert other.event_field("EventType") == base.text("EventType")
    assert other.event_field("DurationInSeconds") == base.event_field("DurationInSeconds")
    assert further.event_field("DurationInSeconds")[0] is not base.event_field("DurationInSeconds")[0]
    assert further.text("EventType")[0] is not base.text("EventType")[0]
    assert (other.now_us is base.now_us, other.age_us is base.age_us) == (False, True)
    assert (further.now_us is base.now_us, further.age_us is base.age_us) == (True, False)
    assert other.event_field("NotBefore")[1] is base.has_not_before
    assert further.event_field("NotBefore")[1] is not base.has_not_before
    assert other.vm_fact("zone") == base.vm_fact("zone")
    assert other.facts_read() == ["zone"]
    assert other.reads("Description")
    assert other.reads("EventSource")
    assert not further.reads("ResourceType")
    facts = Facts(base.problem, *base.facts())
    assert facts.possible(base.now_us == 1, other.now_us == 2, further.now_us == 1)
    assert not facts.possible(base.not_before_us == 1, other.not_before_us == 2)
    assert not facts.possible(further.age_us > further.now_us - FIRST)
