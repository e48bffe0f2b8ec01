# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Events of a case, and the command that repeats it."""

from __future__ import annotations

from datetime import datetime, timezone

from forewarn.analysis.event_space.case import SAMPLE_TIMES, VM, Case
from forewarn.analysis.event_space.domains import MISSING
from forewarn.events import LATEST_API_VERSION
from forewarn.policy.functions.timevalues import SECOND

NOW = 1_767_225_600 * SECOND  # 2026-01-01T00:00:00Z


def test_event_has_the_time_of_its_case() -> None:
    found = Case(now=NOW).witness(LATEST_API_VERSION)
    assert found.facts.now == datetime(2026, 1, 1, tzinfo=timezone.utc)
    assert found.event["NotBefore"] == "2026-01-01T00:15:00Z"
    assert found.facts.vm.tags is None


def test_explain_command_has_parameters_as_yaml() -> None:
    found = Case(now=NOW, given={"flag": True, "n": 3, "text": "a"}).witness(LATEST_API_VERSION).explain
    given = [value for option, value in zip(found, found[1:]) if option == "--param"]
    assert given == ["flag=true", "n=3", "text=a"]


def test_sample_times_cover_weekdays_and_differ_in_hours() -> None:
    times = [datetime.fromtimestamp(one // SECOND, timezone.utc) for one in SAMPLE_TIMES]
    assert {one.weekday() for one in times} == set(range(7))
    assert len({one.hour for one in times}) >= 8
    assert len({one.month for one in times}) >= 6


def test_this_vm_leads_if_its_name_is_known() -> None:
    assert Case(now=NOW).witness(LATEST_API_VERSION).document.events[0].resources == (VM,)
    full = Case(now=NOW, count=1, named={"a": True}).witness(LATEST_API_VERSION)
    assert full.document.events[0].resources == ("a",)
    unnamed = Case(now=NOW, vm={"name": MISSING}).witness(LATEST_API_VERSION)
    assert unnamed.facts.vm.name is None
    assert VM not in unnamed.document.events[0].resources


def test_the_command_has_tags_as_they_are_written() -> None:
    tags = {"größe=": "é"}
    found = Case(now=NOW, tags=tags, tags_known=True).witness(LATEST_API_VERSION).explain
    assert 'tags={"größe=": "é"}' in found
