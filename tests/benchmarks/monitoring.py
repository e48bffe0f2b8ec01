# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long Prometheus takes for what is asked of 10,000 VMs, how much memory it has, and ``forewarn fleet status``.

The VMs are simulated: Prometheus scrapes pages that the runner's own code has rendered, and has an hour of the series
that are read so far back. Usage, for other numbers of VMs or each query: ``python -m benchmarks.monitoring [VMS]``.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import requests
import yaml
from benchmarks.report import AT_MOST, Goal, Quantity, Report
from tools.servers.prometheus_server import PrometheusServer, prometheus_server
from tools.sites.commands import FOREWARN, SEARCH_PATH, run_program
from tools.worlds.monitored_fleet import MonitoredFleet, exposition_server, monitored_fleet, pages

VMS, PAGES = 10_000, 20
QUERY_SECONDS, STATUS_SECONDS = 1.0, 10.0  # the limits
HERE = Path(__file__).parents[2] / "docs" / "observability"
_INTERVAL, _SCRAPES = 30, 4
_REPEATS = 3  # the fastest counts: the machine does other things, too
_LOOKED_BACK = ("build_info", "vm_info", "start_timestamp_seconds", "last_good_poll_timestamp_seconds")
_HOUR = 3600

Query = tuple[str, bool]  # and whether it is asked for six hours


def run(vms: int = VMS, verbose: bool = False) -> Report:
    """Measure rules, dashboards and the command with one server."""
    fleet = monitored_fleet(vms)
    texts = fleet.texts()
    rules = [HERE / "rules.yml", HERE / "alerts.yml"]
    with TemporaryDirectory() as place, exposition_server(pages(texts, PAGES)) as served:
        directory = Path(place)
        _write_history(directory, texts)
        with prometheus_server(directory, [served.job()], rules, f"{_INTERVAL}s") as server:
            server.wait_for(f"count(forewarn_build_info) == {vms}")
            served.pages[:] = pages({**texts, **dict.fromkeys(fleet.silent, "")}, PAGES)
            server.wait_for(f'min(count_over_time(up{{job="node"}}[1h])) >= {_SCRAPES}')
            server.wait_for(f"count(forewarn_build_info) == {vms - len(fleet.silent)}")
            return _measure(fleet, server, verbose)


def _measure(fleet: MonitoredFleet, server: PrometheusServer, verbose: bool) -> Report:
    groups = {
        "a recording rule": _rules("rules.yml"),
        "an alert": _rules("alerts.yml"),
        "a panel of the fleet": _panels("grafana-fleet-dashboard.json"),
        "a panel of one VM": _panels("grafana-dashboard.json", fleet.names[-1]),
    }
    quantities, goals = [], []
    for what, queries in groups.items():
        took = {name: _seconds(server, partial(_ask, server, *query)) for name, query in queries.items()}
        name, (wall, processor) = max(took.items(), key=lambda item: item[1])
        quantities.append(Quantity(f"{what}, the slowest of {len(took)}: {name}", wall, "s"))
        quantities.append(Quantity("  the most of processor time", max(time[1] for time in took.values()), "s"))
        goals.append(Goal(f"{what}, the slowest", wall / QUERY_SECONDS, f"{QUERY_SECONDS:g} s", AT_MOST, 1))
        if verbose:
            for name, (wall, processor) in sorted(took.items(), key=lambda item: item[1][1]):
                print(f"{wall:.3f} s, {processor:.2f} s of processor time  {what}: {name}", file=sys.stderr)
    wall, processor = _seconds(server, partial(_show_status, fleet, server))
    quantities += [
        Quantity("forewarn fleet status, with the page", wall, "s"),
        Quantity("  processor time, with Prometheus'", processor, "s"),
        Quantity("series", float(_tsdb(server)["numSeries"]), ""),
        Quantity("memory of Prometheus", psutil.Process(server.pid).memory_info().rss / 2**20, "MiB"),
    ]
    goals.append(Goal("forewarn fleet status", wall / STATUS_SECONDS, f"{STATUS_SECONDS:g} s", AT_MOST, 1))
    about = f"{len(fleet.names)} VMs, scraped every {_INTERVAL} s, {len(fleet.affected)} of them with an event."
    return Report("Watching a fleet with Prometheus", quantities, goals, [f"{about} The best of {_REPEATS}."])


def _write_history(directory: Path, texts: Mapping[str, str]) -> None:
    """Write the blocks of an hour, of the series that rules and commands read so far back."""
    names = tuple(f"forewarn_{name}{{" for name in _LOOKED_BACK)
    series = sorted(line for text in texts.values() for line in text.splitlines() if line.startswith(names))
    end = int(time.time()) - 600
    file = directory / "history.txt"
    with file.open("w", encoding="utf-8") as history:
        for line in series:  # of the same job as those that are scraped
            line = line.replace("{", '{job="node",', 1)
            history.writelines(f"{line} {at}\n" for at in range(end - _HOUR, end, 60))
        history.write("# EOF\n")
    command = ("promtool", "tsdb", "create-blocks-from", "openmetrics", "--quiet", file, directory / "data")
    subprocess.run(command, check=True)
    file.unlink()


def _rules(file: str) -> dict[str, Query]:
    rules = [rule for group in yaml.safe_load((HERE / file).read_text())["groups"] for rule in group["rules"]]
    return {f"{rule.get('record') or rule['alert']} {rule.get('labels')}": (rule["expr"], False) for rule in rules}


def _panels(file: str, instance: str = ".*") -> dict[str, Query]:
    found = {}
    variables = {"$job": ".*", "$instance": instance, "$__rate_interval": "2m", "$__range": "6h"}
    for panel in json.loads((HERE / file).read_text())["panels"]:
        for target in panel.get("targets", ()):
            expression = target["expr"]
            for name, value in variables.items():
                expression = expression.replace(name, value)
            found[f"{panel['title']} {target['refId']}"] = (expression, not target["instant"])
    return found


def _ask(server: PrometheusServer, expression: str, ranged: bool) -> None:
    now = time.time()
    parameters: dict[str, str | float] = {"query": expression}
    if ranged:  # as Grafana does for a panel of 720 points
        parameters.update(start=now - 6 * _HOUR, end=now, step=30)
    url = f"{server.url}/api/v1/query{'_range' if ranged else ''}"
    answer = requests.get(url, params=parameters, timeout=120)
    assert answer.status_code == 200, answer.text


def _tsdb(server: PrometheusServer) -> Mapping[str, int]:
    found: Mapping[str, int] = requests.get(f"{server.url}/api/v1/status/tsdb", timeout=60).json()["data"]["headStats"]
    return found


def _show_status(fleet: MonitoredFleet, server: PrometheusServer) -> None:
    with TemporaryDirectory() as place:
        command = (*FOREWARN, "fleet", "status", "--url", server.url, "--output", Path(place, "fleet.html"))
        done = run_program(*command, env={**os.environ, "PYTHONPATH": SEARCH_PATH})
    trouble, affected = len(fleet.troubled) + len(fleet.silent), len(fleet.affected)
    expected = f"{len(fleet.names)} hosts, {trouble} with trouble; {affected} events pending for {affected} VMs"
    assert done.stdout.rstrip().endswith(expected), done.stdout[-1000:] + done.stderr


def _seconds(server: PrometheusServer, call: Callable[[], None]) -> tuple[float, float]:
    """Return how long the fastest of some calls took, and the least processor time of Prometheus and of children."""
    times = []
    for _repeat in range(_REPEATS):
        begin, used = time.perf_counter(), _processor_seconds(server)
        call()
        times.append((time.perf_counter() - begin, _processor_seconds(server) - used))
    return min(wall for wall, _processor in times), min(processor for _wall, processor in times)


def _processor_seconds(server: PrometheusServer) -> float:
    usage, theirs = psutil.Process(server.pid).cpu_times(), resource.getrusage(resource.RUSAGE_CHILDREN)
    return float(usage.user + usage.system + theirs.ru_utime + theirs.ru_stime)


if __name__ == "__main__":
    run(int(sys.argv[1]) if sys.argv[1:] else VMS, verbose=True).write(print)
