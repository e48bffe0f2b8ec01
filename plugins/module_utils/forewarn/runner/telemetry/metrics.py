# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the runner counts and measures, as Prometheus reads it. docs/observability/README.md explains each metric.

The number of series is bounded: an event's id is a label only while the event is open, and texts that vary, such as
reasons, are not labels.
"""

from __future__ import annotations

import math
import os
from _thread import allocate_lock  # the same lock as threading's, without the import
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Callable, NamedTuple, Union

from ...system.files import open_to_write, replace, share_for_reading
from ..clocks import Clocks

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
COUNTER, GAUGE, HISTOGRAM, SUMMARY = "counter", "gauge", "histogram", "summary"
# A function is called each time the metrics are rendered, in the thread that renders them.
Value = Union[float, Callable[[], float]]


class Metric(NamedTuple):
    """A metric. ``buckets`` are the upper bounds of a histogram, in seconds, without +Inf.

    ``present`` are the label values of series that are 0 from the start: to Prometheus, a counter that appears with the
    value 1 has not increased, so the very first failure would raise no alert.
    """

    kind: str
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    present: tuple[tuple[str, ...], ...] = ()


_ALONE = ((),)  # the only series of a metric without labels

METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        "forewarn_build_info": Metric(GAUGE, "The version of the runner; always 1.", ("version", "python")),
        "forewarn_artifact_info": Metric(
            GAUGE,
            "The policies the runner decides by; always 1.",
            ("digest", "api_version", "policies", "ref", "commit", "modified"),
        ),
        "forewarn_policy_serial": Metric(GAUGE, "The serial of the signed policies in use, nothing without one."),
        "forewarn_policy_loaded_timestamp_seconds": Metric(
            GAUGE, "When the runner loaded the policies in use, in seconds since 1970."
        ),
        "forewarn_policy_source_up": Metric(
            GAUGE, "1 if the policy source last had what can be used, otherwise 0; nothing without a source."
        ),
        "forewarn_policy_source_last_success_timestamp_seconds": Metric(
            GAUGE, "When the source of policies last answered, in seconds since 1970."
        ),
        "forewarn_policy_source_checks_total": Metric(
            COUNTER, "Times the source of policies was asked for new ones, by what came of it.", ("result",)
        ),
        "forewarn_vm_info": Metric(GAUGE, "The name of this VM, once it is known; always 1.", ("name",)),
        "forewarn_dry_run": Metric(GAUGE, "1 if this is a dry run, which approves and prepares nothing; otherwise 0."),
        "forewarn_start_timestamp_seconds": Metric(GAUGE, "When the runner started, in seconds since 1970."),
        "forewarn_last_reload_successful": Metric(
            GAUGE, "0 if the last reload failed, and the runner kept what it had; otherwise 1."
        ),
        "forewarn_polls_total": Metric(
            COUNTER, "Polls of the Scheduled Events service.", ("result",), present=(("ok",), ("failed",))
        ),
        "forewarn_poll_errors_total": Metric(COUNTER, "Polls that failed, by what went wrong.", ("kind",)),
        "forewarn_service_up": Metric(GAUGE, "1 if the service answered the last poll, otherwise 0."),
        "forewarn_last_good_poll_timestamp_seconds": Metric(
            GAUGE, "When the service last answered a poll, in seconds since 1970."
        ),
        "forewarn_last_good_poll_age_seconds": Metric(GAUGE, "How long ago the service last answered a poll."),
        "forewarn_documents_total": Metric(COUNTER, "Documents that differed from the one before.", present=_ALONE),
        "forewarn_document_problems": Metric(
            GAUGE, "Parts of the last document that could not be read; 21 stands for more than 20."
        ),
        "forewarn_events": Metric(GAUGE, "Events that are open, by their state.", ("state", "type", "drill")),
        "forewarn_event_notice_seconds": Metric(
            GAUGE, "Time left until NotBefore of an event that has not started.", ("event_id", "type", "drill")
        ),
        "forewarn_event_info": Metric(
            GAUGE,
            "Events that are open, and what is decided about them; always 1.",
            (
                *("event_id", "type", "status", "source", "duration_seconds", "state", "affected"),
                *("output", "policy", "rule", "drill"),
            ),
        ),
        "forewarn_event_timestamp_seconds": Metric(
            GAUGE, "When a step of an open event was, or will be, in seconds since 1970.", ("event_id", "step")
        ),
        "forewarn_event_resource_info": Metric(
            GAUGE, "The VMs that an open event names, at most 20 of them; always 1.", ("event_id", "vm")
        ),
        "forewarn_decisions_total": Metric(
            COUNTER, "Decisions that were new or had changed.", ("policy", "rule", "output", "drill")
        ),
        "forewarn_shadow_disagreements_total": Metric(
            COUNTER,
            "Decisions of the live artifact from which the shadow artifact differed.",
            ("live", "other"),
            present=(("approve", "hold"), ("hold", "approve")),
        ),
        "forewarn_approvals_total": Metric(
            COUNTER,
            "Approvals of events: taken by the service, failed, not sent, or pretended in a dry run or a drill.",
            ("result",),
            present=(("taken",), ("failed",), ("not-sent",), ("pretended",)),
        ),
        "forewarn_event_to_approval_seconds": Metric(
            HISTOGRAM,
            "Time from the first sight of an event to its approval.",
            buckets=(0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0),
            present=_ALONE,
        ),
        "forewarn_hooks_total": Metric(
            COUNTER,
            "Hooks that have ended, or could not be started.",
            ("phase", "kind", "result", "drill"),
        ),
        "forewarn_hook_duration_seconds": Metric(
            HISTOGRAM,
            "How long hooks ran.",
            ("phase", "kind"),
            buckets=(0.1, 0.5, 1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0),
        ),
        "forewarn_recoveries_failing": Metric(
            GAUGE,
            "Recover hooks that have failed three times, or are not tried again by themselves.",
            ("drill",),
            present=(("false",), ("true",)),
        ),
        "forewarn_hooks_running": Metric(GAUGE, "Hooks that are running now.", present=_ALONE),
        "forewarn_hook_needs_missing": Metric(
            GAUGE, "Programs, secrets and credentials that hooks need and that are missing.", present=_ALONE
        ),
        "forewarn_event_impact_seconds": Metric(
            SUMMARY,
            "For how long events paused this VM, or took it down.",
            ("type", "kind"),
            present=(("Freeze", "pause"), ("Reboot", "reboot"), ("Redeploy", "reboot")),
        ),
        "forewarn_drills_total": Metric(COUNTER, "Drills that have ended.", ("result",)),
        "forewarn_paused": Metric(GAUGE, "1 while an operator's pause keeps this VM from approving, otherwise 0."),
        "forewarn_pause_until_timestamp_seconds": Metric(
            GAUGE, "When an operator's pause ends, in seconds since 1970; nothing without one."
        ),
        "forewarn_pause_unreadable": Metric(
            GAUGE, "1 if the file of an operator's pause cannot be read, which counts as a pause; otherwise 0."
        ),
        "forewarn_journal_up": Metric(GAUGE, "1 if the journal is being kept, 0 if it cannot be."),
        "forewarn_journal_damaged_records": Metric(
            GAUGE, "Records of events that are damaged or lost, and that nobody has dealt with."
        ),
        "forewarn_group_store_up": Metric(
            GAUGE,
            "Whether the store of the VM's group does what this VM asks of it: 1 or 0, nothing if it asks nothing.",
        ),
        "forewarn_group_requests_total": Metric(
            COUNTER, "Documents of the group's store that were looked at, and perhaps changed.", ("result",)
        ),
        "forewarn_group_conflicts_total": Metric(
            COUNTER, "Changes of the group's documents that another VM forestalled, and that were tried again."
        ),
        "forewarn_group_slots": Metric(GAUGE, "Events for which this VM holds a slot of a group."),
        "forewarn_group_waiting": Metric(GAUGE, "Events for which this VM waits for a slot of a group."),
        "forewarn_sink_entries_behind": Metric(GAUGE, "Entries of the journal that the sink has not received yet."),
        "forewarn_sink_requests_total": Metric(COUNTER, "Batches sent to the sink, by their result.", ("result",)),
        "forewarn_sink_last_success_timestamp_seconds": Metric(
            GAUGE, "When the sink last accepted a batch, in seconds since 1970."
        ),
        "forewarn_sink_entries_lost_total": Metric(
            COUNTER, "Entries that the journal had to remove before they were sent to the sink."
        ),
        "forewarn_sink_entries_rejected_total": Metric(
            COUNTER, "Entries that the sink has rejected in a batch that it accepted."
        ),
        "forewarn_log_lines_lost_total": Metric(COUNTER, "Lines of the log that could not be written.", present=_ALONE),
    }
)


class _Histogram(NamedTuple):
    """Observations: the number in each bucket, and beyond them all, and the sum. Replaced, not changed."""

    counts: tuple[int, ...]
    total: float


class Metrics:
    """The values of ``METRICS``. Any thread may call any method.

    All labels are given by name; None is the empty text, True and False are ``true`` and ``false``. A name, a label or
    a use that does not fit METRICS is a defect of the caller: ValueError.
    """

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._series: dict[str, dict[tuple[str, ...], Any]] = {name: {} for name in METRICS}
        for name, metric in METRICS.items():
            nothing = _empty_histogram(metric) if metric.kind in (HISTOGRAM, SUMMARY) else 0.0
            self._series[name].update(dict.fromkeys(metric.present, nothing))
        self.set("forewarn_last_reload_successful", 1.0)

    def count(self, name: str, amount: float = 1.0, /, **labels: object) -> None:
        """Add to a counter."""
        key = _key(name, labels, COUNTER)
        if math.isnan(amount) or amount < 0:
            raise ValueError(f"{name} is a counter, which {amount} would lower")
        with self._lock:
            series = self._series[name]
            series[key] = series.get(key, 0.0) + amount

    def observe(self, name: str, seconds: float, /, **labels: object) -> None:
        """Add an observation to a histogram or a summary."""
        key = _key(name, labels, HISTOGRAM, SUMMARY)
        metric = METRICS[name]
        with self._lock:
            before = self._series[name].get(key) or _empty_histogram(metric)
            counts = list(before.counts)
            counts[sum(seconds > bound for bound in metric.buckets)] += 1
            self._series[name][key] = _Histogram(tuple(counts), before.total + seconds)

    def set(self, name: str, value: Value, /, **labels: object) -> None:
        """Set a gauge, or a counter that is kept elsewhere. A function is called at each rendering."""
        key = _key(name, labels, GAUGE, COUNTER)
        with self._lock:
            self._series[name][key] = value

    def replace(self, name: str, values: Mapping[tuple[object, ...], Value], /) -> None:
        """Replace all series of a gauge by ``values``, whose keys are label values in the order of METRICS."""
        metric = METRICS.get(name)
        if metric is None or metric.kind != GAUGE or any(len(key) != len(metric.labels) for key in values):
            raise ValueError(f"{name} is not a gauge with such labels")
        series = {tuple(_label(part) for part in key): value for key, value in values.items()}
        with self._lock:
            self._series[name] = series

    def render(self) -> str:
        """Return all metrics in Prometheus' text format 0.0.4."""
        with self._lock:  # only to copy: the runner never waits while a scrape is written
            copies = [(name, dict(series)) for name, series in self._series.items() if series]
        lines: list[str] = []
        for name, series in copies:
            metric = METRICS[name]
            lines.append(f"# HELP {name} {metric.help}")
            lines.append(f"# TYPE {name} {metric.kind}")
            for key, value in series.items():
                pairs = [f'{label}="{_escape(text)}"' for label, text in zip(metric.labels, key)]
                if isinstance(value, _Histogram):
                    _render_histogram(lines, name, pairs, metric.buckets, value)
                else:
                    lines.append(_sample(name, pairs, value() if callable(value) else value))
        return "\n".join(lines) + "\n"


def seconds_until(wall: float, clocks: Clocks) -> Callable[[], float]:
    """Return a function that returns the seconds left until a wall-clock time, 0 once it has passed."""
    return lambda: max(0.0, wall - clocks.wall())


def write_textfile(path: str, text: str) -> str | None:
    """Replace, atomically, the file that node_exporter's textfile collector reads.

    Return None, or why it could not be written: metrics must not stop the runner.
    """
    # Hidden and not called *.prom, so that nobody reads it half-written.
    draft = Path(path).parent / f".{Path(path).name}.new"
    try:
        draft.unlink(missing_ok=True)  # left by a runner that was killed
        # Exclusively: others who can write to the directory may have put a link there.
        descriptor = open_to_write(draft, exclusive=True, mode=0o644)
        try:
            with os.fdopen(descriptor, "wb") as file:
                share_for_reading(descriptor)  # node_exporter runs as another user
                file.write(text.encode("utf-8", "replace"))
            replace(draft, path)  # not synced: what a crash loses is soon written again
        except OSError:
            draft.unlink()
            raise
    except (OSError, ValueError) as error:  # ValueError: an impossible path
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        return f"The metrics cannot be written to {path}: {reason}."
    return None


def _key(name: str, labels: Mapping[str, object], *kinds: str) -> tuple[str, ...]:
    """Return the label values in the order of METRICS."""
    metric = METRICS.get(name)
    if metric is None or metric.kind not in kinds:
        raise ValueError(f"{name} is no {' or '.join(kinds)}")
    if labels.keys() != set(metric.labels):
        raise ValueError(f"{name} has the labels {metric.labels}, not {tuple(labels)}")
    return tuple(_label(labels[label]) for label in metric.labels)


def _empty_histogram(metric: Metric) -> _Histogram:
    return _Histogram((0,) * (len(metric.buckets) + 1), 0.0)


def _label(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _sample(name: str, pairs: list[str], value: float) -> str:
    labels = "{" + ",".join(pairs) + "}" if pairs else ""
    return f"{name}{labels} {_number(value)}"


def _number(value: float) -> str:
    number = float(value)
    if number.is_integer() and abs(number) < 2**53:
        return str(int(number))
    if math.isfinite(number):
        return repr(number)
    return "NaN" if math.isnan(number) else "+Inf" if number > 0 else "-Inf"


def _render_histogram(
    lines: list[str], name: str, pairs: list[str], buckets: tuple[float, ...], histogram: _Histogram
) -> None:
    so_far = 0
    for bound, count in zip((*buckets, math.inf), histogram.counts):
        so_far += count
        if buckets:  # a summary has no buckets, and no quantiles: they could not be added up over VMs
            lines.append(_sample(f"{name}_bucket", [*pairs, f'le="{_number(bound)}"'], so_far))
    lines.append(_sample(f"{name}_sum", pairs, histogram.total))
    lines.append(_sample(f"{name}_count", pairs, so_far))
