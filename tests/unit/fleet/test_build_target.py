# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The system for which a build compiles its policies."""

from __future__ import annotations

from pathlib import Path
from subprocess import CompletedProcess

import pytest
from forewarn.errors import InputError
from forewarn.fleet import build as builder
from forewarn.fleet.cache import Cache
from tools.fixtures.policy_files import DIRECTORY


@pytest.mark.parametrize("target", ["any", "windows", "linux"])
def test_build_compiles_for_its_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    calls: list[tuple[str, ...]] = []

    def refuse(_home: Path, *arguments: str) -> CompletedProcess[str]:
        calls.append(arguments)
        return CompletedProcess(arguments, 1, "", "refused")

    monkeypatch.setattr(builder, "_forewarn", refuse)
    path = str(DIRECTORY / "web-tier.yml")
    with pytest.raises(InputError, match="policy compile fails"):
        builder.build([path], "", "", "2020-07-01", [], Cache(tmp_path / "kept", tmp_path), target=target)
    ((_policy, command, *options),) = calls
    assert command == "compile"
    assert options[options.index("--target") + 1] == target
