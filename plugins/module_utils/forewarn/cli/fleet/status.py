# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn fleet status``: the table of the playbook ``status``, and the page of ``report``, made of metrics."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from ...atomic_file import replace_file
from ...fleet.events import fleet_events
from ...fleet.page import page_of_states
from ...fleet.prometheus.client import PrometheusClient
from ...fleet.prometheus.reports import FleetReports, read_reports
from ...fleet.status import HostState, state_of
from ...fleet.table import GOOD, HEADING, TROUBLE, WARNING, summary, table
from ..output.console import Console, write_result
from ..output.page import iso

_STYLES = {HEADING: ("bold",), TROUBLE: ("red",), WARNING: ("yellow",), GOOD: ("green",)}
_LOOK_BACK = re.compile(r"[1-9]\d{0,5}[smhd]")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--from", dest="source", choices=("prometheus",), default="prometheus", help="where the state comes from"
    )
    parser.add_argument("--url", required=True, metavar="URL", help="address of Prometheus: http://HOST:9090")
    parser.add_argument("--bearer-file", metavar="FILE", help="file with a token that Prometheus, or its proxy, wants")
    parser.add_argument("--ca-file", metavar="FILE", help="certificates to trust (default: the system's)")
    parser.add_argument(
        "--match",
        default="",
        metavar="MATCHERS",
        help='only VMs whose series have these labels, as PromQL writes them: \'job="forewarn",region=~"eu.*"\'',
    )
    parser.add_argument(
        "--look-back",
        type=_look_back,
        default="1h",
        metavar="SPAN",
        help="for how long a VM without fresh metrics is known as silent (default: %(default)s)",
    )
    parser.add_argument("--output", metavar="FILE", help="also write an HTML page")
    parser.add_argument("--json", action="store_true", help="write one JSON object")
    parser.epilog = (
        "It asks no VM, and changes nothing. Exit codes: 0 if all is well, 1 if a VM has trouble, 2 for bad usage or "
        "if there is no VM, 3 if Prometheus does not answer."
    )


def run(args: argparse.Namespace) -> int:
    """Show the fleet; return 1 if a VM has trouble."""
    with PrometheusClient(args.url, args.bearer_file, args.ca_file) as client:
        found = read_reports(client, args.match, args.look_back)
    for warning in client.warnings:
        Console(sys.stderr).warning(f"Prometheus: {warning}")
    states = [state_of(host, report) for host, report in found.reports.items()]
    console = write_result(args.json, "fleet-status", _content(found, states))
    for line in table(states):
        console.line(console.style(line.text, *_STYLES.get(line.kind, ())))
    if args.output is not None:
        replace_file(Path(args.output), page_of_states(states, iso(found.at)).encode("utf-8"))
    return int(any(state.problems for state in states))


def _content(found: FleetReports, states: Sequence[HostState]) -> dict[str, object]:
    """Return the content of ``--json``. Each report is part of what ``forewarn status --json`` writes on that VM."""
    return {
        "at": iso(found.at, "milliseconds"),
        "summary": summary(states, fleet_events(states)),
        "with_trouble": [state.host for state in states if state.problems],
        "reports": found.reports,
    }


def _look_back(text: str) -> str:
    if not _LOOK_BACK.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a span such as 90m, 2h or 3d")
    return text
