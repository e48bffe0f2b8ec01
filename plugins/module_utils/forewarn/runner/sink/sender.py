# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The child process that sends a batch to a sink. It also reads the journal, so that neither delays the runner.

It reads its settings as the first line of standard input, makes one request, and writes a ``SendReport`` as JSON.
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Mapping
from typing import Any, BinaryIO, TextIO

from ...errors import InputError
from ..hooks.webhook import AttemptError, Request
from ..journal.reader import JournalReader
from .batch import newest, next_batch
from .formats import FORMATS, OTLP, Origin
from .position import Position
from .report import MOST_ROWS, SendReport

ATTEMPT_SECONDS = 20.0  # for an answer to begin, and again for its body
_LONGEST_REASON = 300


def main(source: BinaryIO | None = None, target: TextIO | None = None) -> int:
    """Send a batch by the settings on standard input; return the exit code."""
    settings = json.loads((source or sys.stdin.buffer).readline())
    report = attempt(settings)
    (target or sys.stdout).write(json.dumps(report._asdict()) + "\n")
    return 0


def attempt(settings: Mapping[str, Any]) -> SendReport:
    """Send the next batch, if there is one."""
    position = Position(**settings["position"])
    try:
        if position.begins is None:
            return SendReport(begins=newest(JournalReader(settings["directory"])))
        rows, report = next_batch(settings["directory"], position, int(settings.get("most_rows") or MOST_ROWS))
    except InputError as error:
        return SendReport(problem=str(error)[:_LONGEST_REASON])
    if not rows:
        return report
    origin = Origin(position.stream, socket.gethostname(), settings["vm"], bool(settings["dry_run"]))
    message = FORMATS[settings["format"]](rows, origin)
    try:
        request = Request(settings, message.body, message.content_type, reads=settings["format"] == OTLP)
        request.send(ATTEMPT_SECONDS)
    except AttemptError as error:
        return report._replace(
            problem=str(error)[:_LONGEST_REASON],
            lasting=error.lasting,
            after_seconds=error.after_seconds,
            too_large=error.status == 413,
        )
    rejected, reason = partial_success(request.content)
    return report._replace(rejected=rejected, rejection=reason)


def partial_success(content: bytes) -> tuple[int, str]:
    """Return how many log records a collector has rejected, and why, by its ExportLogsServiceResponse."""
    try:
        found = json.loads(content.decode("utf-8"))["partialSuccess"]
        number = int(found.get("rejectedLogRecords") or 0)  # a text, as 64-bit integers are
        return max(0, number), str(found.get("errorMessage") or "")[:_LONGEST_REASON]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return 0, ""
