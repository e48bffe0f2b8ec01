# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What decides how much the tests try, what they may not lack, and what is said of the time they take."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import NamedTuple, cast

import pytest
from tools.sites import requirements
from tools.sites.commands import run_program
from tools.suite import order, sizes, timings, turns

SUITE = """\
<testsuites><testsuite name="pytest" errors="1" failures="1" skipped="2" tests="{tests}" time="{seconds}">
<testcase classname="tests.unit.test_a" name="test_b[c]" time="{slowest}"/>
<testcase classname="tests.unit.test_a" name="test_d" time="0.1"/>
</testsuite></testsuites>
"""


@pytest.fixture
def reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(timings.report, "__defaults__", (tmp_path,))
    monkeypatch.setattr(timings, "BUDGETS", {"packages": 60, "unit": 120, "processes": 480, "hosts": 480})
    return tmp_path


@pytest.mark.parametrize("field", dataclasses.fields(sizes.Sizes), ids=lambda field: field.name)
def test_full_is_never_less_than_small(field: dataclasses.Field[int]) -> None:
    assert 0 <= getattr(sizes.SMALL, field.name) <= getattr(sizes.FULL, field.name)


@pytest.mark.parametrize(("size", "seed", "said"), [("small", "7", "range(7, 10)"), ("soak", "", "range(0, 3)")])
def test_the_environment_says_size_and_seed(size: str, seed: str, said: str, repository: Path) -> None:
    program = "from tools.suite import sizes; print(sizes.seeds(3), sizes.NAME, *sizes.left_out(), sep='; ')"
    environ = {"PYTHONPATH": str(repository / "tests"), "FOREWARN_SIZE": size, "FOREWARN_SEED": seed}
    done = run_program(sys.executable, "-c", program, env=environ)
    assert done.stdout.startswith(f"{said}; {size}")
    assert ("cel evaluations" in done.stdout) == (size == "small")


def test_every_case_has_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    cases, seen = ["a", ("b", 1), "c", "d", "e"], set()
    for seed in range(len(cases)):
        monkeypatch.setattr(sizes, "SEED", seed)
        listed = sizes.in_turn(cases, 2)
        assert [one.values for one in listed] == [("a",), ("b", 1), ("c",), ("d",), ("e",)]
        taken = {one.values for one in listed if not one.marks}
        assert len(taken) == 2
        seen |= taken
    assert len(seen) == len(cases)
    assert sizes.in_turn([], 2) == []


class Item(NamedTuple):
    """A test, as far as it matters whether it has its turn."""

    nodeid: str
    marker: pytest.Mark | None

    @property
    def path(self) -> Path:
        return Path(self.nodeid.partition("::")[0])

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return self.marker if name == "in_turn" else None


ALWAYS, IN_TURN = pytest.mark.in_turn(1).mark, pytest.mark.in_turn(4).mark
TOGETHER = pytest.mark.in_turn(4, together=True).mark
ITEMS = [
    *(Item(f"tests/test_one.py::test_some[{number}]", IN_TURN) for number in range(8)),
    *(Item("tests/test_one.py::test_always", mark) for mark in (ALWAYS, None)),
    *(Item(f"tests/test_other.py::test_all_or_none[{number}]", TOGETHER) for number in range(5)),
]


def runs(monkeypatch: pytest.MonkeyPatch, seed: int, *named: str, size: str = "small") -> list[str]:
    """Return the names of the tests that pytest runs with a seed, of those with arguments."""
    monkeypatch.setattr(sizes, "NAME", size)
    monkeypatch.setattr(sizes, "SEED", seed)
    left = {item.nodeid for item in turns.left_to_other_seeds(cast("list[pytest.Item]", ITEMS), ["tests", *named])}
    return [item.nodeid.partition("::")[2] for item in ITEMS if item.nodeid not in left]


def test_every_test_in_turn_runs_with_some_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [item.nodeid.partition("::")[2] for item in ITEMS]
    found = [runs(monkeypatch, seed) for seed in range(60)]
    for run in found:
        assert run.count("test_always") == 2
        assert sum(name.startswith("test_some") for name in run) == 2
        assert sum(name.startswith("test_all_or_none") for name in run) in (0, 5)
    assert {name for run in found for name in run} == {*names}
    assert runs(monkeypatch, 0, size="full") == names


def test_test_in_turn_meets_every_case(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each place with each case, also where both are one of four."""
    met = set()
    for seed in range(300):
        places = {name for name in runs(monkeypatch, seed) if name.startswith("test_some")}
        (case,) = [one.values[0] for one in sizes.in_turn(range(4)) if not one.marks]
        met |= {(place, case) for place in places}
    assert len(met) == 8 * 4


@pytest.mark.parametrize("named", ["test_some", "test_some[3]", "test_all_or_none"])
def test_a_test_that_is_named_always_runs(monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    file = "test_other.py" if "all" in named else "test_one.py"
    wanted = {item.nodeid.partition("::")[2] for item in ITEMS if f"::{named}" in item.nodeid}
    for seed in range(4):
        assert wanted <= {*runs(monkeypatch, seed, f"tests/{file}::{named}")}


def test_every_file_that_begins_first_is_there(repository: Path) -> None:
    assert [name for name in order.LONGEST_FIRST if not (repository / "tests" / name).is_file()] == []


def test_another_size_is_refused_with_the_names(repository: Path) -> None:
    environ = {"PYTHONPATH": str(repository / "tests"), "FOREWARN_SIZE": "tiny"}
    done = run_program(sys.executable, "-c", "import tools.suite.sizes", env=environ)
    assert done.returncode == 1
    assert done.stderr == "FOREWARN_SIZE is 'tiny': it must be one of small, full, soak\n"


@pytest.mark.parametrize(
    ("required", "outcome"), [("", pytest.skip.Exception), ("versions hosts", pytest.fail.Exception)]
)
def test_missing_requirement_fails_where_it_is_required(
    required: str, outcome: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOREWARN_REQUIRED", required)
    with pytest.raises(outcome, match="no root"):
        requirements.lacking("hosts", "no root")


def test_an_unknown_kind_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOREWARN_REQUIRED", "host")
    with pytest.raises(SystemExit, match="FOREWARN_REQUIRED names host: it may name hosts, programs, versions"):
        requirements.lacking("hosts", "no root")


def test_table_has_parts_warnings_slowest_tests_and_sum(reports: Path) -> None:
    (reports / "unit.xml").write_text(SUITE.format(tests=1200, seconds=300, slowest=12.5))
    (reports / "hosts.xml").write_text("<garbage")
    lines = list(timings.table([("packages", 60), ("make test", 310), ("hosts", 3)]))
    assert lines[1:5] == [
        "packages                       60       60",
        "unit                          300      120    1,200        2",
        "make test, the rest            10",
        "hosts                           3      480",
    ]
    assert "warning: unit took 300 s, more than twice its 120 s" in lines
    assert "    12.5 s  tests/unit/test_a.py::test_b[c]" in lines
    assert lines[-1] == "1196 passed, 2 failed, 2 skipped"


def test_plan_lists_omissions_and_duration(reports: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lab.machine.missing", lambda: "only root may")
    monkeypatch.setattr("shutil.which", lambda name: None if name == "etcd" else name)
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    monkeypatch.setattr(sizes, "SIZE", dataclasses.replace(sizes.FULL, group_stories=3))
    monkeypatch.setattr(sizes, "FULL", dataclasses.replace(sizes.FULL, group_stories=12))
    monkeypatch.setattr(sizes, "NAME", "small")
    assert list(timings.plan()) == [
        "unit tests, tests of processes; size small; about 5 minutes, on 4 cores",
        "size small tries 3 of 12 group stories; make test-all tries all",
        "left out: tests with other Pythons and ansible-cores; make test-root runs them, and make test-all",
        "left out: tests on hosts; only root may",
        "left out: tests with etcd; Debian has them in etcd-server",
    ]
    for part, seconds in (("unit", 100), ("processes", 320)):
        (reports / f"{part}.xml").write_text(SUITE.format(tests=1, seconds=seconds, slowest=1))
    assert next(timings.plan()).endswith("about 7 minutes, as the last time")
