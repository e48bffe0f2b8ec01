# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What docs/observability ships: rules, alerts, their tests, dashboards and the page name what the runner writes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import REPOSITORY
from forewarn.runner.telemetry.metrics import COUNTER, HISTOGRAM, METRICS, SUMMARY
from tools.judges.exposition import promtool

HERE = REPOSITORY / "docs" / "observability"
README = (HERE / "README.md").read_text()
DASHBOARD, FLEET = (
    json.loads((HERE / name).read_text()) for name in ("grafana-dashboard.json", "grafana-fleet-dashboard.json")
)
DASHBOARDS = [pytest.param(DASHBOARD, id="vms"), pytest.param(FLEET, id="fleet")]
ALERTS, RULES = (
    [rule for group in yaml.safe_load((HERE / name).read_text())["groups"] for rule in group["rules"]]
    for name in ("alerts.yml", "rules.yml")
)

# PromQL, as far as what we write goes. Whether it is PromQL at all is for promtool to say.
METRIC = r"\b([a-zA-Z_:][\w:]*)\b(?! *\()(?:{([^}]*)})?"
OPERATORS = {"and", "or", "unless", "bool"}
LABEL_LIST = r"\b(?:by|without|on|ignoring|group_left|group_right) *\(([^)]*)\)"
# Prometheus adds these itself.
OF_THE_TARGET = {"job", "instance"}
# Recording rules by name, and those of their labels that a metric does not have.
RECORDED: dict[str, str] = {}
for rule in RULES:
    RECORDED[rule["record"]] = (
        f"{RECORDED[rule['record']]} or {rule['expr']}" if rule["record"] in RECORDED else rule["expr"]
    )
OF_RULES = {
    "serial": "job_serial:",
    "trouble": "forewarn_trouble",
    "reason": "instance:forewarn_silent",
    "result": "forewarn_policy_source_checks",
}


class Expression:
    """The metrics an expression reads, with the labels it selects by, and the labels that it names elsewhere."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.metrics = [
            (name, re.findall(r"(\w+)(?:=~|!~|!=|=)", selectors))
            for name, selectors in re.findall(METRIC, re.sub(rf"{LABEL_LIST}|\[[^]]*\]|\"\w+\", ", "", text))
            if name not in OPERATORS
        ]
        self.listed = set(re.findall(r"\w+", " ".join(re.findall(LABEL_LIST, text))))
        assert self.metrics, f"reads nothing: {text}"

    def problems(self, foreign: Mapping[str, set[str]]) -> Iterator[str]:
        """Yield what does not agree with METRICS. ``foreign`` are metrics of others, with their labels."""
        known = set(OF_THE_TARGET)
        for name, selectors in self.metrics:
            metric = METRICS.get(name)
            own: set[str] = set()
            base, _, suffix = name.rpartition("_")
            if metric is not None and metric.kind not in (HISTOGRAM, SUMMARY):
                own = set(metric.labels)
            elif base in METRICS and suffix in {HISTOGRAM: ("bucket", "sum", "count"), SUMMARY: ("sum", "count")}.get(
                METRICS[base].kind, ()
            ):
                own = set(METRICS[base].labels) | ({"le"} if suffix == "bucket" else set())
            elif name in foreign:
                own = foreign[name]
            else:
                yield f"no metric {name}"
            yield from (f"{name} has no label {label}" for label in set(selectors) - own - OF_THE_TARGET)
            if "drill" in own and "drill" not in selectors and self.listed:
                yield f"{name} is summed up without a word on drills"
            if metric is not None and metric.kind == COUNTER and not re.search(rf"(increase|rate)\({name}", self.text):
                yield f"{name} is a counter: its value as such says nothing"
            known |= own
        yield from (f"no metric here has the label {label}" for label in self.listed - known)


def recorded_labels() -> dict[str, set[str]]:
    """Return the labels of each recorded series, as its name and its aggregation have them."""
    found = {}
    for name, expression in RECORDED.items():
        listed = re.search(r"by \(([^)]*)\)", expression)
        own = {label for label, metric in OF_RULES.items() if metric in name}
        found[name] = own | (set(listed.group(1).split(", ")) if listed else OF_THE_TARGET)
    return found


def panels(dashboard: Mapping[str, Any] = DASHBOARD) -> list[dict[str, Any]]:
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def dashboard_expressions() -> list[tuple[str, str]]:
    every = [*panels(DASHBOARD), *panels(FLEET)]
    found = [(panel["title"], target["expr"]) for panel in every for target in panel["targets"]]
    return [(title, expression.replace("$job", ".+").replace("$instance", ".+")) for title, expression in found]


@pytest.mark.parametrize(("title", "expression"), dashboard_expressions())
def test_the_dashboard_reads_metrics_that_there_are(title: str, expression: str) -> None:
    assert list(Expression(expression).problems(recorded_labels())) == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule["record"]))
def test_rule_records_metrics_under_a_usual_name(rule: dict[str, Any]) -> None:
    """The level, which names the labels that are left, the metric, and the operation."""
    expression = Expression(rule["expr"])
    assert list(expression.problems({"up": set(), **recorded_labels()})) == []
    level, _metric, _operation = rule["record"].split(":")
    assert set(level.split("_")) <= {*recorded_labels()[rule["record"]]}


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: str(alert["alert"]))
def test_alert_reads_existing_metrics_and_has_a_runbook(alert: dict[str, Any]) -> None:
    expression = Expression(alert["expr"])
    assert list(expression.problems({"up": set()})) == []
    assert alert["labels"]["severity"] in ("critical", "warning", "info")
    assert alert["annotations"].keys() == {"summary", "description", "runbook_url"}
    assert alert["annotations"]["runbook_url"].endswith(f"/docs/observability/README.md#{alert['alert'].lower()}")
    assert f"\n### {alert['alert']}\n" in README
    # What the annotations name must have come through the aggregation.
    used = set(re.findall(r"\$labels\.(\w+)", " ".join(alert["annotations"].values())))
    left = alert["expr"].lstrip()
    aggregated = re.match(r"(?:sum|min|max|count) by \(([^)]*)\)", left)
    own = {label for name, _ in expression.metrics if name in METRICS for label in METRICS[name].labels}
    assert used <= (set(aggregated.group(1).split(", ")) if aggregated else OF_THE_TARGET | own)


def test_page_has_a_section_for_each_alert() -> None:
    assert re.findall(r"^### (Forewarn\w+)$", README, re.MULTILINE) == [alert["alert"] for alert in ALERTS]


# What says nothing bad by itself, each with its reason; and what means the same as a metric that has an alert.
NO_TROUBLE = {
    "forewarn_build_info": "a fact",
    "forewarn_vm_info": "a fact",
    "forewarn_dry_run": "a fact",
    "forewarn_policy_loaded_timestamp_seconds": "a fact",
    "forewarn_event_info": "events come and go",
    "forewarn_event_timestamp_seconds": "events come and go",
    "forewarn_event_resource_info": "events come and go",
    "forewarn_documents_total": "the service lists something else",
    "forewarn_decisions_total": "policies decide, and holding may be meant",
    "forewarn_event_to_approval_seconds": "how long it takes is up to the hooks",
    "forewarn_hook_duration_seconds": "a hook that takes too long fails",
    "forewarn_hooks_running": "hooks run",
    "forewarn_event_impact_seconds": "events cost time",
    "forewarn_drills_total": "somebody watches a drill",
    "forewarn_group_slots": "slots are there to be taken",
    "forewarn_group_conflicts_total": "they are tried again, and what fails is counted as a failed request",
}
SAME_AS = {
    "forewarn_polls_total": "forewarn_last_good_poll_timestamp_seconds",
    "forewarn_poll_errors_total": "forewarn_last_good_poll_timestamp_seconds",
    "forewarn_last_good_poll_age_seconds": "forewarn_last_good_poll_timestamp_seconds",
    "forewarn_service_up": "forewarn_last_good_poll_timestamp_seconds",
    "forewarn_pause_until_timestamp_seconds": "forewarn_paused",
    "forewarn_policy_source_last_success_timestamp_seconds": "forewarn_policy_source_up",
    "forewarn_sink_requests_total": "forewarn_sink_entries_behind",
    "forewarn_sink_last_success_timestamp_seconds": "forewarn_sink_entries_behind",
}


def read_by(expressions: Iterable[str]) -> set[str]:
    """Return the metrics of METRICS that expressions read."""
    names = {name for expression in expressions for name, _ in Expression(expression).metrics}
    return {name if name in METRICS else name.rpartition("_")[0] for name in names} & METRICS.keys()


def test_metrics_of_trouble_have_alert_and_panel() -> None:
    """A new metric has one, or says here why it needs none."""
    alerted = read_by(alert["expr"] for alert in ALERTS)
    expressions = [expression for _title, expression in dashboard_expressions()]
    shown = read_by(expressions) | read_by(
        RECORDED[name] for expression in expressions for name, _ in Expression(expression).metrics if name in RECORDED
    )
    assert NO_TROUBLE.keys() | SAME_AS.keys() | alerted == METRICS.keys()
    assert not alerted & (NO_TROUBLE.keys() | SAME_AS.keys())
    assert set(SAME_AS.values()) <= alerted
    assert METRICS.keys() - shown <= {"forewarn_last_good_poll_age_seconds"}  # the same, by another clock


def test_each_alert_is_tested_firing_and_silent() -> None:
    """The first test of the file expects no alert at all from series of each metric that an alert reads."""
    tests = yaml.safe_load((HERE / "alerts-test.yml").read_text())["tests"]
    well, others = tests[0], tests[1:]
    assert [(item["expr"], item["exp_samples"]) for item in well["promql_expr_test"]] == [("ALERTS", [])]
    read = {name for alert in ALERTS for name, _ in Expression(alert["expr"]).metrics}
    assert {re.split(r"[{ ]", series["series"])[0] for series in well["input_series"]} == read
    fired = re.findall(r'alertname="(\w+)"', json.dumps(others).replace('\\"', '"'))
    assert set(fired) == {alert["alert"] for alert in ALERTS}


@pytest.mark.parametrize("file", ["alerts.yml", "rules.yml"])
def test_the_rules_pass_promtool(file: str) -> None:
    promtool("check", "rules", file, directory=HERE)


@pytest.mark.parametrize("file", ["alerts-test.yml", "rules-test.yml"])
def test_the_rules_do_as_their_tests_say(file: str) -> None:
    promtool("test", "rules", file, directory=HERE)


def test_each_recording_rule_is_tested_and_shown() -> None:
    tests = yaml.safe_load((HERE / "rules-test.yml").read_text())["tests"]
    tested = {name for test in tests for item in test["promql_expr_test"] for name in RECORDED if name in item["expr"]}
    assert tested == RECORDED.keys()
    shown = {name for _title, expression in dashboard_expressions() for name, _ in Expression(expression).metrics}
    assert RECORDED.keys() - shown == {"job:forewarn_policy_serial:median"}  # which another rule reads


def test_promtool_can_read_the_dashboard(tmp_path: Path) -> None:
    variables = {"$__rate_interval": "5m", "$__range": "6h"}
    rules = []
    for number, (_, expression) in enumerate(dashboard_expressions()):
        for name, value in variables.items():
            expression = expression.replace(name, value)
        rules.append({"record": f"panel:{number}", "expr": expression})
    (tmp_path / "rules.yml").write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    promtool("check", "rules", "--lint=none", "rules.yml", directory=tmp_path)


@pytest.mark.parametrize("dashboard", DASHBOARDS)
def test_dashboard_fits_grafana_10_and_11(dashboard: dict[str, Any]) -> None:
    assert 37 <= dashboard["schemaVersion"] <= 39
    assert dashboard["id"] is None  # an id would be another one's
    assert {panel["type"] for panel in dashboard["panels"]} == {"row", "stat", "table", "timeseries"}
    variables = {variable["name"]: variable for variable in dashboard["templating"]["list"]}
    assert list(variables) == ["datasource", "job", "instance"][: 2 if dashboard is FLEET else 3]
    assert (variables["datasource"]["type"], variables["datasource"]["query"]) == ("datasource", "prometheus")
    for name in list(variables)[1:]:
        metric = re.match(r"label_values\((\w+)", variables[name]["query"]["query"])
        assert metric is not None
        assert metric.group(1) in METRICS
    identifiers = [panel["id"] for panel in dashboard["panels"]]
    assert sorted(identifiers) == sorted(set(identifiers))


def test_fleet_dashboard_reads_recorded_series_over_time() -> None:
    """What all VMs report is too much to read over hours: a graph of a fleet reads what rules have recorded."""
    for panel in panels(FLEET):
        for target in panel["targets"]:
            names = {name for name, _ in Expression(target["expr"]).metrics}
            assert target["instant"] or names <= RECORDED.keys(), panel["title"]


@pytest.mark.parametrize("panel", [*panels(DASHBOARD), *panels(FLEET)], ids=lambda panel: str(panel["title"]))
def test_a_panel_says_what_it_shows(panel: dict[str, Any]) -> None:
    assert panel["title"]
    assert panel["description"].endswith(".")
    assert panel["fieldConfig"]["defaults"]["unit"]
    source = {"type": "prometheus", "uid": "${datasource}"}
    assert panel["datasource"] == source
    references = [target["refId"] for target in panel["targets"]]
    assert len(set(references)) == len(references) > 0
    for target in panel["targets"]:
        assert target["datasource"] == source
        assert "$job" in target["expr"]
        assert ("$instance" in target["expr"]) == (panel in DASHBOARD["panels"])
        assert target["instant"] == (panel["type"] != "timeseries")
        assert target.get("format") == ("table" if panel["type"] == "table" else None)
        labels = {label for name, _ in Expression(target["expr"]).metrics for label in _labels(name)}
        assert set(re.findall(r"{{(\w+)}}", target.get("legendFormat", ""))) <= labels | OF_THE_TARGET
    expressions = " ".join(target["expr"] for target in panel["targets"])
    measured = re.sub(r"_timestamp_seconds(?::min)?", "", expressions)
    assert ("_seconds" in measured and "_count" not in expressions) <= (panel["fieldConfig"]["defaults"]["unit"] == "s")


def _labels(name: str) -> Iterable[str]:
    if name in RECORDED:
        return recorded_labels()[name]
    metric = METRICS.get(name) or METRICS[name.rpartition("_")[0]]
    return metric.labels


@pytest.mark.parametrize("dashboard", DASHBOARDS)
def test_panels_do_not_overlap(dashboard: dict[str, Any]) -> None:
    for one, other in combinations([panel["gridPos"] for panel in dashboard["panels"]], 2):
        assert one["x"] + one["w"] <= 24
        assert (
            one["x"] + one["w"] <= other["x"]
            or other["x"] + other["w"] <= one["x"]
            or one["y"] + one["h"] <= other["y"]
            or other["y"] + other["h"] <= one["y"]
        ), (one, other)


def test_the_page_explains_each_metric_with_its_labels() -> None:
    rows = re.findall(r"^\| `(forewarn_\w+)` \| (\w+) \|([^|]*)\|", README, re.MULTILINE)
    assert {name: (kind, tuple(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows} == {
        name: (metric.kind, metric.labels) for name, metric in METRICS.items()
    }


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("forewarn_nothing > 0", "no metric forewarn_nothing"),
        ("sum by (job) (increase(process_starts[5m]))", "no metric process_starts"),
        ('forewarn_journal_up{state="x"}', "forewarn_journal_up has no label state"),
        ("sum by (kind) (forewarn_journal_up)", "no metric here has the label kind"),
        ("forewarn_journal_up_bucket", "no metric forewarn_journal_up_bucket"),
        ("forewarn_event_impact_seconds_bucket", "no metric forewarn_event_impact_seconds_bucket"),
        ("forewarn_hook_duration_seconds", "no metric forewarn_hook_duration_seconds"),
        ('sum by (type) (forewarn_events{state="held"})', "forewarn_events is summed up without a word on drills"),
        ("forewarn_documents_total > 0", "forewarn_documents_total is a counter: its value as such says nothing"),
    ],
)
def test_the_check_of_expressions_finds(expression: str, problem: str) -> None:
    assert problem in list(Expression(expression).problems({}))
