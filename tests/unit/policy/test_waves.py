# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which VMs a wave is for, and when; and manifests, whatever is in them."""

from __future__ import annotations

import json
import math
import string
from contextlib import suppress
from typing import Any

import pytest
from forewarn.errors import InputError
from forewarn.policy.artifact import LARGEST_SERIAL
from forewarn.policy.waves import Choice, Wave, choose, decode, encode, is_manifest, place_of
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.suite.sizes import examples

NOW = 1_800_000_000.0
SHA256 = "ab" * 32
FLEET = [f"web_{number}" for number in range(4000)]
_names = st.text(string.ascii_letters + string.digits + "-_.", min_size=1, max_size=64)
_waves = st.builds(
    Wave,
    st.integers(1, LARGEST_SERIAL),
    st.text(string.ascii_letters + string.digits + "_", min_size=1, max_size=9).map(lambda name: f"{name}.json"),
    st.binary(min_size=32, max_size=32).map(bytes.hex),
    st.floats(0, 100, exclude_min=True) | st.sampled_from([1.0, 5.0, 20.0, 50.0, 100.0]),
    st.none() | st.integers(-3, 3).map(lambda hours: NOW + 3600.0 * hours),
)


# The place of a VM


@settings(max_examples=examples(200))
@given(name=_names)
def test_place_is_stable_whatever_the_case(name: str) -> None:
    place = place_of(name)
    assert 0 <= place < 100
    assert place_of(name.upper()) == place_of(name.lower()) == place


def test_place_is_the_same_in_each_release() -> None:
    """Otherwise an upgrade would make other VMs the first ones."""
    assert [round(place_of(name), 3) for name in ("web_0", "web_1", "WEB_2", "")] == [57.477, 77.74, 46.908, 88.942]


@pytest.mark.parametrize("share", [1.0, 5.0, 20.0, 50.0, 95.0])
def test_places_of_a_fleet_are_uniform(share: float) -> None:
    expected = len(FLEET) * share / 100
    deviation = (expected * (1 - share / 100)) ** 0.5
    assert abs(sum(place_of(name) < share for name in FLEET) - expected) < 4 * deviation


# Which wave


def model(waves: list[Wave], vm: str | None, now: float) -> Choice:
    """Choose as docs/pull.md says, step by step."""
    again = None
    for wave in waves:
        has_all = wave.share == 100
        if not has_all and (vm is None or place_of(vm) >= wave.share):
            continue
        if wave.start is None or wave.start <= now:
            return Choice(wave, again)
        again = wave.start if again is None else min(again, wave.start)
    return Choice(None, again)


@settings(max_examples=examples(300))
@given(
    waves=st.lists(_waves, min_size=1, max_size=6),
    vm=st.none() | _names,
    hours=st.sampled_from([-9.0, -1.0, -0.5, 0.0, 0.5, 9.0]),
)
def test_choice_is_that_of_a_model(waves: list[Wave], vm: str | None, hours: float) -> None:
    now = NOW + hours * 3600
    assert choose(waves, vm, now) == model(waves, vm, now)


@settings(max_examples=examples(100))
@given(shares=st.lists(st.floats(0.1, 100), min_size=2, max_size=5), vm=_names)
def test_larger_share_has_all_of_the_smaller(shares: list[float], vm: str) -> None:
    chosen = [choose([Wave(1, "a", SHA256, share)], vm, NOW).wave is not None for share in sorted(shares)]
    assert chosen == sorted(chosen)


@settings(max_examples=examples(30))
@given(name=_names)
def test_share_ends_at_its_place(name: str) -> None:
    place = place_of(name)
    assert choose([Wave(1, "a", SHA256, place)], name, NOW).wave is None
    assert choose([Wave(1, "a", SHA256, math.nextafter(place, 200.0))], name, NOW).wave is not None


def test_a_wave_that_begins_later() -> None:
    first, rest = Wave(2, "b", SHA256, 100.0, NOW + 60), Wave(1, "a", SHA256, 100.0)
    assert choose([first, rest], "web_0", NOW) == Choice(rest, NOW + 60)
    assert choose([first, rest], "web_0", NOW + 60) == Choice(first, None)
    assert choose([first], None, NOW) == Choice(None, NOW + 60)


# The manifest


@settings(max_examples=examples(200))
@given(waves=st.lists(_waves, min_size=1, max_size=20))
def test_encoded_manifest_is_decoded(waves: list[Wave]) -> None:
    content = encode(waves)
    assert is_manifest(content)
    assert decode(content) == waves


VALID: dict[str, Any] = json.loads(encode([Wave(2, "b.json", SHA256, 5.0, NOW), Wave(1, "a.json", SHA256, 100.0)]))
_leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=9)
    | st.sampled_from([10**400, -(10**400)])
)
_values = st.recursive(
    _leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)


@settings(max_examples=examples(300))
@given(data=st.data())
def test_damaged_manifest_is_refused_or_complete(data: st.DataObject) -> None:
    """Whatever stands in the place of a part of it, or is missing."""
    manifest = json.loads(json.dumps(VALID))
    wave = data.draw(st.sampled_from(manifest["waves"]))
    target = data.draw(st.sampled_from([manifest, wave]))
    name = data.draw(st.sampled_from(sorted(target)))
    if data.draw(st.booleans()):
        target[name] = data.draw(_values)
    else:
        del target[name]
    with suppress(InputError):
        for found in decode(json.dumps(manifest).encode()):
            assert isinstance(found.serial, int)
            assert 1 <= found.serial <= LARGEST_SERIAL
            assert 0 < found.share <= 100
            assert found.start is None or abs(found.start) < 1e12
            assert "/" not in found.file
            assert not found.file.startswith(".")


@settings(max_examples=examples(100))
@given(
    content=st.binary(max_size=100) | st.sampled_from([b"[" * 100_000, b'{"format":' * 50_000, b"\xff\xfe", b"null"])
)
def test_garbage_is_no_manifest(content: bytes) -> None:
    assert not is_manifest(content)
    with pytest.raises(InputError):
        decode(content)


@pytest.mark.parametrize(
    "change",
    [
        {"file": "../policy.json"},
        {"file": "a/b.json"},
        {"file": ".hidden"},
        {"file": "a.json\n"},
        {"file": "a.json?sig=x"},
        {"file": ""},
        {"file": ["a.json"]},
        {"sha256": SHA256.upper()},
        {"sha256": SHA256 + "\n"},
        {"share": 0},
        {"share": 100.1},
        {"share": True},
        {"share": "5"},
        {"share": float("nan")},
        {"share": float("inf")},
        {"share": 10**400},
        {"serial": 0},
        {"serial": True},
        {"serial": 1.0},
        {"serial": LARGEST_SERIAL + 1},
        {"start": ""},
        {"start": 1_800_000_000},
        {"start": "tomorrow"},
        {"start": "2026-13-01T00:00:00Z"},
    ],
)
def test_wave_that_cannot_be_meant_is_refused(change: dict[str, Any]) -> None:
    manifest = {**VALID, "waves": [{**VALID["waves"][0], **change}]}
    with pytest.raises(InputError, match="the manifest is damaged"):
        decode(json.dumps(manifest).encode())


@pytest.mark.parametrize("number", [0, 21])
def test_number_of_waves_is_limited(number: int) -> None:
    with pytest.raises(InputError, match=f"the manifest has {number} waves"):
        decode(json.dumps({**VALID, "waves": VALID["waves"][:1] * number}).encode())


@pytest.mark.parametrize("version", [0, 2, "1", None, True])
def test_manifest_of_another_version_is_refused(version: object) -> None:
    with pytest.raises(InputError, match="not one of version 1"):
        decode(json.dumps({**VALID, "version": version}).encode())
