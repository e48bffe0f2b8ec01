# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the runner's cycle logs, and what ``--once`` does."""

from __future__ import annotations

from datetime import timedelta

import pytest
from forewarn.errors import ServiceError
from forewarn.events import Document, Vm
from tools.fixtures.events import NOW, event
from tools.fixtures.loop_bench import Bench, http_fault, listing

# The log


def test_a_decision_line_has_all_that_explains_it(bench: Bench) -> None:
    bench.document = Document(2, (event(not_before=NOW + timedelta(seconds=90)),), ("Events[1] is 5, not an object",))
    bench.instance_answer = Vm(name="web_1")
    bench.run(3)
    (document,) = bench.lines("document")
    assert (document["level"], document["problems"]) == ("warning", ["Events[1] is 5, not an object"])
    (line,) = bench.lines("decision")
    expected = {
        "eligibility": "not-the-leader",
        "event_id": "A",
        "type": "Freeze",
        "status": "Scheduled",
        "source": "Platform",
        "resources": ["web_0", "web_1"],
        "seconds_to_not_before": 90,
        "output": "approve",
        "policy": "web-tier",
        "rule": "brief",
        "policy_reason": "a brief freeze",
    }
    assert {name: line[name] for name in expected} == expected
    assert "web_0 leads" in line["reason"]


@pytest.mark.parametrize(
    ("description", "shown"),
    [
        ("Host server is undergoing maintenance.", "Host server is undergoing maintenance."),
        ("x" * 200, "x" * 200),
        ("x" * 201, "x" * 199 + "…"),
        ("", None),
        (None, None),
    ],
)
def test_a_decision_line_ends_with_the_description(bench: Bench, description: str | None, shown: str | None) -> None:
    bench.document = listing(event()._replace(description=description))
    bench.run(3)
    (line,) = bench.lines("decision")
    assert line.get("description") == shown
    if shown is not None:
        assert list(line)[-2:] == ["description", "forewarn"]


# Once


def test_once_polls_patiently_decides_and_approves(bench: Bench) -> None:
    bench.document = listing(event())
    bench.make().run_once()
    assert bench.patience == [120.0]
    assert [ids for _, ids in bench.posts] == [["A"]]


@pytest.mark.parametrize("status", [403, 503])
def test_once_fails_when_the_service_does_not_answer(bench: Bench, status: int) -> None:
    bench.fault = http_fault(status)
    with pytest.raises(ServiceError) as caught:
        bench.make().run_once()
    assert caught.value.exit_code == 3


@pytest.mark.parametrize("status", [400, 503])
def test_once_fails_when_an_approval_does(bench: Bench, status: int) -> None:
    bench.document = listing(event())
    bench.approval_fault = lambda ids: http_fault(status)
    with pytest.raises(ServiceError):
        bench.make().run_once()


def test_once_without_events_requests_no_identity(bench: Bench) -> None:
    bench.make().run_once()
    assert not bench.identity_requests
