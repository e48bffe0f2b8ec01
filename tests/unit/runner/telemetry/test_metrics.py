# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The metrics, read back by Prometheus' client library, and by promtool where it is installed."""

from __future__ import annotations

import ast
import math
import os
import stat
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from forewarn.runner.telemetry.metrics import (
    COUNTER,
    GAUGE,
    HISTOGRAM,
    METRICS,
    SUMMARY,
    Metrics,
    seconds_until,
    write_textfile,
)
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tools.fixtures.clocks import ManualClocks
from tools.judges.exposition import parse, promtool
from tools.suite.sizes import examples

# What UTF-8 can write.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
AWKWARD = 'a "quoted"\nsecond line\\n, {x="y"} \0 \r\t größer 💥\\'


def labels_for(name: str) -> dict[str, str]:
    return {label: f"some {label}" for label in METRICS[name].labels}


def everything() -> Metrics:
    """Return metrics of which each has a series more than at the start."""
    metrics = Metrics()
    for name, metric in METRICS.items():
        labels = labels_for(name)
        if metric.kind == COUNTER:
            metrics.count(name, 2.0, **labels)
        elif metric.kind == GAUGE:
            metrics.set(name, -1.5, **labels)
        else:
            for seconds in (0.0, 0.5, 1.0, 1e9):
                metrics.observe(name, seconds, **labels)
    return metrics


def value_of(metrics: Metrics, name: str, **labels: str) -> float | None:
    """Return the value of a series, or None."""
    samples = [sample for family in parse(metrics.render()).values() for sample in family.samples]
    return next((sample.value for sample in samples if (sample.name, sample.labels) == (name, labels)), None)


def test_every_metric_has_type_and_help() -> None:
    assert parse(everything().render()).keys() == METRICS.keys()


def awkward() -> Metrics:
    metrics = Metrics()
    metrics.count("forewarn_decisions_total", policy=AWKWARD, rule="\\", output="hold", drill=False)
    return metrics


@pytest.mark.parametrize("metrics", [Metrics(), everything(), awkward()], ids=["at the start", "everything", "awkward"])
def test_promtool_finds_nothing(metrics: Metrics) -> None:
    parse(metrics.render())
    promtool("check", "metrics", text=metrics.render())


@settings(max_examples=examples(150))
@given(policy=TEXTS, rule=TEXTS)
@example(AWKWARD, "")
@example("\\", '"')
@example("\\n", "\n")
def test_whatever_a_label_holds_is_read_back(policy: str, rule: str) -> None:
    metrics = Metrics()
    metrics.count("forewarn_decisions_total", policy=policy, rule=rule, output="hold", drill=False)
    labels = {"policy": policy, "rule": rule, "output": "hold", "drill": "false"}
    assert value_of(metrics, "forewarn_decisions_total", **labels) == 1


@given(st.floats(allow_nan=True))
@example(2.0**53)
@example(-0.0)
def test_whatever_a_value_is_is_read_back(value: float) -> None:
    metrics = Metrics()
    metrics.set("forewarn_hooks_running", value)
    read = value_of(metrics, "forewarn_hooks_running")
    assert read == value or (math.isnan(read or 0.0) and math.isnan(value))


@settings(max_examples=examples(50))
@given(st.lists(st.floats(0, 5000), max_size=30))
def test_a_histogram_counts_what_its_bounds_say(observed: list[float]) -> None:
    metrics = Metrics()
    for seconds in observed:
        metrics.observe("forewarn_hook_duration_seconds", seconds, phase="prepare", kind="run")
    families = parse(metrics.render())
    if not observed:
        assert "forewarn_hook_duration_seconds" not in families
        return
    for sample in families["forewarn_hook_duration_seconds"].samples:
        if "le" in sample.labels:
            assert sample.value == sum(seconds <= float(sample.labels["le"]) for seconds in observed)
        elif sample.name.endswith("_sum"):
            assert sample.value == pytest.approx(sum(observed))
        else:
            assert sample.value == len(observed)


def test_counters_add_up_label_by_label() -> None:
    metrics = Metrics()
    metrics.count("forewarn_approvals_total", result="taken")
    metrics.count("forewarn_approvals_total", 2.0, result="taken")
    metrics.count("forewarn_approvals_total", result="failed")
    assert value_of(metrics, "forewarn_approvals_total", result="taken") == 3
    assert value_of(metrics, "forewarn_approvals_total", result="failed") == 1
    assert value_of(metrics, "forewarn_approvals_total", result="pretended") == 0


def test_alerted_series_begin_at_zero() -> None:
    metrics = Metrics()
    assert value_of(metrics, "forewarn_polls_total", result="failed") == 0
    assert value_of(metrics, "forewarn_log_lines_lost_total") == 0
    assert value_of(metrics, "forewarn_event_to_approval_seconds_bucket", le="+Inf") == 0
    assert value_of(metrics, "forewarn_event_impact_seconds_sum", type="Reboot", kind="reboot") == 0
    assert value_of(metrics, "forewarn_last_reload_successful") == 1


def test_replace_drops_series_of_gone_events() -> None:
    metrics = Metrics()
    metrics.replace("forewarn_event_notice_seconds", {("A", "Freeze", False): 900.0, ("B", None, True): 30.0})
    assert value_of(metrics, "forewarn_event_notice_seconds", event_id="A", type="Freeze", drill="false") == 900
    assert value_of(metrics, "forewarn_event_notice_seconds", event_id="B", type="", drill="true") == 30
    metrics.replace("forewarn_event_notice_seconds", {("B", None, True): 29.0})
    (sample,) = parse(metrics.render())["forewarn_event_notice_seconds"].samples
    assert sample.labels["event_id"] == "B"
    metrics.replace("forewarn_event_notice_seconds", {})
    assert "forewarn_event_notice_seconds" not in parse(metrics.render())


def test_ages_and_notices_are_those_of_the_scrape() -> None:
    clocks = ManualClocks()
    metrics = Metrics()
    metrics.set("forewarn_last_good_poll_age_seconds", partial(clocks.since, clocks.stamp()))
    metrics.replace(
        "forewarn_event_notice_seconds", {("A", "Freeze", False): seconds_until(clocks.wall() + 10.0, clocks)}
    )
    notice = {"event_id": "A", "type": "Freeze", "drill": "false"}
    clocks.now += 4.0
    assert value_of(metrics, "forewarn_last_good_poll_age_seconds") == 4
    assert value_of(metrics, "forewarn_event_notice_seconds", **notice) == 6
    clocks.now += 10.0
    assert value_of(metrics, "forewarn_event_notice_seconds", **notice) == 0
    clocks.wall_offset -= 3600.0  # a wall clock that was set does not make a poll younger
    assert value_of(metrics, "forewarn_last_good_poll_age_seconds") == 14


@pytest.mark.parametrize(
    ("method", "name", "value", "labels"),
    [
        ("count", "forewarn_no_such_total", 1.0, {}),
        ("count", "forewarn_hooks_running", 1.0, {}),
        ("count", "forewarn_approvals_total", 1.0, {}),
        ("count", "forewarn_approvals_total", 1.0, {"result": "taken", "reason": "because"}),
        ("observe", "forewarn_approvals_total", 1.0, {"result": "taken"}),
        ("set", "forewarn_event_to_approval_seconds", 1.0, {}),
        # Only gauges are replaced, with all labels.
        ("replace", "forewarn_documents_total", {(): 1.0}, {}),
        ("replace", "forewarn_nothing", {(): 1.0}, {}),
        ("replace", "forewarn_events", {("held", "Freeze"): 1.0}, {}),
    ],
)
def test_what_the_table_does_not_allow_is_refused(method: str, name: str, value: Any, labels: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=name):
        getattr(Metrics(), method)(name, value, **labels)


@pytest.mark.parametrize("amount", [-1.0, math.nan])
def test_a_counter_never_falls(amount: float) -> None:
    with pytest.raises(ValueError, match="lower"):
        Metrics().count("forewarn_documents_total", amount)


def test_no_label_varies_without_bound() -> None:
    """Only what is replaced may name an event; nothing names a reason, a path or a time."""
    labels = {label for metric in METRICS.values() for label in metric.labels}
    assert labels == {
        *("version", "python", "digest", "api_version", "result", "kind", "phase", "state", "type", "drill"),
        *("policy", "rule", "output", "live", "other", "event_id"),
        *("policies", "ref", "commit", "modified", "name"),
        *("status", "source", "duration_seconds", "affected", "step", "vm"),
    }
    assert [name for name, metric in METRICS.items() if "event_id" in metric.labels] == [
        "forewarn_event_notice_seconds",
        "forewarn_event_info",
        "forewarn_event_timestamp_seconds",
        "forewarn_event_resource_info",
    ]
    for name, metric in METRICS.items():
        assert metric.help
        assert name.endswith("_total") == (metric.kind == COUNTER)
        assert not set(metric.labels) & set(name.split("_"))
        assert all(len(values) == len(metric.labels) for values in metric.present)
        assert bool(metric.buckets) == (metric.kind == HISTOGRAM)
        assert list(metric.buckets) == sorted(set(metric.buckets))


def test_another_thread_reads_whole_metrics_while_they_change() -> None:
    metrics = Metrics()
    texts: list[str] = []
    done = threading.Event()

    def scrape() -> None:
        while not done.is_set() or not texts:
            texts.append(metrics.render())

    thread = threading.Thread(target=scrape)
    thread.start()
    for number in range(3000):
        metrics.count("forewarn_decisions_total", policy="p", rule=number % 50, output="hold", drill=False)
        metrics.observe("forewarn_hook_duration_seconds", number % 100, phase="prepare", kind=f"kind-{number % 7}")
        values: dict[tuple[object, ...], float] = {
            (f"event-{event}", "Freeze", False): 1.0 for event in range(number % 20)
        }
        metrics.replace("forewarn_event_notice_seconds", values)
    done.set()
    thread.join()
    for text in texts[:: max(1, len(texts) // 20)]:
        parse(text)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("\nforewarn_hooks_running -1.5", "\nforewarn_hooks_running -1.5" * 2, "second time"),
        ('{phase="some phase",', "{", "labels"),
        ("_total 2", "_total -2", "-2"),
        ('le="+Inf"} 4', 'le="+Inf"} 3', "does not hold all"),
        ('le="0.5"} 2', 'le="0.5"} 0', "falls"),
        ("_seconds_count", "_seconds_number", "no count"),
    ],
)
def test_what_promtool_lets_pass_is_found(old: str, new: str, problem: str) -> None:
    text = everything().render()
    assert old in text
    with pytest.raises(AssertionError, match=problem):
        parse(text.replace(old, new))


# What the package does with metrics.
def calls(package: Path) -> Iterator[tuple[str, str, ast.Call]]:
    """Yield place, method and node of each call that names one of our metrics."""
    for path in sorted((package / "runner").rglob("*.py")) + sorted((package / "cli").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
                first = node.args[0]
                if isinstance(first, ast.Constant) and str(first.value).startswith("forewarn_"):
                    yield f"{path.name}:{node.lineno}", node.func.attr, node


def test_the_runner_names_metrics_as_the_table_does(package: Path) -> None:
    """A wrong label would end the runner in the middle of its work, perhaps where no test goes."""
    kinds = {
        "count": (COUNTER,),
        "observe": (HISTOGRAM, SUMMARY),
        "set": (GAUGE, COUNTER),
        "replace": (GAUGE,),
    }
    for place, method, node in calls(package):
        name = ast.literal_eval(node.args[0])
        assert METRICS[name].kind in kinds[method], place
        given_labels = {keyword.arg for keyword in node.keywords}
        if method != "replace" and None not in given_labels:  # None: **labels, known only when it runs
            assert given_labels == set(METRICS[name].labels), place


def test_the_runner_writes_every_metric_of_the_table(package: Path) -> None:
    written = {ast.literal_eval(node.args[0]) for _, _, node in calls(package)}
    assert written - {*METRICS} == set()
    assert {*METRICS} - written == set()


class FullDiskError(OSError):
    def __init__(self) -> None:
        super().__init__(28, "No space left on device")


def test_text_file_is_replaced_atomically_and_readable(tmp_path: Path) -> None:
    path = tmp_path / "forewarn.prom"
    path.write_text("old\n")
    before = os.umask(0o077)
    try:
        with path.open() as reader:
            assert write_textfile(str(path), "neu größer\n") is None
            assert reader.read() == "old\n"
    finally:
        os.umask(before)
    assert path.read_bytes() == "neu größer\n".encode()
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert list(tmp_path.iterdir()) == [path]


def test_text_file_without_directory_is_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert write_textfile("forewarn.prom", "a 1\n") is None
    assert (tmp_path / "forewarn.prom").read_text() == "a 1\n"


def test_link_in_place_of_the_draft_is_removed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    victim.chmod(0o600)
    (tmp_path / ".forewarn.prom.new").symlink_to(victim)
    assert write_textfile(str(tmp_path / "forewarn.prom"), "a 1\n") is None
    assert victim.read_text() == "precious"
    assert stat.S_IMODE(victim.stat().st_mode) == 0o600
    assert not (tmp_path / "forewarn.prom").is_symlink()


@pytest.mark.parametrize(
    ("name", "reason"),
    [("missing/forewarn.prom", "No such file"), ("directory", "directory"), ("nul\0", "null"), ("\ud800", "")],
)
def test_unwritable_text_file_has_a_reason(tmp_path: Path, name: str, reason: str) -> None:
    (tmp_path / "directory").mkdir()
    problem = write_textfile(str(tmp_path / name), "a 1\n")
    assert problem is not None
    assert reason in problem
    assert problem.endswith(".")
    assert [path.name for path in tmp_path.iterdir()] == ["directory"]


@pytest.mark.parametrize("step", ["fchmod", "replace"])
def test_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    path = tmp_path / "forewarn.prom"
    path.write_text("old\n")

    def fail(*_: Any, **__: Any) -> Any:
        raise FullDiskError

    monkeypatch.setattr(os, step, fail)
    assert write_textfile(str(path), "new\n") == f"The metrics cannot be written to {path}: No space left on device."
    assert path.read_text() == "old\n"
    assert list(tmp_path.iterdir()) == [path]


def test_surrogate_spoils_only_its_label(tmp_path: Path) -> None:
    metrics = Metrics()
    metrics.count("forewarn_decisions_total", policy="\ud800", rule="", output="hold", drill=False)
    path = tmp_path / "forewarn.prom"
    assert write_textfile(str(path), metrics.render()) is None
    assert 'policy="?"' in path.read_text()
