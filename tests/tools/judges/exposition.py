# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The metrics that the runner exposes, read by Prometheus' own client library and checked by promtool."""

from __future__ import annotations

import math
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest
from forewarn.runner.telemetry.metrics import METRICS
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families


def promtool(*arguments: str, directory: Path | None = None, text: str = "") -> None:
    """Run promtool, which must find nothing. Skips the test where it is not installed."""
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is not installed (Debian's package prometheus has it)")
    run = subprocess.run(
        [program, *arguments], cwd=directory, input=text, capture_output=True, text=True, check=False, timeout=60
    )
    assert (run.returncode, run.stderr) == (0, ""), run.stdout + run.stderr


def parse(text: str) -> dict[str, Metric]:
    """Return the metrics by name. Asserts what neither the library nor promtool does."""
    assert text.endswith("\n"), "the last line has no end"
    families: dict[str, Metric] = {}
    for family in text_string_to_metric_families(text):
        name = family.name + ("_total" if family.type == "counter" else "")  # the library takes it off
        assert name not in families, f"{name} is there twice"
        assert (family.type, family.documentation) == (METRICS[name].kind, METRICS[name].help)
        families[name] = family
        _check_samples(name, family)
    return families


def _check_samples(name: str, family: Metric) -> None:
    series: dict[tuple[tuple[str, str], ...], dict[str, float]] = defaultdict(dict)
    for sample in family.samples:
        labels = tuple(sorted(item for item in sample.labels.items() if item[0] != "le"))
        assert [label for label, _ in labels] == sorted(METRICS[name].labels), sample
        assert family.type == "gauge" or sample.value >= 0, sample
        part = sample.name[len(name) :] + sample.labels.get("le", "")
        assert part not in series[labels], f"a series for the second time: {sample}"
        series[labels][part] = sample.value
    for parts in series.values():
        if family.type in ("histogram", "summary"):
            assert {"_sum", "_count"} <= parts.keys(), f"{name} has no sum or no count"
        if family.type == "histogram":
            buckets = [
                (float(part[len("_bucket") :]), count) for part, count in parts.items() if part.startswith("_bucket")
            ]
            assert buckets[-1] == (math.inf, parts["_count"]), f"the last bucket of {name} does not hold all"
            assert buckets == sorted(set(buckets)), f"the bounds of {name} do not rise"
            assert [count for _, count in buckets] == sorted(count for _, count in buckets), f"{name} falls"
