# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What docs/observability ships: alerts, their tests, the dashboard and the page name what the runner writes."""

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
DASHBOARD = json.loads((HERE / "grafana-dashboard.json").read_text())
ALERTS = [rule for group in yaml.safe_load((HERE / "alerts.yml").read_text())["groups"] for rule in group["rules"]]

# PromQL, as far as what we write goes. Whether it is PromQL at all is for promtool to say.
METRIC = r"\b([a-zA-Z_:][\w:]*)\b(?! *\()(?:{([^}]*)})?"
OPERATORS = {"and", "or", "unless", "bool"}
LABEL_LIST = r"\b(?:by|without|on|ignoring|group_left|group_right) *\(([^)]*)\)"
# Prometheus adds these itself.
OF_THE_TARGET = {"job", "instance"}


class Expression:
    """The metrics an expression reads, with the labels it selects by, and the labels that it names elsewhere."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.metrics = [
            (name, re.findall(r"(\w+)(?:=~|!~|!=|=)", selectors))
            for name, selectors in re.findall(METRIC, re.sub(rf"{LABEL_LIST}|\[[^]]*\]", "", text))
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


def panels(kind: str | None = None) -> list[dict[str, Any]]:
    return [
        panel for panel in DASHBOARD["panels"] if panel["type"] == kind or (kind is None and panel["type"] != "row")
    ]


def dashboard_expressions() -> list[tuple[str, str]]:
    found = [(panel["title"], target["expr"]) for panel in panels() for target in panel["targets"]]
    return [(title, expression.replace("$job", ".+").replace("$instance", ".+")) for title, expression in found]


@pytest.mark.parametrize(("title", "expression"), dashboard_expressions())
def test_the_dashboard_reads_metrics_that_there_are(title: str, expression: str) -> None:
    assert list(Expression(expression).problems({})) == []


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
    shown = read_by(expression for _title, expression in dashboard_expressions())
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


def test_the_rules_pass_promtool() -> None:
    promtool("check", "rules", "alerts.yml", directory=HERE)


def test_the_alerts_do_as_their_tests_say() -> None:
    promtool("test", "rules", "alerts-test.yml", directory=HERE)


def test_promtool_can_read_the_dashboard(tmp_path: Path) -> None:
    variables = {"$__rate_interval": "5m", "$__range": "6h"}
    rules = []
    for number, (_, expression) in enumerate(dashboard_expressions()):
        for name, value in variables.items():
            expression = expression.replace(name, value)
        rules.append({"record": f"panel:{number}", "expr": expression})
    (tmp_path / "rules.yml").write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    promtool("check", "rules", "--lint=none", "rules.yml", directory=tmp_path)


def test_dashboard_fits_grafana_10_and_11() -> None:
    assert 37 <= DASHBOARD["schemaVersion"] <= 39
    assert DASHBOARD["id"] is None  # an id would be another one's
    assert {panel["type"] for panel in DASHBOARD["panels"]} == {"row", "stat", "table", "timeseries"}
    variables = {variable["name"]: variable for variable in DASHBOARD["templating"]["list"]}
    assert list(variables) == ["datasource", "job", "instance"]
    assert (variables["datasource"]["type"], variables["datasource"]["query"]) == ("datasource", "prometheus")
    for name in ("job", "instance"):
        metric = re.match(r"label_values\((\w+)", variables[name]["query"]["query"])
        assert metric is not None
        assert metric.group(1) in METRICS
    identifiers = [panel["id"] for panel in DASHBOARD["panels"]]
    assert sorted(identifiers) == sorted(set(identifiers))


@pytest.mark.parametrize("panel", panels(), ids=lambda panel: str(panel["title"]))
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
        assert "$instance" in target["expr"]
        assert target["instant"] == (panel["type"] != "timeseries")
        assert target.get("format") == ("table" if panel["type"] == "table" else None)
        labels = {label for name, _ in Expression(target["expr"]).metrics for label in _labels(name)}
        assert set(re.findall(r"{{(\w+)}}", target.get("legendFormat", ""))) <= labels | OF_THE_TARGET
    expressions = " ".join(target["expr"] for target in panel["targets"])
    assert ("_seconds" in re.sub(r"_timestamp_seconds", "", expressions) and "_count" not in expressions) <= (
        panel["fieldConfig"]["defaults"]["unit"] == "s"
    )


def _labels(name: str) -> tuple[str, ...]:
    metric = METRICS.get(name) or METRICS[name.rpartition("_")[0]]
    return metric.labels


def test_panels_do_not_overlap() -> None:
    for one, other in combinations([panel["gridPos"] for panel in DASHBOARD["panels"]], 2):
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
