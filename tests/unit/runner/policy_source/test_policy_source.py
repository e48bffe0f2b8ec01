# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When the policy source is asked, and what log, metrics and heartbeat say of the outcome."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from forewarn.runner.groups.settings import SecretSource
from forewarn.runner.hooks.executor import FAILED as CHILD_FAILED
from forewarn.runner.hooks.executor import SUCCEEDED, HookResult
from forewarn.runner.journal.writer import Journal
from forewarn.runner.policy_source import source
from forewarn.runner.policy_source.report import FAILED, REFUSED, UNCHANGED, UPDATED, SourceReport
from forewarn.runner.policy_source.settings import SourceSettings
from forewarn.runner.policy_source.source import PolicySource, SourceOptions
from forewarn.runner.state import accepted_policy
from forewarn.runner.state.accepted_policy import SignedPolicy
from forewarn.runner.telemetry.metrics import Metrics
from forewarn.runner.telemetry.recorder import Recorder
from tools.fixtures.children import Children
from tools.fixtures.clocks import ManualClocks
from tools.fixtures.logs import Lines

URL = "https://policies.example.com/policy.json"
POLICY = SignedPolicy(b"{}", b"signature")


class SourceRig:
    """A source of which nothing is asked: a test says what each child reports."""

    def __init__(self, directory: Path, journal: Journal, clocks: ManualClocks, chance: float = 0.5) -> None:
        directory.chmod(0o700)
        self.directory = str(directory)
        self.clocks = clocks
        self.children = Children("policy-source")
        self.log = Lines()
        self.metrics = Metrics()
        self.facts: dict[str, Any] = {}
        recorder = Recorder(journal, self.log, self.metrics)
        options = SourceOptions(SourceSettings(URL), "/signers", None, "http://127.0.0.1:9", None, None)
        self.source = PolicySource(
            options, self.directory, self.children, recorder, clocks, self.facts, random=lambda: chance
        )
        self.clocks.sleep(source.FIRST_SECONDS / 2)

    def asked(self) -> int:
        """Return how many children were started so far, with what is due now."""
        self.source.start_if_due()
        return len(self.children.started)

    def report(self, result: str, reason: str | None = None, **fields: Any) -> None:
        """Ask, and let the child report."""
        before = len(self.children.started)
        if not self.source._asking:
            assert self.asked() == before + 1
        self.children.report(SourceReport(result, reason, **fields))
        self.source.collect_results()

    def wait(self) -> None:
        self.clocks.sleep(60)

    def offer(self, problem: str | None, **fields: Any) -> None:
        """Let the child bring an offer, and the loop load it or not."""
        accepted_policy.write_offer(self.directory, POLICY)
        self.report(UPDATED, **fields)
        assert self.source.take_offer() == POLICY
        assert self.source.take_offer() is None
        self.source.report_loaded(problem)

    def request(self) -> dict[str, Any]:
        return self.children.started[-1]

    def fact(self) -> dict[str, Any]:
        found: dict[str, Any] = self.facts["policy_source"]
        return found

    def names(self) -> list[str]:
        """Return the names of the lines in the log."""
        return [name for _level, name, _fields in self.log.lines]

    def checks(self) -> dict[str, int]:
        lines = [line for line in self.metrics.render().splitlines() if "source_checks_total{" in line]
        return {line.split('"')[1]: int(line.split()[-1]) for line in lines}


@pytest.fixture
def rig(tmp_path: Path, journal: Journal, clocks: ManualClocks) -> SourceRig:
    return SourceRig(tmp_path, journal, clocks)


def test_source_is_asked_once_an_interval(rig: SourceRig) -> None:
    assert rig.asked() == 1
    assert rig.asked() == 1
    rig.wait()
    assert rig.asked() == 1  # one at a time
    rig.report(UNCHANGED)
    rig.clocks.sleep(59)
    assert rig.asked() == 1
    rig.clocks.sleep(1)
    assert rig.asked() == 2


@pytest.mark.parametrize("chance", [0.0, 1.0])
def test_first_question_comes_at_any_moment(
    tmp_path: Path, journal: Journal, clocks: ManualClocks, chance: float
) -> None:
    """VMs that start together do not ask together."""
    rig = SourceRig(tmp_path, journal, clocks, chance)
    assert rig.asked() == (0 if chance else 1)
    clocks.sleep(source.FIRST_SECONDS / 2)
    assert rig.asked() == 1
    rig.report(UNCHANGED)
    clocks.sleep(60 * (1.1 if chance else 0.9) - 1)
    assert rig.asked() == 1
    clocks.sleep(1)
    assert rig.asked() == 2


def test_child_gets_what_it_needs(rig: SourceRig) -> None:
    rig.source.vm_name = "web_0"
    rig.report(UNCHANGED, etag='"1"')
    rig.wait()
    assert rig.asked() == 2
    assert (rig.request()["url"], rig.request()["signers"], rig.request()["vm"]) == (URL, "/signers", "web_0")
    assert (rig.request()["etag"], rig.request()["state"]) == ('"1"', rig.directory)
    assert rig.request()["seconds"] < source.CHILD_SECONDS


def test_another_name_may_mean_another_wave(rig: SourceRig) -> None:
    rig.report(UNCHANGED, etag='"1"')
    rig.source.vm_name = "web_0"
    rig.wait()
    rig.report(UNCHANGED, etag='"1"')
    assert rig.request()["etag"] == ""
    rig.wait()
    rig.asked()
    assert rig.request()["etag"] == '"1"'


def test_wave_that_begins_is_looked_at(rig: SourceRig) -> None:
    start = rig.clocks.wall() + 90
    rig.report(UNCHANGED, etag='"1"', again=start)
    for expected in ('"1"', "", '"1"'):
        rig.wait()
        rig.report(UNCHANGED, etag='"1"', again=start if expected else None)
        assert rig.request()["etag"] == expected


def test_loaded_offer_is_a_success(rig: SourceRig) -> None:
    rig.offer(None, etag='"3"', serial=3, share=5.0)
    assert rig.fact() == {
        "url": URL,
        "checked_at": rig.clocks.wall(),
        "serial": 3,
        "share": 5.0,
        "problem": None,
        "refused_serial": None,
    }
    assert rig.checks() == {"unchanged": 0, "updated": 1, "failed": 0, "refused": 0}
    assert "forewarn_policy_source_up 1" in rig.metrics.render()
    assert rig.names() == []


def test_offer_that_cannot_be_loaded_stays_a_problem(rig: SourceRig) -> None:
    """Until something else is there: the server's "nothing new" is about what was refused."""
    rig.offer("no parameter x", etag='"3"', serial=3)
    for _ in range(2):
        rig.wait()
        rig.report(UNCHANGED, etag='"3"')
        assert rig.fact()["problem"] == "no parameter x"
    assert rig.names() == ["policy-source-failed"]
    assert "forewarn_policy_source_up 0" in rig.metrics.render()
    rig.wait()
    rig.offer(None, etag='"4"', serial=4)
    assert rig.fact()["problem"] is None
    assert rig.names() == ["policy-source-failed", "policy-source-recovered"]


def test_missing_offer_is_a_problem(rig: SourceRig) -> None:
    rig.report(UPDATED, etag='"3"')
    assert rig.source.take_offer() is None
    assert "there is none" in rig.fact()["problem"]


def test_each_failure_is_logged_once(rig: SourceRig) -> None:
    for reason in ("answered 503", "answered 503", "answered 404"):
        rig.report(FAILED, reason)
        assert rig.fact()["problem"] == reason
        rig.wait()
    rig.report(REFUSED, "nobody has signed it", serial=1)
    assert rig.fact()["refused_serial"] == 1
    lines = rig.log.named("policy-source-failed", hint="The policies in use stay.")
    assert [(line["result"], line["reason"]) for line in lines] == [
        ("failed", "answered 503"),
        ("failed", "answered 404"),
        ("refused", "nobody has signed it"),
    ]
    assert len(rig.names()) == 3
    assert rig.checks() == {"unchanged": 0, "updated": 0, "failed": 3, "refused": 1}
    rig.wait()
    rig.report(UNCHANGED)
    assert rig.names()[3:] == ["policy-source-recovered"]
    assert (rig.fact()["problem"], rig.fact()["refused_serial"]) == (None, None)
    assert f"last_success_timestamp_seconds {rig.clocks.wall():.15g}" in rig.metrics.render()


def test_failure_keeps_what_was_known(rig: SourceRig) -> None:
    rig.report(UNCHANGED, etag='"3"', serial=3, share=5.0)
    rig.wait()
    rig.report(FAILED, "answered 503")
    assert (rig.fact()["serial"], rig.fact()["share"]) == (3, 5.0)
    rig.wait()
    rig.report(UNCHANGED, etag='"3"')  # of a server that has answered "nothing new"
    assert rig.request()["etag"] == '"3"'
    assert (rig.fact()["serial"], rig.fact()["share"]) == (3, 5.0)


@pytest.mark.parametrize(
    "result",
    [
        HookResult(CHILD_FAILED, 1, 0.1, "", "it ended with exit code 1"),
        HookResult("timed-out", None, 60.0, "", "it took longer than 60 s"),
        HookResult(SUCCEEDED, 0, 0.1, "", ""),
        HookResult(SUCCEEDED, 0, 0.1, "{}}", ""),
        HookResult(SUCCEEDED, 0, 0.1, "[]", ""),
        HookResult(SUCCEEDED, 0, 0.1, '{"unknown": 1}', ""),
    ],
)
def test_child_without_a_report_is_a_failure(rig: SourceRig, result: HookResult) -> None:
    assert rig.asked() == 1
    rig.children.end_with(result)
    rig.source.collect_results()
    assert "the process that asks it" in rig.fact()["problem"]
    assert rig.checks()["failed"] == 1
    rig.wait()
    assert rig.asked() == 2


def test_reload_asks_at_once(rig: SourceRig) -> None:
    rig.report(UNCHANGED, etag='"3"')
    rig.source.ask_again()
    assert rig.asked() == 2
    assert rig.request()["etag"] == ""


def test_reload_during_a_question_asks_again(rig: SourceRig) -> None:
    """What the child in flight knows is of before: a permit, for example, is missing."""
    assert rig.asked() == 1
    rig.source.ask_again()
    assert rig.asked() == 1
    rig.report(UNCHANGED, etag='"3"')
    assert rig.asked() == 2
    assert rig.request()["etag"] == ""
    rig.report(UNCHANGED, etag='"3"')
    assert rig.asked() == 2


def test_missing_secret_is_a_failure(rig: SourceRig) -> None:
    settings = SourceSettings(URL, sas=SecretSource("sas", None))
    rig.source._options = rig.source._options._replace(settings=settings)
    assert rig.asked() == 0
    assert "credential" in rig.fact()["problem"]
    rig.wait()
    assert rig.asked() == 0
    assert rig.names() == ["policy-source-failed"]


def test_secret_in_the_address_is_not_shown(rig: SourceRig) -> None:
    rig.source._options = rig.source._options._replace(settings=SourceSettings(f"{URL}?sig=secret"))
    rig.report(UNCHANGED)
    assert "secret" not in json.dumps(rig.facts)
