# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn credential``: a secret is written once, and a rollout learns whether it was."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from forewarn.cli import credential as command
from forewarn.cli import main as cli


@pytest.fixture
def encrypted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory of credentials on a system that encrypts by turning the bytes around."""
    monkeypatch.setattr(command, "protect", lambda secret: secret[::-1])
    monkeypatch.setattr(command, "read", lambda path, _most: Path(path).read_bytes()[::-1])
    tmp_path.chmod(0o700)
    return tmp_path


def run(directory: Path, secret: bytes, monkeypatch: pytest.MonkeyPatch) -> int:
    stdin = SimpleNamespace(isatty=lambda: False, buffer=io.BytesIO(secret))
    monkeypatch.setattr(sys, "stdin", stdin)
    return cli.main(["credential", "token", "--directory", str(directory)])


def test_the_same_secret_is_written_once(
    encrypted: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for secret, said in ((b"hunter2", "written\n"), (b"hunter2", "unchanged\n"), (b"hunter3", "written\n")):
        assert run(encrypted, secret, monkeypatch) == 0
        assert capsys.readouterr().out == said
        assert (encrypted / "token").read_bytes()[::-1] == secret


def test_a_damaged_file_is_replaced(
    encrypted: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def damaged(_path: str, _most: int) -> bytes:
        raise OSError(13, "The data is invalid.")

    monkeypatch.setattr(command, "read", damaged)
    (encrypted / "token").write_bytes(b"?")
    assert run(encrypted, b"hunter2", monkeypatch) == 0
    assert capsys.readouterr().out == "written\n"


@pytest.mark.parametrize("secret", [b"", b"x" * (1024 * 1024 + 1)])
def test_empty_and_endless_secrets_are_refused(
    encrypted: Path, secret: bytes, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(encrypted, secret, monkeypatch) == 2
    assert "the secret on standard input is" in capsys.readouterr().err
    assert not (encrypted / "token").exists()


def test_linux_leaves_it_to_systemd(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, b"hunter2", monkeypatch) == 2
    assert "systemd-creds" in capsys.readouterr().err
