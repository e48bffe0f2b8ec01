# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which policies a VM with signers uses, over any story of starts, reloads, offers of a source, permits and kills."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from forewarn.errors import InputError
from forewarn.policy import signature
from forewarn.runner.state import accepted_policy
from forewarn.system.posix import files
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tools.fixtures.killed_writes import BEFORE, HALFWAY, DyingSystem, KilledError, raise_killed
from tools.fixtures.signed_vm import INVALID, SERIALS, VALID, Pool, SignedVm, make_pool
from tools.suite.sizes import examples


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Pool:
    return make_pool(tmp_path_factory.mktemp("pool"))


# Any story


@pytest.fixture(scope="module")
def quick_ssh_keygen() -> Any:
    """Let the real ssh-keygen judge each pair of a content and a signature once."""
    known: dict[tuple[object, ...], subprocess.CompletedProcess[bytes]] = {}
    real = signature._ssh_keygen

    def remembered(*arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        file = arguments[arguments.index("-s") + 1]
        rest = tuple(argument for argument in arguments if argument != file)
        key = (rest, Path(file).read_bytes(), given)
        if key not in known:
            known[key] = real(*arguments, given=given)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(signature, "_ssh_keygen", remembered)
        yield


_names = st.sampled_from(VALID) | st.sampled_from(VALID) | st.sampled_from(INVALID)


class SignedStory(RuleBasedStateMachine):
    """Starts, reloads, pulls, permits and kills, judged by what is in use and by nothing inside."""

    pool: Pool

    def __init__(self) -> None:
        super().__init__()
        self._place = tempfile.TemporaryDirectory(prefix="forewarn-signed-")
        self.latest: int | None = None  # the serial that was in use last
        self.permitted: int | None = None  # instead of the latest

    def teardown(self) -> None:
        self._place.cleanup()

    @initialize(source=st.booleans(), name=_names)
    def begin(self, source: bool, name: str) -> None:
        Path(self._place.name).chmod(0o755)
        self.vm = SignedVm(self.pool, Path(self._place.name), source)
        self.source = source
        self.vm.bring(name)
        self.brought = name

    def _attempt(self, action: Callable[[], object]) -> None:
        """Let something happen; whatever becomes of it, the one in force stays or follows the rules."""
        before = self.vm.name
        try:
            action()
        except InputError:
            assert self.vm.name in (before, None)
            if self.vm.name is None:  # a start
                assert self.latest is None, "it has policies that it could use"
                assert self.brought not in self.pool.valid
        self._judge()

    def _judge(self) -> None:
        name = self.vm.name
        if name is None:
            return
        assert name in self.pool.valid, "nobody who may has signed it"
        serial = self.pool.valid[name]
        if self.latest is not None and serial < self.latest:
            assert self.permitted is not None
            assert serial >= self.permitted
        if serial != self.latest:
            self.permitted = None
        self.latest = serial

    @rule(name=_names)
    def bring(self, name: str) -> None:
        self.brought = name
        self.vm.bring(name)

    @rule()
    def start(self) -> None:
        self._attempt(self.vm.start)
        if self.vm.in_use is not None and not self.source:
            assert (self.vm.in_use.loaded.problem is None) == (self.vm.name == self.brought)

    @precondition(lambda self: self.vm.in_use is not None)
    @rule()
    def reload(self) -> None:
        self._attempt(self.vm.reload)

    @precondition(lambda self: self.vm.in_use is not None and self.source)
    @rule(name=_names)
    def pull(self, name: str) -> None:
        self._attempt(lambda: self.vm.pull(name))

    @rule(serial=st.sampled_from(SERIALS))
    def permit(self, serial: int) -> None:
        kept = accepted_policy.read_accepted(str(self.vm.state))
        if self.vm.permit(serial):
            assert self.latest is not None
            assert kept is not None
            assert serial < kept.serial
            self.permitted = serial

    @rule(data=st.data(), name=_names, number=st.integers(1, 14), moment=st.sampled_from([BEFORE, HALFWAY]))
    def kill(self, data: st.DataObject, name: str, number: int, moment: str) -> None:
        """Kill the runner somewhere while it starts, reloads or pulls. What it was about to use may be kept."""
        actions: list[Callable[[], object]] = [self.vm.start]
        if self.vm.in_use is not None:
            actions += [self.vm.reload, lambda: self.vm.pull(name)] if self.source else [self.vm.reload]
        action = data.draw(st.sampled_from(actions))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(files, "os", DyingSystem(number, moment, raise_killed))
            try:
                self._attempt(action)
                return
            except KilledError:
                self.vm.in_use = None
        kept = accepted_policy.read_accepted(str(self.vm.state))
        if kept is not None and kept.serial != self.latest:  # it is in use from the next start on
            assert kept.policy in [self.pool.policies[name] for name in self.pool.valid]
            assert self.latest is None or kept.serial > self.latest or kept.serial >= (self.permitted or 99)
            self.latest, self.permitted = kept.serial, None

    @invariant()
    def what_is_kept_is_valid(self) -> None:
        kept = accepted_policy.read_accepted(str(self.vm.state)) if hasattr(self, "vm") else None
        assert (None if kept is None else kept.serial) == (self.latest if hasattr(self, "vm") else None)


def test_no_story_breaks_the_promises(pool: Pool, quick_ssh_keygen: None) -> None:
    SignedStory.pool = pool
    SignedStory.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=20)
    test = SignedStory.TestCase()
    test.runTest()
