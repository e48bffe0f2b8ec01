# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is published, judged by VMs that read it as they would: nobody is ever offered less than was promised."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import ClassVar

import pytest
from forewarn.errors import InputError
from forewarn.fleet.publish import ALL, Publisher
from forewarn.policy import waves
from forewarn.policy.artifact import encode, load
from forewarn.policy.signature import Signers
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tools.fixtures.policy_files import HEAD, loaded
from tools.fixtures.signing import allow, make_key
from tools.suite.sizes import examples

VMS = [f"web_{number}" for number in range(150)]


class MemoryPlace:
    """Files in memory; ``order`` is in which order they were written."""

    name, where = "policy.json", "memory"

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.order: list[str] = []

    def read(self, name: str) -> bytes | None:
        return self.files.get(name)

    def write(self, name: str, content: bytes) -> None:
        self.files[name] = content
        self.order.append(name)


class ReadingVm:
    """A VM that reads what is published, and takes nothing older than what it has."""

    verified: ClassVar[set[tuple[bytes, bytes]]] = set()  # once for all VMs

    def __init__(self, name: str, place: MemoryPlace, signers: Signers) -> None:
        self.name = name
        self.serial = 0
        self.digest: str | None = None
        self.refused = False
        self._place = place
        self._signers = signers

    def pull(self, now: float) -> None:
        content = self._read(self._place.name)
        wave = waves.choose(waves.decode(content), self.name, now).wave
        self.refused = False
        if wave is None or wave.serial == self.serial:
            return
        artifact = self._read(wave.file)
        assert hashlib.sha256(artifact).hexdigest() == wave.sha256
        found = load(artifact)
        assert found.serial == wave.serial
        if wave.serial < self.serial:
            self.refused = True
            return
        self.serial, self.digest = wave.serial, found.digest

    def _read(self, name: str) -> bytes:
        pair = (self._place.files[name], self._place.files[f"{name}.sig"])
        if pair not in self.verified:
            self._signers.verify(*pair)
            self.verified.add(pair)
        return pair[0]


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """Four policies that differ, compiled."""
    directory = tmp_path_factory.mktemp("policies")
    kinds = ("Freeze", "Reboot", "Redeploy", "Terminate")
    texts = [f"{HEAD}    - condition: event.EventType == '{kind}'\n      output: approve\n" for kind in kinds]
    return [encode(loaded(directory, text).data) for text in texts]


@pytest.fixture(scope="module")
def signer(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Signers]:
    directory = tmp_path_factory.mktemp("keys")
    key = make_key(directory)
    return str(key.private), Signers(allow(directory, key))


@pytest.fixture
def place() -> MemoryPlace:
    return MemoryPlace()


@pytest.fixture
def publisher(place: MemoryPlace, signer: tuple[str, Signers]) -> Publisher:
    return Publisher(place, signer[1], signer[0])


def test_any_sequence_reaches_the_vms(texts: list[bytes], signer: tuple[str, Signers]) -> None:
    class PublishingMachine(RuleBasedStateMachine):
        @initialize()
        def begin(self) -> None:
            self.place = MemoryPlace()
            self.publisher = Publisher(self.place, signer[1], signer[0])
            self.vms = [ReadingVm(name, self.place, signer[1]) for name in VMS]
            self.now = 1_800_000_000.0
            self.release = 0
            self.complete: list[tuple[int, str]] = []  # releases that all VMs had, with their digests, in order
            self.partial: list[tuple[float, float | None]] = []  # shares, and when they begin
            self.add(0, ALL, None)

        def add(self, number: int, share: float, start: float | None) -> None:
            published = self.publisher.read()
            before = dict(self.place.files)
            wave = self.publisher.release(published, texts[number], int(self.now), share, start, self.now)
            self.publisher.publish(published, wave, self.now)
            self.release += 1
            self.newest = load(texts[number]).digest
            self.note(share, start)
            # A VM may read at any moment: what was there before is as it was, except for the manifest.
            own = (self.place.name, f"{self.place.name}.sig")
            assert all(self.place.files[name] == content for name, content in before.items() if name not in own)
            assert self.place.order[-1] == self.place.name

        def note(self, share: float, start: float | None) -> None:
            stay = [] if self.has_begun(start) else [one for one in self.partial if self.has_begun(one[1])]
            self.partial = ([(share, start)] if share < ALL else []) + stay
            self.share, self.start = share, start
            self.settle()

        def settle(self) -> None:
            if self.share >= ALL and self.has_begun(self.start):
                self.partial = []
                if self.complete[-1:] != [(self.release, self.newest)]:
                    self.complete.append((self.release, self.newest))

        def has_begun(self, start: float | None) -> bool:
            return start is None or start <= self.now

        @rule(
            number=st.integers(0, 3), share=st.sampled_from([1.0, 5.0, 33.4, 99.9, ALL]), ahead=st.sampled_from([0, 60])
        )
        def publish_policies(self, number: int, share: float, ahead: int) -> None:
            if any(share < one for one, _start in self.partial):
                published = self.publisher.read()
                with pytest.raises(InputError, match="of the VMs already"):
                    self.publisher.release(published, texts[number], int(self.now), share, None, self.now)
                return
            self.add(number, share, self.now + ahead if ahead else None)

        @precondition(lambda self: self.share < ALL)
        @rule(more=st.sampled_from([0.5, 20.0, ALL]), ahead=st.sampled_from([0, 60]))
        def widen(self, more: float, ahead: int) -> None:
            share = min(ALL, self.share + more)
            published = self.publisher.read()
            wave = self.publisher.widened(published, share, self.now + ahead if ahead else None, self.now)
            self.publisher.publish(published, wave, self.now)
            self.note(share, self.now + ahead if ahead else None)

        @rule()
        def take_back(self) -> None:
            published = self.publisher.read()
            staged = self.complete[-1] != (self.release, self.newest)
            if not staged and len(self.complete) == 1:
                with pytest.raises(InputError, match="no policies to go back to"):
                    self.publisher.back(published, self.now)
                return
            wave = self.publisher.back(published, self.now)
            self.publisher.publish(published, wave, self.now, remember=False)
            self.release += 1
            self.newest = self.complete[-1 if staged else -2][1]
            self.complete = []
            self.note(ALL, None)

        @rule(seconds=st.sampled_from([1, 59, 61]))
        def wait(self, seconds: int) -> None:
            self.now += seconds
            self.settle()

        @invariant()
        def vms_have_what_was_published(self) -> None:
            before = {vm.name: vm.serial for vm in self.vms}
            for vm in self.vms:
                vm.pull(self.now)
                assert not vm.refused, "published policies are older than those in use"
                assert vm.serial >= before[vm.name]
            with_newest = {vm.name for vm in self.vms if waves.place_of(vm.name) < self.share}
            for vm in self.vms:
                if self.has_begun(self.start) and vm.name in with_newest:
                    assert vm.digest == self.newest

    # Each step signs and verifies by ssh-keygen.
    PublishingMachine.TestCase.settings = settings(max_examples=examples(12), stateful_step_count=10, deadline=None)
    test = PublishingMachine.TestCase()
    test.runTest()


def test_others_changed_manifest_is_refused(place: MemoryPlace, publisher: Publisher, texts: list[bytes]) -> None:
    wave = publisher.release(publisher.read(), texts[0], 7, ALL, None, 0.0)
    publisher.publish(publisher.read(), wave, 0.0)
    place.files["policy.json"] = place.files["policy.json"].replace(b'"share": 100.0', b'"share": 10.0')
    with pytest.raises(InputError, match="has signed it"):
        publisher.read()


def test_an_artifact_in_its_place_is_for_all(
    place: MemoryPlace, publisher: Publisher, texts: list[bytes], signer: tuple[str, Signers]
) -> None:
    first = publisher.release(publisher.read(), texts[0], 7, ALL, None, 0.0)
    publisher.publish(publisher.read(), first, 0.0)
    for suffix in ("", ".sig"):
        place.files[f"policy.json{suffix}"] = place.files.pop(f"{first.file}{suffix}")
    found = Publisher(place, signer[1], signer[0])
    published = found.read()
    assert published.waves == (first,)
    second = found.release(published, texts[1], 3, 5.0, None, 0.0)
    found.publish(published, second, 0.0)
    assert [wave.serial for wave in found.read().waves] == [8, 7]  # a serial always grows
    vm = ReadingVm("web_1", place, signer[1])
    vm.pull(0.0)
    assert (vm.serial, vm.digest) == (7, load(texts[0]).digest)


def test_replaced_artifact_is_not_signed_again(place: MemoryPlace, publisher: Publisher, texts: list[bytes]) -> None:
    for text in texts[:2]:
        published = publisher.read()
        publisher.publish(published, publisher.release(published, text, 7, ALL, None, 0.0), 0.0)
    place.files["policy-7.json"] = place.files["policy-8.json"]
    place.files["policy-7.json.sig"] = place.files["policy-8.json.sig"]
    reader = Publisher(place, publisher._signers, publisher._key)
    with pytest.raises(InputError, match=r"policy-7\.json is not the file"):
        reader.back(reader.read(), 0.0)


def test_nothing_to_widen_or_to_take_back(publisher: Publisher, texts: list[bytes]) -> None:
    with pytest.raises(InputError, match="nothing is published yet"):
        publisher.widened(publisher.read(), 5.0, None, 0.0)
    with pytest.raises(InputError, match="no policies to go back to"):
        publisher.back(publisher.read(), 0.0)
    publisher.publish(publisher.read(), publisher.release(publisher.read(), texts[0], 7, ALL, None, 0.0), 0.0)
    with pytest.raises(InputError, match="all VMs have serial 7 already"):
        publisher.widened(publisher.read(), 5.0, None, 0.0)


def test_key_that_does_not_exist(place: MemoryPlace, signer: tuple[str, Signers], tmp_path: Path) -> None:
    publisher = Publisher(place, signer[1], str(tmp_path / "none"))
    with pytest.raises(InputError, match="there is no such key"):
        publisher._write("x", b"")
    assert place.files == {}
