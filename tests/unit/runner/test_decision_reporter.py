# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The documents of a drill are marked as such, and are no documents of the service in the metrics."""

from __future__ import annotations

import io
import json

import pytest
from forewarn.events import Document
from forewarn.runner.decision_reporter import DecisionReporter
from forewarn.runner.journal.null import NoJournal
from forewarn.runner.telemetry.log import Log
from forewarn.runner.telemetry.metrics import Metrics
from forewarn.runner.telemetry.recorder import Recorder
from tools.fixtures.clocks import ManualClocks
from tools.fixtures.events import GUID, event


@pytest.mark.parametrize("drill", [False, True])
def test_document_of_a_drill_is_marked(drill: bool) -> None:
    stream, metrics = io.StringIO(), Metrics()
    reporter = DecisionReporter(Recorder(NoJournal(ManualClocks()), Log(stream, "json"), metrics), drill)
    reporter.report_document(Document(7, (event(GUID),), ("an item is no event",)))
    line = json.loads(stream.getvalue())
    assert (line["level"], line["incarnation"], line["events"]) == ("warning", 7, 1)
    assert line["problems"] == ["an item is no event"]
    assert line.get("drill") is (True if drill else None)
    assert ("forewarn_documents_total 1" in metrics.render()) is not drill
