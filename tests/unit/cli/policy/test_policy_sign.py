# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn policy compile --sign``: what it writes is what a VM accepts, or it writes nothing."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from forewarn.cli.main import main
from forewarn.policy.artifact import LARGEST_SERIAL, load
from forewarn.policy.signature import Signers
from tools.fixtures.signing import HOLDS, make_key
from tools.sites.waiting import wait_until

COMMITTED_AT = 1_700_000_000


class ControlNode:
    """A directory with a policy, a key and a list of who may sign."""

    def __init__(self, directory: Path) -> None:
        directory.chmod(0o755)
        self.directory = directory
        self.policy = directory / "p.yml"
        self.policy.write_text(HOLDS)
        self.key = make_key(directory)
        self.output = directory / "policy.json"
        self.signature = directory / "policy.json.sig"
        (directory / "signers").write_text(f"release@example.com {self.key.public}\n")

    def compile(self, *options: object, key: Path | None = None) -> int:
        arguments = ("--sign", key or self.key.private, *options)
        return main(["policy", "compile", str(self.policy), "-o", str(self.output), *map(str, arguments)])

    def serial(self) -> int | None:
        """Return the serial of what was written, which is validly signed."""
        content = self.output.read_bytes()
        Signers(str(self.directory / "signers")).verify(content, self.signature.read_bytes())
        return load(content).serial

    def git(self, *arguments: str) -> None:
        date = f"{COMMITTED_AT} +0000"
        environment = {
            **os.environ,
            "GIT_COMMITTER_DATE": date,
            "GIT_AUTHOR_DATE": date,
            "GIT_CONFIG_GLOBAL": os.devnull,
        }
        who = ("-c", "user.name=x", "-c", "user.email=x@example.com")
        subprocess.run(["git", *who, *arguments], cwd=self.directory, env=environment, check=True, capture_output=True)


@pytest.fixture
def node(tmp_path: Path) -> ControlNode:
    return ControlNode(tmp_path)


def test_signed_artifact_verifies(node: ControlNode, capsys: pytest.CaptureFixture[str]) -> None:
    assert node.compile("--serial", 7) == 0
    assert node.serial() == 7
    assert "serial 7, signed" in capsys.readouterr().out


def test_digest_does_not_depend_on_the_serial(node: ControlNode) -> None:
    digests = set()
    for serial in (1, LARGEST_SERIAL):
        assert node.compile("--serial", serial) == 0
        digests.add(load(node.output.read_bytes()).digest)
    assert len(digests) == 1


def test_default_serial_is_the_time(node: ControlNode) -> None:
    before = int(time.time())
    assert node.compile() == 0
    assert before <= (node.serial() or 0) <= time.time()
    node.git("init", "-q")
    node.git("add", "p.yml")
    node.git("commit", "-q", "-m", "x")
    assert node.compile() == 0
    assert node.serial() == COMMITTED_AT
    node.policy.write_text(HOLDS + "# changed\n")
    assert node.compile() == 0
    assert before <= (node.serial() or 0) <= time.time()


@pytest.fixture
def agent(node: ControlNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let an agent have the key, whose file is gone."""
    socket = tmp_path / "agent"
    with subprocess.Popen(["ssh-agent", "-D", "-a", str(socket)], stdout=subprocess.DEVNULL) as process:
        wait_until(socket.exists)
        monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
        subprocess.run(["ssh-add", "-q", str(node.key.private)], check=True, capture_output=True)
        node.key.private.unlink()
        yield
        process.terminate()


def test_key_of_an_agent_signs(node: ControlNode, agent: None) -> None:
    assert node.compile("--serial", 7, key=node.key.private.with_suffix(".pub")) == 0
    assert node.serial() == 7


def unusable(node: ControlNode) -> dict[str, tuple[Path, str]]:
    garbage = node.directory / "garbage"
    garbage.write_text("garbage")
    garbage.chmod(0o600)
    return {
        "missing": (node.directory / "none", "there is no such key"),
        "a directory": (node.directory, "there is no such key"),
        "garbage": (garbage, "nothing was signed"),
        "public alone": (node.key.private.with_suffix(".pub"), "nothing was signed"),
    }


@pytest.mark.parametrize("name", ["missing", "a directory", "garbage", "public alone"])
def test_unusable_key_writes_nothing(
    node: ControlNode, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    key, why = unusable(node)[name]
    if name == "public alone":
        node.key.private.unlink()
    assert node.compile("--serial", 7, key=key) == 2
    assert why in capsys.readouterr().err
    assert not node.output.exists()
    assert not node.signature.exists()


@pytest.mark.parametrize("serial", ["0", "-1", "1.5", "x", str(LARGEST_SERIAL + 1), "9" * 5000, ""])
def test_serial_that_cannot_be_meant(node: ControlNode, serial: str) -> None:
    with pytest.raises(SystemExit) as caught:
        node.compile("--serial", serial)
    assert caught.value.code == 2
    assert not node.output.exists()


def test_signature_needs_a_file(node: ControlNode, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "compile", str(node.policy), "-o", "-", "--sign", str(node.key.private)]) == 2
    assert "--sign needs a file" in capsys.readouterr().err


def test_serial_without_a_signature(node: ControlNode) -> None:
    assert main(["policy", "compile", str(node.policy), "-o", str(node.output), "--serial", "7"]) == 0
    assert json.loads(node.output.read_text())["serial"] == 7
    assert not node.signature.exists()


def test_policies_with_mistakes_are_not_signed(node: ControlNode) -> None:
    node.policy.write_text("name: [\n")
    assert node.compile() == 1
    assert not node.signature.exists()
