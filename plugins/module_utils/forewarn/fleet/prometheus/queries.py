# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Queries about the VMs of a fleet, and times that Prometheus' series have as values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone

from ...texts import duration_text
from .client import PrometheusClient, Sample

_LATEST = datetime(9999, 1, 1, tzinfo=timezone.utc).timestamp()


class FleetQueries:
    """Instant queries at one time, ``at``. VMs are known by their host: the label ``instance`` without its port."""

    def __init__(self, client: PrometheusClient, match: str, look_back: str) -> None:
        self._client = client
        self._match = match.strip().removeprefix("{").removesuffix("}").strip().rstrip(",")
        self.look_back = look_back
        self.at = client.now()

    def selector(self, metric: str, *matchers: str) -> str:
        """Return the selector of a metric with matchers beside those of ``--match``."""
        return f"{metric}{{{','.join(text for text in (*matchers, self._match) if text)}}}"

    def samples(self, expression: str, *labels: str) -> Iterator[tuple[str, Sample]]:
        """Yield host and sample of each series, of which only ``instance`` and ``labels`` are kept."""
        for sample in self._client.query(f"max by ({', '.join(('instance', *labels))}) ({expression})", self.at):
            yield host_of(sample.labels.get("instance", "")), sample

    def values(self, metric: str, comparison: str = "") -> dict[str, float]:
        """Return the value of a metric by host, of those for which the comparison holds."""
        expression = f"{self.selector(metric)} {comparison}".rstrip()
        return {host: sample.value for host, sample in self.samples(expression)}

    def labels(self, metric: str, *labels: str) -> dict[str, Mapping[str, str]]:
        """Return labels of a metric by host."""
        found = self.samples(self.selector(metric), *labels)
        return {host: {label: sample.labels.get(label, "") for label in labels} for host, sample in found}


def host_of(instance: str) -> str:
    """Return an instance without its port: ``web_0:9100`` and ``[::1]:9100``, but ``::1`` has none."""
    match = re.fullmatch(r"\[(.+)\](?::\d+)?|([^:]+):\d+", instance)
    return (match[1] or match[2]) if match else instance


def span(seconds: float) -> str:
    """Return a span of time for people, at least 0 s: clocks differ."""
    return duration_text(max(0.0, seconds))


def moment(wall: float) -> datetime:
    """Return a time in UTC; what no clock shows becomes 1970 or 9999."""
    return datetime.fromtimestamp(min(max(wall, 0.0), _LATEST), timezone.utc)


def iso(wall: float, timespec: str = "milliseconds") -> str:
    """Return seconds since 1970 as ISO 8601 in UTC."""
    return moment(wall).replace(tzinfo=None).isoformat(timespec=timespec) + "Z"
