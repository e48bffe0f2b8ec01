# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The script of a first boot, with systemctl and the runner replaced."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from forewarn.fleet import first_boot
from tools.servers.webhooks import Answer, Webhook

CONTENT = b"a runner"
DIGEST = hashlib.sha256(CONTENT).hexdigest()
NAME = f"forewarn-{DIGEST[:16]}.pyz"


class FirstBoot:
    """A VM of which ``main`` sees two directories. ``calls`` are the programs that it has run."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.opt, self.etc = directory / "opt", directory / "etc"
        for path in (self.opt, self.etc):
            path.mkdir()
        self.calls: list[list[str]] = []
        self.config_is_right = True
        monkeypatch.setattr(first_boot, "DIRECTORY", self.opt)
        monkeypatch.setattr(first_boot, "CONFIG_FILE", self.etc / "config.json")
        monkeypatch.setattr(first_boot, "_PAUSE", 0.0)
        monkeypatch.setattr("subprocess.call", self._call)

    def _call(self, command: list[str]) -> int:
        self.calls.append(command)
        return 0 if command[0] == "systemctl" or self.config_is_right else 2

    def files(self) -> list[str]:
        return sorted(path.name for path in self.opt.iterdir())


@pytest.fixture
def vm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FirstBoot:
    return FirstBoot(tmp_path, monkeypatch)


def test_a_passing_failure_is_tried_again(vm: FirstBoot, capsys: pytest.CaptureFixture[str]) -> None:
    with Webhook(Answer(503), "close", Answer(200, {}, CONTENT)) as server:
        assert first_boot.main([server.url, DIGEST]) == 0
    assert vm.files() == [NAME, "forewarn.pyz"]
    assert (vm.opt / "forewarn.pyz").read_bytes() == CONTENT
    assert [call[1:] for call in vm.calls[1:]] == [
        ["enable", "forewarn.service"],
        ["restart", "forewarn.service"],
        ["disable", "forewarn-install.service"],
    ]
    assert capsys.readouterr().err.count("It is tried again") == 2


def test_what_is_there_is_not_downloaded_again(vm: FirstBoot) -> None:
    (vm.opt / NAME).write_bytes(CONTENT)
    assert first_boot.main(["https://nobody.invalid/", DIGEST]) == 0


@pytest.mark.parametrize(
    ("answer", "said"), [(Answer(404), "404"), (Answer(200, {}, b"another"), "has the SHA-256")], ids=["404", "digest"]
)
def test_nothing_is_installed_that_was_not_meant(
    vm: FirstBoot, answer: Answer, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with Webhook(answer) as server:
        assert first_boot.main([server.url, DIGEST]) == 1
    assert (vm.files(), vm.calls) == ([], [])
    assert said in capsys.readouterr().err


def test_refused_configuration_puts_nothing_in_use(vm: FirstBoot, capsys: pytest.CaptureFixture[str]) -> None:
    vm.config_is_right = False
    (vm.opt / NAME).write_bytes(CONTENT)
    assert first_boot.main(["https://nobody.invalid/", DIGEST]) == 1
    assert vm.files() == [NAME]
    assert not any("systemctl" in call for call in vm.calls)
    assert "the runner refuses its configuration" in capsys.readouterr().err
