# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
from pathlib import Path

import pytest
from forewarn.system.windows import log_destination
from forewarn.system.windows.log_destination import LogFile


def line(number: int) -> bytes:
    return b"%09d\n" % number


def fill(file: LogFile, numbers: range) -> None:
    for number in numbers:
        file.write(line(number))


def test_full_file_becomes_an_old_one(tmp_path: Path) -> None:
    path = tmp_path / "log" / "forewarn.jsonl"
    file = LogFile(path, limit_bytes=100, old=2)
    fill(file, range(35))
    file.close()
    found = {each.name: each.read_bytes() for each in path.parent.iterdir()}
    assert found == {
        "forewarn.jsonl": b"".join(map(line, range(30, 35))),
        "forewarn.jsonl.1": b"".join(map(line, range(20, 30))),
        "forewarn.jsonl.2": b"".join(map(line, range(10, 20))),
    }


def test_file_is_continued_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "forewarn.jsonl"
    for numbers in (range(6), range(6, 12)):
        file = LogFile(path, limit_bytes=100)
        fill(file, numbers)
        file.close()
    assert path.with_name("forewarn.jsonl.1").read_bytes() == b"".join(map(line, range(10)))
    assert path.read_bytes() == line(10) + line(11)


def test_line_longer_than_the_limit_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "forewarn.jsonl"
    file = LogFile(path, limit_bytes=100)
    long = b"x" * 500 + b"\n"
    for each in (line(1), long, line(2)):
        file.write(each)
    file.close()
    assert path.with_name("forewarn.jsonl.2").read_bytes() == line(1)
    assert path.with_name("forewarn.jsonl.1").read_bytes() == long
    assert path.read_bytes() == line(2)


class OpenElsewhere:
    """Windows renames no file that a program has open in its usual way."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.held = True
        self.attempts = 0
        replace = Path.replace

        def refuse(path: Path, target: Path) -> Path:
            if self.held and path.exists():
                self.attempts += 1
                raise PermissionError(13, "Permission denied", str(path))
            return replace(path, target)

        monkeypatch.setattr(Path, "replace", refuse)
        monkeypatch.setattr(log_destination, "_RETRY_BYTES", 20)


def test_reader_delays_the_rotation_without_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = OpenElsewhere(monkeypatch)
    path = tmp_path / "forewarn.jsonl"
    file = LogFile(path, limit_bytes=100)
    fill(file, range(13))
    assert reader.attempts == 2, "not at each line"
    reader.held = False
    fill(file, range(13, 16))
    file.close()
    assert path.with_name("forewarn.jsonl.1").read_bytes() + path.read_bytes() == b"".join(map(line, range(16)))


def test_reader_that_stays_cannot_fill_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    OpenElsewhere(monkeypatch)
    path = tmp_path / "forewarn.jsonl"
    file = LogFile(path, limit_bytes=100)
    for number in range(1000):
        file.write(line(number))
        assert path.stat().st_size <= 220
    file.close()
    assert path.read_bytes().endswith(line(999))


def test_partial_line_does_not_spoil_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "forewarn.jsonl"
    file = LogFile(path)
    file.write(line(1))
    write = os.write
    with monkeypatch.context() as full_disk:
        full_disk.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:4]))
        with pytest.raises(OSError, match="No space left"):
            file.write(line(2))
    file.write(line(3))
    file.close()
    assert path.read_bytes().splitlines(keepends=True) == [line(1), line(2)[:4] + b"\n", line(3)]
