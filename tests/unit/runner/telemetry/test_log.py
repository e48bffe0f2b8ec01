# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import io
import json
import subprocess
import sys
import unicodedata
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import forewarn
import pytest
from forewarn.runner.telemetry.log import Log
from hypothesis import given
from hypothesis import strategies as st

NOW = datetime(2026, 5, 4, 12, 0, 0, 120999, timezone.utc)
JUNK = "a\nforged line\x1b[31m\x7f\x9b\u2028\u202e\ud800"


def lines(form: str, *fields: dict[str, Any]) -> list[str]:
    stream = io.StringIO()
    log = Log(stream, form, lambda: NOW)
    for each in fields:
        log.info("decision", **each)
    assert stream.getvalue().endswith("\n")
    return stream.getvalue()[:-1].split("\n")


def test_a_text_line_reads_as_name_and_value() -> None:
    line = lines(
        "text", {"event_id": "C7-A", "reason": 'it is "brief", 5 s', "left": 1.5, "dry_run": False, "rule": None}
    )
    assert line == [
        '2026-05-04T12:00:00.120Z info decision event_id=C7-A reason="it is \\"brief\\", 5 s" left=1.5 dry_run=false'
    ]


def test_a_json_line_is_one_versioned_object() -> None:
    (line,) = lines("json", {"event_ids": ["a"], "rule": None, "place": 0})
    assert json.loads(line) == {
        "time": "2026-05-04T12:00:00.120Z",
        "level": "info",
        "line": "decision",
        "event_ids": ["a"],
        "place": 0,
        "forewarn": {"schema": "log", "version": 1},
    }


@pytest.mark.parametrize("form", ["text", "json"])
def test_unicode_is_readable_or_escaped(form: str) -> None:
    (line,) = lines(form, {"reason": "größer", "name": ""})
    assert ("größer" in line) is (form == "text")
    assert '""' in line


@pytest.mark.parametrize("form", ["text", "json"])
@given(
    value=st.one_of(st.just(JUNK), st.text()), listed=st.lists(st.text()), mapped=st.dictionaries(st.text(), st.text())
)
def test_value_cannot_forge_a_line(form: str, value: str, listed: list[str], mapped: dict[str, str]) -> None:
    (line,) = lines(form, {"reason": value, "ids": listed, "values": mapped})
    assert not [char for char in line if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")]
    if form == "json":
        read = json.loads(line)
        assert (read["reason"], read["ids"], read["values"]) == (value, listed, mapped)


class _Broken(io.StringIO):
    def __init__(self, error: OSError) -> None:
        super().__init__()
        self.error = error

    def flush(self) -> None:
        raise self.error


def test_a_full_disk_does_not_stop_the_runner() -> None:
    log = Log(_Broken(OSError(28, "No space left on device")))
    log.info("decision")
    log.error("decision")
    assert log.lost == 2


def test_a_closed_pipe_is_reported() -> None:
    with pytest.raises(BrokenPipeError):
        Log(_Broken(BrokenPipeError())).info("decision")


def test_unencodable_letter_is_escaped() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    Log(stream).info("decision", reason="größer als …")
    assert b'reason="gr\\xf6\\xdfer als \\u2026"' in raw.getvalue()


def test_partial_line_does_not_spoil_the_next(tmp_path: Path) -> None:
    """A disk that is full takes the beginning of a line; docs/log.md: a line each."""
    program = """
import resource, signal, sys, time
from forewarn.runner.telemetry.log import Log
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
log = Log(sys.stdout, "json")
log.detach()
log.info("first")
log.close(1)
import os
size = os.fstat(1).st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, resource.RLIM_INFINITY))
log.info("second", text="x" * 100)
log.info("third")
log.close(1)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
log.info("fourth")
log.close(1)
"""
    path = tmp_path / "log"
    with path.open("wb") as file:
        subprocess.run(
            [sys.executable, "-c", program],
            stdout=file,
            check=True,
            env={"PYTHONPATH": str(Path(forewarn.__file__).parent.parent)},
        )
    lines = path.read_text().splitlines()
    half = next(line for line in lines if not line.endswith("}"))
    whole = [json.loads(line)["line"] for line in lines if line != half]
    assert sorted(whole) == ["first", "fourth", "log-lines-lost"], lines
