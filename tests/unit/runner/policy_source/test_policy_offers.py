# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runner's loop with a policy source: offers are loaded as a reload does, and nothing waits for the source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from forewarn.errors import InputError
from forewarn.runner.hooks.executor import SUCCEEDED
from forewarn.runner.policy_source.report import FAILED, UPDATED, SourceReport
from forewarn.runner.policy_source.settings import SourceSettings
from forewarn.runner.policy_source.source import CHILD_SECONDS, PolicySource, SourceOptions
from forewarn.runner.state import accepted_policy
from forewarn.runner.state.accepted_policy import SignedPolicy
from tools.fixtures.children import Children
from tools.fixtures.journals import entries
from tools.worlds.runner_world import Hook
from tools.worlds.stories import DRAINED, HELD, Policies, Story, match

OFFER = SignedPolicy(b"{}", b"signature")
OTHERS: Policies = [("web", [match("other", prepare=["other"], recover=["other-back"])])]


def _short(hook: Hook) -> None:
    hook.ends_at, hook.result = hook.started_at + 0.5, SUCCEEDED


class PullingStory(Story):
    """A story whose runner has a policy source; the test is its child processes."""

    def __init__(self, directory: Path, *generations: Policies, has_source: bool = True) -> None:
        super().__init__(directory, *generations, plan=_short)
        runner, clocks = self.instance.runner, self.instance.clocks
        self.children = Children("policy-source")
        self.loads: list[SignedPolicy | None] = []
        if not has_source:
            return
        options = SourceOptions(
            SourceSettings("https://policies.example.com/policy.json"),
            "/signers",
            None,
            "http://127.0.0.1:9",
            None,
            None,
        )
        self.source = PolicySource(
            options, str(directory), self.children, runner.recorder, clocks, runner.health.facts, lambda: 0.5
        )
        runner._policy_source, runner._background = self.source, [self.source]
        load = runner._options.reload
        assert load is not None

        def reload(offer: SignedPolicy | None) -> Any:
            self.loads.append(offer)
            return load(offer)

        runner._options = runner._options._replace(reload=reload)

    def refuse(self) -> None:
        """Let each load fail from now on."""

        def reload(_offer: object) -> Any:
            raise InputError("no parameter x", "Do something.")

        self.instance.runner._options = self.instance.runner._options._replace(reload=reload)

    def bring(self, generation: int = 1) -> None:
        """Let the child bring other policies, and the loop turn until it has loaded them."""
        self.turns(30)
        assert self.children.started
        self.world.generation = generation
        accepted_policy.write_offer(str(self.directory), OFFER)
        self.children.report(SourceReport(UPDATED, None, '"1"', 7))
        self.turns(2)

    def kinds(self) -> list[str]:
        return [entry.kind for entry in entries(self.directory)]


def test_offer_is_loaded_as_a_reload(tmp_path: Path) -> None:
    story = PullingStory(tmp_path, HELD, DRAINED)
    story.schedule()
    story.bring()
    assert story.loads == [OFFER]
    story.turns(20)
    assert story.count("post", result="taken") == 1  # the policies before hold
    (line,) = story.instance.log.named("reloaded")
    assert line["from"] == "policy-source"
    assert line["digest"] == story.world.policies(1).digest
    assert "reloaded" in story.kinds()
    story.turns(120)
    assert len(story.loads) == 1
    story.stop()


def test_event_under_way_keeps_what_it_is_owed(tmp_path: Path) -> None:
    """Prepared by the policies before, it is recovered from as they said."""
    story = PullingStory(tmp_path, DRAINED, OTHERS)
    event = story.schedule()
    story.go(30)
    assert story.count("start", name="drain") == 1
    story.bring()
    assert story.loads == [OFFER]
    story.go(20)
    story.start_event(event, 5)
    story.finish_event(event, 20)
    assert story.count("start", name="undrain") == 1
    story.stop()


def test_refused_offer_changes_nothing(tmp_path: Path) -> None:
    story = PullingStory(tmp_path, HELD, DRAINED)
    story.schedule()
    before = story.instance.runner.controller.reconciler.policies
    story.refuse()
    story.bring()
    story.turns(20)
    assert story.instance.runner.controller.reconciler.policies is before
    assert story.count("post") == 0
    (line,) = story.instance.log.named("policy-source-failed")
    assert (line["result"], line["reason"]) == ("refused", "no parameter x. Do something.")
    assert story.instance.runner.health.facts.get("reload_problem") is None
    story.stop()


@pytest.mark.parametrize("how", ["silent", "failing"])
def test_source_delays_neither_hooks_nor_polls(tmp_path: Path, how: str) -> None:
    """The ledger of a day with a source in trouble is that of one without any, to the moment."""
    ledgers = []
    for has_source in (False, True):
        directory = tmp_path / str(has_source)
        directory.mkdir(0o700)
        story = PullingStory(directory, DRAINED, has_source=has_source)
        story.schedule(notice=120.0)
        for _ in range(15):
            story.turns(CHILD_SECONDS / 4)
            if has_source and how == "failing" and story.source._asking:
                story.children.report(SourceReport(FAILED, "answered 503"))
        assert bool(story.children.started) == has_source
        ledgers.append([(entry.kind, round(entry.at, 3)) for entry in story.world.ledger])
        story.stop()
    assert ledgers[0] == ledgers[1]
    assert {"start", "post", "end"} <= {kind for kind, _at in ledgers[0]}


def test_reload_asks_the_source_again(tmp_path: Path) -> None:
    story = PullingStory(tmp_path, HELD, DRAINED)
    story.turns(30)
    story.children.report(SourceReport(UPDATED, None, '"1"', 7))
    accepted_policy.write_offer(str(tmp_path), OFFER)
    story.turns(2)
    asked = len(story.children.started)
    story.reload()
    story.turns(3)
    assert len(story.children.started) == asked + 1
    assert story.children.started[-1]["etag"] == ""
    assert story.loads == [OFFER, None]
    story.stop()
