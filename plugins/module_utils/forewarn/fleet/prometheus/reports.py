# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports of hosts, made of the metrics that Prometheus has of their runners: what ``forewarn status --json`` writes,
as far as metrics say it. docs/observability/README.md lists what they do not say.

Queries that return a series of each VM are few; all others return only those of VMs with trouble or events.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Mapping, NamedTuple

from ...errors import InputError
from ...texts import duration_text
from ..status import SILENT, names, natural
from .client import PrometheusClient
from .events import name_of, open_events
from .queries import FleetQueries, iso, span

LONGEST_SILENCE_SECONDS = 300.0  # between polls, as for the alert ForewarnUnanswered
_MOST_NAMES = 5

Report = Mapping[str, Any]

# Of which VMs a metric tells trouble, and the sentence; "{}" is the value.
_PROBLEMS = (
    ("forewarn_last_reload_successful", "== 0", "the last reload was refused"),
    ("forewarn_pause_unreadable", "== 1", "approvals count as paused, since nobody can tell whether they are"),
    ("forewarn_hook_needs_missing", "> 0", "a hook lacks what it needs: {} missing"),
    ("forewarn_group_store_up", "== 0", "the store of its group does not do what it asks"),
    ("forewarn_policy_source_up", "== 0", "the source of its policies does not answer"),
    ("forewarn_journal_up", "== 0", "the journal: nothing can be kept"),
    ("forewarn_document_problems", "> 0", "the service's document cannot be read in full: problems: {}"),
    ("forewarn_journal_damaged_records", "> 0", "what the runner has done is not known: lost records: {}"),
    ("forewarn_recoveries_failing", "> 0", "recover hooks that fail: {}"),
)
_ARTIFACT_LABELS = ("digest", "policies", "ref", "commit", "modified")
_LISTENERS = 'job="forewarn"'  # as in docs/observability/README.md and the alert ForewarnDown


class FleetReports(NamedTuple):
    """Reports by host, in natural order; ``at`` is the time of the queries by Prometheus' clock, since 1970."""

    at: float
    reports: Mapping[str, Report]


def read_reports(client: PrometheusClient, match: str = "", look_back: str = "1h") -> FleetReports:
    """Ask Prometheus for the VMs whose series have the labels of ``match``, such as ``job="forewarn"``.

    A VM without fresh series is silent, and known for ``look_back``, a duration of Prometheus. Raises InputError if
    there is no VM, or several have the same ``instance``, and as ``PrometheusClient.query`` does.
    """
    fleet = FleetQueries(client, match, look_back)
    versions = fleet.labels("forewarn_build_info", "version")
    silent = _silent(fleet, versions.keys())
    if not versions and not silent:
        among = f" with {match}" if match else ""
        raise InputError(
            f"Prometheus at {client.name} has no series of Forewarn{among}.",
            "Does it scrape the runners (forewarn_metrics_listen) or node_exporter (forewarn_metrics_file)?",
        )
    vms, artifacts = _vm_names(fleet), fleet.labels("forewarn_artifact_info", *_ARTIFACT_LABELS)
    started = fleet.values("forewarn_start_timestamp_seconds")
    polled = fleet.values("forewarn_last_good_poll_timestamp_seconds")
    unanswered = fleet.values("forewarn_service_up", "== 0")
    serials, dry_runs = fleet.values("forewarn_policy_serial"), fleet.values("forewarn_dry_run", "== 1")
    paused = fleet.values("forewarn_pause_until_timestamp_seconds", f"> {fleet.at:.3f}")
    events, problems = open_events(fleet), _problems(fleet)
    reports = dict(silent)
    for host, version in versions.items():
        service = _service(fleet.at, polled.get(host), host not in unanswered)
        runner = {
            "vm": vms.get(host),
            "version": version["version"],
            **_policies(artifacts.get(host, {}), serials.get(host)),
            "dry_run": host in dry_runs,
        }
        if service is None:  # an old file, which node_exporter still serves
            text = "silent: its metrics are no longer written"
            reports[host] = _silent_report(text, fleet.at, polled.get(host), vms.get(host))
            continue
        its = events.get(host, [])
        found = [f"the service {_short(service)}"] if service["state"] != "ok" else []
        found += problems.get(host, [])
        found += [f"{name_of(event)}: {event['failure']}" for event in its if event["failure"]]
        reports[host] = {
            "runner": {"condition": "running", "text": _running(fleet.at, started.get(host)), **runner},
            "service": service,
            "pause": {"until": iso(paused[host], "seconds")} if host in paused else None,
            "events": its,
            "problems": found,
        }
    return FleetReports(fleet.at, {host: reports[host] for host in sorted(reports, key=natural)})


def _policies(artifact: Mapping[str, str], serial: float | None) -> dict[str, Any]:
    source = {
        "ref": artifact.get("ref"),
        "commit": artifact.get("commit"),
        "modified": artifact.get("modified") == "true",
    }
    return {
        "policy": artifact.get("digest"),
        "policies": [name for name in artifact.get("policies", "").split(", ") if name],
        "source": source if source["ref"] or source["commit"] else None,
        "serial": None if serial is None else int(serial),
    }


def _service(at: float, polled: float | None, up: bool) -> dict[str, Any] | None:
    """Return how the service is, or None if the runner that would tell it writes no metrics any more."""
    age = None if polled is None else max(0.0, at - polled)
    answered = "no poll was answered" if age is None else f"last good poll {duration_text(age)} ago"
    if up and age is None:
        state, text = "waiting", f"is asked; {answered} yet, and the first may take 2 minutes"
    elif not up:
        state, text = "failing", f"does not answer; {answered}"
    elif age is not None and age > LONGEST_SILENCE_SECONDS:
        return None
    else:
        state, text = "ok", f"ok, {answered.replace('poll', 'poll at most')}"
    return {
        "state": state,
        "text": text,
        "last_good_poll_at": None if polled is None else iso(polled),
        "last_good_poll_age_seconds": None if age is None else round(age, 3),
    }


def _short(service: Mapping[str, Any]) -> str:
    """Return the text of a service without times, so that VMs with the same trouble have the same sentence."""
    return str(service["text"]).partition("; last")[0]


def _running(at: float, started: float | None) -> str:
    return "running" if started is None else f"running since {iso(started, 'seconds')} ({span(at - started)})"


def _silent_report(problem: str, at: float, polled: float | None, vm: str | None) -> Report:
    text = f"{problem}; last good poll {span(at - polled)} ago" if polled is not None else problem
    return {
        "runner": {"condition": SILENT, "text": text, "vm": vm or None},
        "service": {"state": "unknown", "text": "unknown"},
        "pause": None,
        "events": [],
        "problems": [problem],
    }


def _problems(fleet: FleetQueries) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for metric, comparison, text in _PROBLEMS:
        for host, value in fleet.values(metric, comparison).items():
            found.setdefault(host, []).append(text.format(f"{value:g}"))
    return found


def _vm_names(fleet: FleetQueries) -> dict[str, str]:
    """Return the names of VMs by host. Raises InputError if a host has several."""
    known: dict[str, set[str]] = {}
    for host, sample in fleet.samples(fleet.selector("forewarn_vm_info"), "name"):
        known.setdefault(host, set()).add(sample.labels.get("name", ""))
    for host, several in known.items():
        if len(several) > 1:
            raise InputError(
                f"the label instance is {host!r} for {len(several)} VMs: {names(several, _MOST_NAMES)}.",
                "Give each VM an instance of its own, with relabel_configs or external_labels, or select with --match.",
            )
    return {host: name for host, (name,) in known.items()}


def _silent(fleet: FleetQueries, fresh: Iterable[str]) -> dict[str, Report]:
    """Return the reports of hosts that are expected to have fresh series, and have none."""
    here = set(fresh)

    def lately(metric: str) -> str:
        ago = f"last_over_time({fleet.selector(metric)}[{fleet.look_back}])"
        return f"{ago} unless on (job, instance) {fleet.selector('forewarn_build_info')}"

    down = {host for host, _sample in fleet.samples(f"{fleet.selector('up', _LISTENERS)} == 0")}
    gone = {host for host, _sample in fleet.samples(lately("forewarn_build_info"))}
    hosts = (down | gone) - here
    if not hosts:
        return {}
    named = {host: sample.labels.get("name", "") for host, sample in fleet.samples(lately("forewarn_vm_info"), "name")}
    polled = {host: sample.value for host, sample in fleet.samples(lately("forewarn_last_good_poll_timestamp_seconds"))}
    texts = {True: "silent: Prometheus does not reach it", False: "silent: Prometheus has no fresh metrics of it"}
    return {host: _silent_report(texts[host in down], fleet.at, polled.get(host), named.get(host)) for host in hosts}
