# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real Prometheus on loopback. Skips the test where there is no ``prometheus``."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import requests
import yaml
from tools.servers.listener_client import free_port
from tools.sites.requirements import lacking
from tools.sites.waiting import wait_until


class PrometheusServer(NamedTuple):
    """A server at ``url``, the process ``pid``."""

    url: str
    pid: int

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """Return labels and value of each series of an instant query."""
        answer = requests.get(f"{self.url}/api/v1/query", params={"query": expression}, timeout=60).json()
        assert answer["status"] == "success", answer
        return [(item["metric"], float(item["value"][1])) for item in answer["data"]["result"]]

    def wait_for(self, expression: str, series: int = 1) -> None:
        """Wait until an instant query has so many series."""

        def has_them() -> bool:
            return len(self.query(expression)) == series

        wait_until(has_them, pause=0.1, what=f"{expression} has not {series} series")


@contextmanager
def prometheus_server(
    directory: Path, jobs: Sequence[Mapping[str, Any]], rules: Sequence[Path] = (), interval: str = "1s"
) -> Iterator[PrometheusServer]:
    """Run a server with these scrape configurations, which keeps its data in ``directory``."""
    program = shutil.which("prometheus")
    if program is None:
        lacking("programs", "there is no prometheus (Debian: prometheus; .ci/run installs the program alone)")
    times = {"scrape_interval": interval, "scrape_timeout": interval, "evaluation_interval": interval}
    config = {"global": times, "rule_files": [str(path) for path in rules], "scrape_configs": list(jobs)}
    (directory / "prometheus.yml").write_text(yaml.safe_dump(config))
    address = f"127.0.0.1:{free_port()}"
    options = ("config.file=prometheus.yml", "storage.tsdb.path=data", f"web.listen-address={address}")
    with (directory / "prometheus.log").open("wb") as log:
        command = [str(program), *(f"--{option}" for option in options)]
        process = subprocess.Popen(command, cwd=directory, stdout=log, stderr=log)
    server = PrometheusServer(f"http://{address}", process.pid)
    try:
        wait_until(lambda: _is_ready(server.url), pause=0.05, what="Prometheus does not become ready")
        yield server
    finally:
        process.kill()
        process.wait(30)


def _is_ready(url: str) -> bool:
    try:
        return requests.get(f"{url}/-/ready", timeout=2).status_code == 200
    except requests.RequestException:
        return False
