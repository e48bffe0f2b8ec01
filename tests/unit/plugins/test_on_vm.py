# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``runner_install`` does on a VM when something is wrong there; on hosts it is tested in tests/lab."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import os
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


@pytest.fixture
def on_vm(repository: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    # By its path: on a VM it has no package around it either.
    spec = importlib.util.spec_from_file_location("on_vm", repository / "plugins" / "plugin_utils" / "_on_vm.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(os, "chown", lambda *_: None)
    monkeypatch.setattr(module, "_attributes_are_so", lambda *_: True)  # who runs this need not be root
    return module


@pytest.fixture
def systemd(on_vm: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Return a function that sets systemd's answers, and returns the list of its calls."""

    def install(**said: tuple[int, str]) -> list[str]:
        asked: list[str] = []

        def run(*command: str) -> subprocess.CompletedProcess[str]:
            asked.append(" ".join(command[1:]))
            code, text = said.get(command[1], (0, ""))
            shown = "ActiveState=active\nUnitFileState=enabled\nNeedDaemonReload=no\n"
            return subprocess.CompletedProcess(command, code, shown if command[1] == "show" else "", text)

        monkeypatch.setattr(on_vm, "_run", run)
        return asked

    return install


def entry(path: Path, content: str, **more: Any) -> dict[str, Any]:
    digest = hashlib.sha256(content.encode()).hexdigest()
    values = {"mode": 0o600, "archive": False, "backup": True, "unit": False, "source": None, "show": True}
    return {"path": str(path), "content": content, "digest": digest, **values, **more}


def request(*files: dict[str, Any], **service: Any) -> dict[str, Any]:
    return {"directories": [], "files": list(files), "service": {"name": "some.service", **service}}


def test_a_unit_that_systemd_refuses_lets_nothing_be_replaced(
    on_vm: ModuleType, systemd: Callable[..., list[str]], tmp_path: Path
) -> None:
    asked = systemd(verify=(1, "Unknown section 'Servce'"))
    config, unit = tmp_path / "config.json", tmp_path / "some.service"
    config.write_text("old")
    done = on_vm.apply(request(entry(config, "new"), entry(unit, "[Servce]\n", unit=True), restart_for=[str(unit)]))
    assert "Unknown section 'Servce'" in done["error"]
    assert done["backups"] == []
    assert [path.name for path in tmp_path.iterdir()] == ["config.json"]
    assert config.read_text() == "old"
    assert [command.split()[0] for command in asked] == ["verify"]


def archive_of(files: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", compression) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return content.getvalue()


SOURCES = {"__main__.py": b"import forewarn\n" * 9, "forewarn/__init__.py": b"1"}
CHANGED = {**SOURCES, "forewarn/__init__.py": b"2"}


@pytest.mark.parametrize(
    ("installed", "differs"),
    [
        (archive_of(SOURCES), False),
        (archive_of(SOURCES, zipfile.ZIP_STORED), False),
        (b"#!/usr/bin/env python3\n" + archive_of(dict(reversed(SOURCES.items()))), False),
        (archive_of(CHANGED), True),
        (archive_of({**SOURCES, "forewarn/more.py": b""}), True),
        (archive_of({name.replace("__init__", "other"): data for name, data in SOURCES.items()}), True),
        (archive_of(SOURCES)[:-30], True),
        (archive_of(SOURCES, zipfile.ZIP_STORED).replace(b"import forewarn\n", b"import ferowarn\n"), True),
        (b"", True),
        (b"no archive", True),
    ],
    ids=["same", "stored", "order", "changed", "more", "renamed", "cut", "damaged", "empty", "other"],
)
def test_an_archive_differs_by_names_and_contents_and_not_by_its_bytes(
    on_vm: ModuleType, tmp_path: Path, installed: bytes, differs: bool
) -> None:
    """A runner that was built with another zlib is the same runner: it is not replaced, and not restarted."""
    runner, sent = tmp_path / "forewarn.pyz", tmp_path / "sent"
    runner.write_bytes(installed)
    sent.write_bytes(archive_of(SOURCES))
    digest = on_vm.digest_of(sent.read_bytes(), archive=True)
    wanted = entry(runner, "", source=str(sent), show=False, archive=True, digest=digest)
    assert on_vm._compare(wanted)["differs"] is differs
    assert on_vm.apply({**request(wanted), "service": None})["error"] == ""
    assert (runner.read_bytes() == sent.read_bytes()) is (differs or installed == sent.read_bytes())


def test_no_damage_of_an_archive_is_an_error(on_vm: ModuleType) -> None:
    whole = archive_of(SOURCES)
    for place, byte in enumerate(whole):
        for damage in (0, 1, byte ^ 1, 255):
            digest = on_vm.digest_of(whole[:place] + bytes([damage]) + whole[place + 1 :], archive=True)
            assert digest is None or len(digest) == 64


def test_what_did_not_arrive_whole_is_not_put_in_place(
    on_vm: ModuleType, systemd: Callable[..., list[str]], tmp_path: Path
) -> None:
    systemd()
    sent = tmp_path / "sent"
    sent.write_text("hal")
    done = on_vm.apply(request(entry(tmp_path / "runner", "half", source=str(sent))))
    assert "what arrived is not what was sent" in done["error"]
    assert [path.name for path in tmp_path.iterdir()] == ["sent"]


@pytest.mark.parametrize(
    ("option", "verb"), [("restart_for", "restart some.service"), ("reload_for", "reload some.service")]
)
def test_only_a_change_takes_a_restart_or_a_reload_and_a_backup_brings_it_back(
    on_vm: ModuleType, systemd: Callable[..., list[str]], tmp_path: Path, option: str, verb: str
) -> None:
    config = tmp_path / "config.json"
    config.write_text("old")
    wanted = request(entry(config, "new"), **{"restart_for": [], "reload_for": [], option: [str(config)]})
    asked = systemd()
    assert [file["differs"] for file in on_vm.look(wanted)["files"]] == [True]
    done = on_vm.apply(wanted)
    assert (done["error"], config.read_text()) == ("", "new")
    assert asked[-1] == verb
    again = systemd()
    assert on_vm.apply(wanted) == {"error": "", "backups": [], "did": None}
    assert all(command.startswith("show") for command in again)
    back = systemd()
    on_vm.restore({**wanted, "restore": done["backups"]})
    assert config.read_text() == "old"
    assert back == ["daemon-reload", "restart some.service"]


def test_a_service_that_does_not_start_is_reported_with_what_was_replaced(
    on_vm: ModuleType, systemd: Callable[..., list[str]], tmp_path: Path
) -> None:
    config = tmp_path / "config.json"
    config.write_text("old")
    systemd(restart=(1, "Job for some.service failed."))
    done = on_vm.apply(request(entry(config, "new"), restart_for=[str(config)], reload_for=[]))
    assert done["error"] == "systemctl restart some.service: Job for some.service failed."
    assert [backup["path"] for backup in done["backups"]] == [str(config)]


def test_a_service_that_hangs_is_reported_with_what_was_replaced(
    on_vm: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "systemctl"
    program.write_text(
        '#!/bin/sh\n[ "$1" = show ] && echo ActiveState=active && echo UnitFileState=enabled && exit\nexec sleep 30\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(on_vm, "_SECONDS", 3)
    config = tmp_path / "config.json"
    config.write_text("old")
    done = on_vm.apply(request(entry(config, "new"), restart_for=[str(config)], reload_for=[]))
    assert done["error"] == "systemctl restart some.service: it has not ended within 3 s"
    assert [Path(backup["backup"]).read_text() for backup in done["backups"]] == ["old"]


def test_what_cannot_be_replaced_is_reported_with_the_backups_and_leaves_no_draft(
    on_vm: ModuleType, systemd: Callable[..., list[str]], tmp_path: Path
) -> None:
    systemd()
    (tmp_path / "a").write_text("old")
    (tmp_path / "b").mkdir()
    done = on_vm.apply(request(entry(tmp_path / "a", "new"), entry(tmp_path / "b", "new", backup=False)))
    assert "directory" in done["error"]
    assert [Path(backup["backup"]).read_text() for backup in done["backups"]] == ["old"]
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_the_oldest_go_and_those_in_use_stay(on_vm: ModuleType, tmp_path: Path) -> None:
    for number in range(5):
        path = tmp_path / f"policy-{number}.json"
        path.touch()
        os.utime(path, (number, number))
    keep = {"pattern": f"{tmp_path}/policy-*.json", "number": 2, "but": [str(tmp_path / "policy-0.json")]}
    assert len(on_vm.prune({"keep": [keep]})["removed"]) == 2
    assert sorted(path.stem for path in tmp_path.iterdir()) == ["policy-0", "policy-3", "policy-4"]
