# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of drills that are bad, stay, vanish or cannot be written: refused, and no good one suffers."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from forewarn.errors import InputError
from forewarn.runner.drills import store
from forewarn.runner.drills.drill import REFUSED, Drills
from forewarn.runner.drills.store import DrillRecord
from hypothesis import given
from hypothesis import strategies as st
from tools.fixtures.clocks import ManualClocks
from tools.fixtures.drill_bench import (
    GOOD,
    REBOOT,
    asked,
    changed,
    events_of,
    fail_to_write,
    files,
    hand_over,
    only_event,
    record_of,
)


def refused(state: Path, drills: Drills, name: str) -> str:
    """Poll; return why the one file was refused, and check that it is done with and out of the way."""
    assert drills.poll("web_0") is None
    ended = drills.take_results()
    assert [(one.event_id, one.result) for one in ended] == [(name, REFUSED)]
    assert drills.poll("web_0") is None
    assert drills.take_results() == []
    return ended[0].reason


def test_base_of_the_bad_examples_is_good(state: Path, clocks: ManualClocks, drills: Drills) -> None:
    (state / "drills" / "drill-good.json").write_text(json.dumps(GOOD))
    assert only_event(drills.poll("web_0")).event_id == "drill-good"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "not a drill"),
        ("{", "not a drill"),
        ("[]", "keys"),
        ("null", "keys"),
        ("\xff", "not a drill"),
        ("[" * 60000, "not a drill"),
        ("0" * 70000, "longer than 65536 bytes"),
        ({**GOOD, "extra": 1}, "keys"),
        ({}, "keys"),
        (changed(forewarn={"schema": "drill", "version": 2}), "another version"),
        (changed(forewarn=None), "another version"),
        (changed(request=None), "keys"),
        (changed(handed_over=None), "handed over"),
        (changed(handed_over=[1, 2]), "not a drill"),
        (changed(handed_over=[1, 2, 3, 4]), "not a drill"),
        (changed(handed_over=["a", "b", "c"]), "not a drill"),
        (changed(handed_over=[float("nan"), 1, "b"]), "not a number"),
        (changed(handed_over=[float("inf"), 1, "b"]), "not a number"),
        (changed(scheduled=[1, 2, "b"]), "contradicts itself"),
        (changed(resources=["web_0"]), "contradicts itself"),
        (changed(started=[1, 2, "b"]), "contradicts itself"),
        (changed(scheduled=[1e300, 2, "b"], resources=["web_0"]), ""),
        (changed(scheduled=[-1e12, 2, "b"], resources=["web_0"]), ""),
        (changed(scheduled=[1, 2, "b"], resources=[]), "0 resources"),
        (changed(scheduled=[1, 2, "b"], resources=["a\nb"]), "not the name of a VM"),
        (asked(event_type="reboot now"), "not a word"),
        (asked(event_type=""), "not a word"),
        (asked(event_type=None), "not a text"),
        (asked(notice_seconds=-1), "the notice"),
        (asked(notice_seconds=8 * 86400), "the notice"),
        (asked(notice_seconds="900"), "not a number"),
        (asked(notice_seconds=True), "not a number"),
        (asked(notice_seconds=float("nan")), "not a number"),
        (asked(duration_seconds=float("inf")), "not a number"),
        (asked(duration_seconds=10**400), "not a drill"),
        (asked(source="Azure"), "source"),
        (asked(resources="web_0"), "not a list"),
        (asked(resources=[]), "0 resources"),
        (asked(resources=["web_0", 5]), "not a text"),
        (asked(resources=["x"] * 101), "101 resources"),
        (asked(resources=["x" * 256]), "not the name of a VM"),
        (asked(resources=["\ud800"]), "not the name of a VM"),
        (asked(resources=[" web_0"]), "not the name of a VM"),
        (asked(description="two\nlines"), "the description"),
        (asked(description="x" * 1001), "the description"),
        (asked(description=5), "not a text"),
        (asked(more=1), "keys"),
    ],
)
def test_a_bad_file_is_refused_and_moved_aside(
    state: Path, clocks: ManualClocks, drills: Drills, content: object, reason: str
) -> None:
    text = content.encode("latin-1") if isinstance(content, str) else json.dumps(content).encode()
    (state / "drills" / "drill-bad.json").write_bytes(text)
    assert reason in refused(state, drills, "drill-bad")
    assert files(state) == ["drill-bad.json.refused"]


def test_bad_file_does_not_block_a_good_one(state: Path, clocks: ManualClocks, drills: Drills) -> None:
    (state / "drills" / "drill-0.json").write_text("{")
    good = hand_over(state, clocks)
    assert only_event(drills.poll("web_0")).event_id == good


@pytest.mark.parametrize("name", ["reboot.json", "drill-.json", "drill-A.json", "drill-é.json", "drill-a b.cancel"])
def test_wrong_file_name_is_refused(state: Path, drills: Drills, name: str) -> None:
    (state / "drills" / name).write_text(json.dumps(GOOD))
    assert refused(state, drills, name) == f"{name} is not the name of a drill's file"
    assert files(state) == [f"{name}.refused"]


def test_other_files_are_let_lie(state: Path, clocks: ManualClocks, drills: Drills) -> None:
    names = [".drill-a.json.1f", "README", "drill-a.json.refused", "drill-a.json~"]
    for name in names:
        (state / "drills" / name).touch()
    assert drills.poll("web_0") is None
    assert drills.take_results() == []
    assert files(state) == sorted(names)


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_file_writable_by_others_is_refused(state: Path, drills: Drills, mode: int) -> None:
    path = state / "drills" / "drill-a.json"
    path.write_text(json.dumps(GOOD))
    path.chmod(mode)
    assert "can be changed by others" in refused(state, drills, "drill-a")


def test_directory_writable_by_others_is_refused(state: Path, clocks: ManualClocks, drills: Drills) -> None:
    event_id = hand_over(state, clocks)
    (state / "drills").chmod(0o770)
    assert "can be changed by others" in refused(state, drills, event_id)


def test_so_is_a_link(state: Path, drills: Drills) -> None:
    (state / "elsewhere.json").write_text(json.dumps(GOOD))
    (state / "drills" / "drill-a.json").symlink_to(state / "elsewhere.json")
    refused(state, drills, "drill-a")
    assert (state / "elsewhere.json").exists()


def test_so_is_a_pipe_and_a_directory(state: Path, drills: Drills) -> None:
    os.mkfifo(state / "drills" / "drill-a.json", 0o600)
    assert "not a regular file" in refused(state, drills, "drill-a")
    (state / "drills" / "drill-b.json").mkdir()
    assert "not a regular file" in refused(state, drills, "drill-b")


def test_what_cannot_be_moved_aside_is_refused_once(
    state: Path, drills: Drills, monkeypatch: pytest.MonkeyPatch
) -> None:
    (state / "drills" / "drill-a.json").write_text("{")
    (state / "drills" / "b.json").write_text("{")

    monkeypatch.setattr(os, "replace", Mock(side_effect=PermissionError(1, "Operation not permitted")))
    assert drills.poll("web_0") is None
    assert len(drills.take_results()) == 2
    assert drills.poll("web_0") is None
    assert drills.take_results() == []


def test_what_cannot_be_removed_does_not_begin_again(
    state: Path, clocks: ManualClocks, drills: Drills, monkeypatch: pytest.MonkeyPatch
) -> None:
    event_id = hand_over(state, clocks, REBOOT._replace(notice_seconds=0))
    drills.poll("web_0")

    monkeypatch.setattr(os, "unlink", Mock(side_effect=OSError(30, "Read-only file system")))
    clocks.now += 30
    assert events_of(drills.poll("web_0")) == ()
    assert [ended.event_id for ended in drills.take_results()] == [event_id]
    assert drills.poll("web_0") is None
    assert drills.take_results() == []


def test_drill_that_cannot_be_stored_does_not_begin(
    state: Path, clocks: ManualClocks, drills: Drills, monkeypatch: pytest.MonkeyPatch
) -> None:
    event_id = hand_over(state, clocks)
    monkeypatch.setattr(os, "write", fail_to_write)
    assert refused(state, drills, event_id).endswith("No space left on device.")
    assert files(state) == [f"{event_id}.json.refused"]


def test_drill_starts_although_its_start_is_not_stored(
    state: Path, clocks: ManualClocks, drills: Drills, monkeypatch: pytest.MonkeyPatch
) -> None:
    event_id = hand_over(state, clocks)
    drills.poll("web_0")
    monkeypatch.setattr(os, "write", fail_to_write)
    drills.approve([event_id])
    assert only_event(drills.poll("web_0")).event_status == "Started"
    assert files(state) == [f"{event_id}.json"]
    assert record_of(state, event_id)["started"] is None


def test_running_drill_survives_an_unreadable_directory(
    state: Path, clocks: ManualClocks, drills: Drills, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand_over(state, clocks)
    document = drills.poll("web_0")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "iterdir", Mock(side_effect=OSError(5, "Input/output error")))
        assert drills.poll("web_0") is document
        clocks.now += 900
        assert only_event(drills.poll("web_0")).event_status == "Started"
    assert only_event(drills.poll("web_0")).event_status == "Started"


def test_a_directory_that_was_removed_ends_what_ran(state: Path, clocks: ManualClocks, drills: Drills) -> None:
    event_id = hand_over(state, clocks)
    drills.poll("web_0")
    shutil.rmtree(state / "drills")
    assert events_of(drills.poll("web_0")) == ()
    assert [ended.event_id for ended in drills.take_results()] == [event_id]
    assert drills.poll("web_0") is None


def test_unwritable_state_directory_has_no_drills(tmp_path: Path, clocks: ManualClocks) -> None:
    drills = Drills(str(tmp_path / "missing"), clocks)
    assert drills.poll("web_0") is None
    assert drills.poll("web_0") is None


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.binary(max_size=200) | _JSON.map(lambda value: json.dumps(value).encode()))
def test_whatever_a_file_holds_is_read_or_refused(content: bytes) -> None:
    try:
        record = store._record(content)
    except InputError:
        return
    assert isinstance(record, DrillRecord)


@given(st.data())
def test_any_value_is_read_or_refused(data: st.DataObject) -> None:
    record: dict[str, Any] = json.loads(json.dumps(GOOD))
    part = data.draw(st.sampled_from([record, record["request"], record["forewarn"]]))
    part[data.draw(st.sampled_from(sorted(part)))] = data.draw(_JSON)
    try:
        found = store._record(json.dumps(record).encode())
    except InputError:
        return
    assert store.check(found.request) == found.request
