# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A strict reader of Prometheus' text format 0.0.4, and a checker of its conventions for names and units.

Stricter than Prometheus itself: what is odd is an error. ``find_promtool`` finds the original, where it is installed.
"""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_HEADER = re.compile(r"# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) ([^\n]*)")
_PAIR = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"')
_SNAKE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_KINDS = ("counter", "gauge", "histogram", "summary")
# Prometheus writes these itself, or takes them to mean something; the first two are a target's own.
_RESERVED_LABELS = ("job", "instance", "le", "quantile")
# Only seconds, bytes and the like: everything else is a multiple of one of them, or an abbreviation.
_NOT_BASE_UNITS = (
    *("nanoseconds", "microseconds", "milliseconds", "minutes", "hours", "days", "weeks", "ns", "us", "ms", "s", "sec"),
    *("secs", "min", "mins", "hrs", "kilobytes", "megabytes", "gigabytes", "kibibytes", "mebibytes", "gibibytes", "kb"),
    *("mb", "gb", "kib", "mib", "gib", "bits", "percent", "percents", "fahrenheit", "kelvin"),
)
_ESCAPES = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}
_SUFFIXES = {
    "counter": ("",),
    "gauge": ("",),
    "histogram": ("_bucket", "_sum", "_count"),
    "summary": ("_sum", "_count"),
}


class ExpositionError(ValueError):
    """The text is not in the format; the message names the line."""


@dataclass
class Family:
    """A metric with its samples, in their order: the name with its suffix, the labels, the value."""

    name: str
    kind: str
    help: str
    samples: list[tuple[str, dict[str, str], float]] = field(default_factory=list)


def find_promtool() -> str | None:
    """Return the path of promtool (Debian's package prometheus has it), or None."""
    return shutil.which("promtool")


def parse(text: str) -> dict[str, Family]:
    """Return the metrics by name. Raises ExpositionError."""
    if not text.endswith("\n"):
        raise ExpositionError("the last line has no end")
    families: dict[str, Family] = {}
    current: Family | None = None
    helped: tuple[str, str] | None = None
    seen: set[tuple[str, tuple[tuple[str, str], ...]]] = set()
    for number, line in enumerate(text[:-1].split("\n"), 1):
        header = _HEADER.fullmatch(line)
        if header is not None and header.group(1) == "HELP":
            helped = (header.group(2), header.group(3))
        elif header is not None:
            if helped is None or helped[0] != header.group(2):
                raise ExpositionError(f"line {number}: no help before the type of {header.group(2)}")
            if header.group(2) in families or header.group(3) not in _KINDS:
                raise ExpositionError(f"line {number}: a second type, or one that is none: {line}")
            current = families[header.group(2)] = Family(header.group(2), header.group(3), helped[1])
            helped = None
        else:
            sample = _sample(line, number)
            if current is None or sample[0] not in [current.name + suffix for suffix in _SUFFIXES[current.kind]]:
                raise ExpositionError(f"line {number}: {sample[0]} does not belong where it stands")
            identity = (sample[0], tuple(sorted(sample[1].items())))
            if identity in seen:
                raise ExpositionError(f"line {number}: a series for the second time: {line}")
            seen.add(identity)
            current.samples.append(sample)
    return families


def _sample(line: str, number: int) -> tuple[str, dict[str, str], float]:
    name = _NAME.match(line)
    if name is None:
        raise ExpositionError(f"line {number}: no name: {line!r}")
    at = name.end()
    labels: dict[str, str] = {}
    if line[at : at + 1] == "{":
        at += 1
        while True:
            pair = _PAIR.match(line, at)
            if pair is None or pair.group(1) in labels:
                raise ExpositionError(f"line {number}: not a label, or one twice, at {at}: {line!r}")
            labels[pair.group(1)] = re.sub(r'\\[\\"n]', lambda match: _ESCAPES[match.group()], pair.group(2))
            at = pair.end() + 1
            if line[pair.end() : at] == "}":
                break
            if line[pair.end() : at] != ",":
                raise ExpositionError(f"line {number}: neither a comma nor a brace at {pair.end()}: {line!r}")
    space, value = line[at : at + 1], line[at + 1 :]
    if space != " " or not re.fullmatch(r"[-+]?(\d+(\.\d+)?(e[-+]?\d+)?)|NaN|[-+]Inf", value):
        raise ExpositionError(f"line {number}: no value: {line!r}")
    return name.group(), labels, float(value)


def lint(families: Mapping[str, Family]) -> list[str]:
    """Return what breaks a convention, one sentence each."""
    return [f"{family.name}: {text}" for family in families.values() for text in _lint(family)]


def _lint(family: Family) -> Iterator[str]:
    if not family.help.strip():
        yield "no help"
    if not _SNAKE.fullmatch(family.name):
        yield "not in snake case, or with a colon, which is for recording rules"
    words = family.name.split("_")
    if (words[-1] == "total") != (family.kind == "counter"):
        yield "counters, and nothing else, end in _total"
    if words[-1] in ("bucket", "count", "sum"):
        yield f"the suffix _{words[-1]} is for the parts of histograms and summaries"
    yield from (f"the type {word} in the name" for word in words if word in _KINDS)
    yield from (f"{word} is not a base unit" for word in words if word in _NOT_BASE_UNITS)
    yield from _lint_samples(family)


def _lint_samples(family: Family) -> Iterator[str]:
    names = set()
    for name, labels, value in family.samples:
        own = [label for label in labels if not (label == "le" and name.endswith("_bucket"))]
        names.add(tuple(sorted(own)))
        for label in own:
            if label in _RESERVED_LABELS or label.startswith("__"):
                yield f"the label {label} is reserved"
            if not _SNAKE.fullmatch(label) or label in family.name.split("_"):
                yield f"the label {label} is not in snake case, or in the name as well"
        counted = family.kind == "counter" or name.endswith(("_bucket", "_count"))
        if counted and family.kind != "gauge" and not value >= 0:
            yield f"{name} is {value}: counters start at 0 and rise"
    if len(names) > 1:
        yield f"not all series have the same labels: {sorted(names)}"
    if family.kind in ("histogram", "summary"):
        yield from _lint_tallies(family)


def _lint_tallies(family: Family) -> Iterator[str]:
    series: dict[tuple[tuple[str, str], ...], dict[str, list[tuple[float, float]]]] = {}
    for name, labels, value in family.samples:
        bound = float(labels.get("le", "nan"))
        key = tuple(sorted((label, text) for label, text in labels.items() if label != "le"))
        series.setdefault(key, {}).setdefault(name[len(family.name) :], []).append((bound, value))
    for key, parts in series.items():
        if not {"_sum", "_count"} <= parts.keys():
            yield f"{key} has no sum or no count"
            continue
        buckets = parts.get("_bucket", [])
        if family.kind == "histogram":
            if not buckets or buckets[-1][0] != math.inf or buckets[-1][1] != parts["_count"][0][1]:
                yield f"the last bucket of {key} is not +Inf, or does not hold what is counted"
            if buckets != sorted(set(buckets)) or [n for _, n in buckets] != sorted(n for _, n in buckets):
                yield f"the buckets of {key} do not rise"
