# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a rollout would change for events, and what of that is less than before; compared once for the same policies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from forewarn.analysis.diff import diff
from forewarn.analysis.diff.change import Change, Part
from forewarn.analysis.diff.kinds import HELD, LESS
from forewarn.compiler.policies import load_policies
from forewarn.errors import InputError
from forewarn.events import LATEST_API_VERSION
from forewarn.fleet import proofs as module
from forewarn.fleet.cache import Cache
from forewarn.fleet.proofs import Changes, changes
from forewarn.fleet.rollout import settings_dropped
from forewarn.policy.artifact import Artifact

_HOOK = "prepare: [{{unit: {}.service, action: start}}]"
FREEZES = "{id: freeze, condition: event.EventType == 'Freeze', output: approve}"
REBOOTS = "{id: reboot, condition: event.EventType == 'Reboot', output: approve}"
PREPARED = FREEZES.replace("output", f"{_HOOK.format('drain')}, output")
OTHERWISE = FREEZES.replace("output", f"{_HOOK.format('other')}, output")
LISTED = "{id: listed, condition: event.EventType == 'Freeze' && event.EventStatus == 'Started', output: hold}"
NOTHING = "{id: none, condition: 'true', output: hold}"


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    (tmp_path / "home").mkdir(mode=0o700)
    return Cache(tmp_path / "home", tmp_path)


def artifact(tmp_path: Path, *matches: str) -> Artifact:
    rules = "".join(f"    - {match}\n" for match in matches)
    path = tmp_path / "web.yml"
    path.write_text(f"name: web\ndescription: For a test.\nrule:\n  match:\n{rules}")
    return load_policies([path], LATEST_API_VERSION)


# Matches before and after, and whether the latter do less; each pair is tried in both directions.
PAIRS: list[tuple[tuple[str, ...], tuple[str, ...], bool, bool]] = [
    ((FREEZES,), (FREEZES,), False, False),
    ((FREEZES, REBOOTS), (FREEZES,), True, False),
    ((FREEZES,), (REBOOTS,), True, True),
    ((FREEZES,), (NOTHING,), True, False),
    ((PREPARED,), (FREEZES,), True, False),
    ((PREPARED,), (OTHERWISE,), False, False),  # one in place of the other
    ((PREPARED,), (NOTHING,), True, False),
]


@pytest.mark.parametrize("number", range(len(PAIRS)))
def test_less_is_newly_held_or_unprepared(tmp_path: Path, cache: Cache, number: int) -> None:
    old, new, forth, back = PAIRS[number]
    first, second = artifact(tmp_path, *old), artifact(tmp_path, *new)
    for one, other, less in ((first, second, forth), (second, first, back)):
        found = changes(one, other, cache)
        assert bool(found.less) == less, found
        assert bool(found.all) == (one.digest != other.digest)
        assert found.doubt == ""


@pytest.mark.parametrize("usual", [True, False])
@pytest.mark.parametrize("certain", [True, False])
def test_only_certain_usual_events_count_as_less(
    tmp_path: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch, usual: bool, certain: bool
) -> None:
    part = Part("x", usual, {}, {}, {}, certain)
    change = Change("approve → hold", LESS, None, [part], kinds=(HELD,))
    monkeypatch.setattr(diff, "compare", lambda *_policies: diff.Difference(LESS, (change,), (), ()))
    found = changes(artifact(tmp_path, FREEZES, REBOOTS), artifact(tmp_path, FREEZES), cache)
    assert bool(found.less) == (usual and certain)
    assert len(found.all) == 1


def test_the_same_policies_are_compared_once(tmp_path: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[str, str]] = []
    genuine = module._compared

    def counting(old: Artifact, new: Artifact) -> bytes:
        compared.append((old.digest, new.digest))
        return genuine(old, new)

    monkeypatch.setattr(module, "_compared", counting)
    old, new = artifact(tmp_path, FREEZES, REBOOTS), artifact(tmp_path, FREEZES)
    found = [changes(*pair, cache) for pair in ((old, new), (new, old)) for _host in range(300)]
    assert len(compared) == 2
    assert len(set(map(str, found))) == 2


def test_missing_solver_is_an_uncached_doubt(tmp_path: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_policies: Artifact) -> None:
        raise InputError("z3-solver is not installed")

    old, new = artifact(tmp_path, FREEZES, REBOOTS), artifact(tmp_path, FREEZES)
    with monkeypatch.context() as without:
        without.setattr(diff, "compare", refuse)
        found = changes(old, new, cache)
        assert found == Changes(doubt=found.doubt)
        assert found.doubt
    assert changes(old, new, cache).less


SETTINGS: list[tuple[dict[str, Any], dict[str, Any], list[str]]] = [
    ({}, {"sink_url": "https://x"}, []),
    ({"sink_url": "https://x", "interval": 2}, {}, ["forewarn_sink_url"]),
    ({"sink_url": "https://x"}, {"sink_url": "https://y"}, []),
    ({"group": "web", "probe_listen": "0.0.0.0:9780"}, {"group": ""}, ["forewarn_group", "forewarn_probe_listen"]),
]


@pytest.mark.parametrize(("old", "new", "dropped"), SETTINGS)
def test_settings_that_others_rely_on(old: dict[str, Any], new: dict[str, Any], dropped: list[str]) -> None:
    assert settings_dropped(old, new) == dropped
