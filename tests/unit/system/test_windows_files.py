# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files as Windows replaces them: a reader, such as a virus scanner, keeps a file for a moment."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from forewarn.system.windows import files


@pytest.mark.parametrize("busy", [0, 3])
def test_reader_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, busy: int) -> None:
    (tmp_path / "new").write_bytes(b"new")
    (tmp_path / "old").write_bytes(b"old")
    left, really = [True] * busy, os.replace

    def replace(source: str, target: str) -> None:
        if left and left.pop():
            raise PermissionError(13, "The process cannot access the file because it is being used by another process")
        really(source, target)

    monkeypatch.setattr(os, "replace", replace)
    files.replace(tmp_path / "new", tmp_path / "old")
    assert (tmp_path / "old").read_bytes() == b"new"


def test_reader_is_not_waited_for_forever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def replace(_source: str, _target: str) -> None:
        raise PermissionError(13, "used by another process")

    monkeypatch.setattr(os, "replace", replace)
    monkeypatch.setattr(files, "_REPLACE_PAUSE_SECONDS", 0.0)
    with pytest.raises(PermissionError):
        files.replace(tmp_path / "new", tmp_path / "old")


def test_link_is_refused_unless_followed(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with pytest.raises(OSError, match="link"):
        files.open_to_write(tmp_path / "link")
    with pytest.raises(OSError, match="link"):
        files.open_to_read(tmp_path / "link", follow=False)
    os.close(files.open_to_read(tmp_path / "link"))


def test_exclusive_file_is_a_new_one(tmp_path: Path) -> None:
    os.close(files.open_to_write(tmp_path / "file", exclusive=True))
    with pytest.raises(FileExistsError):
        files.open_to_write(tmp_path / "file", exclusive=True)
