# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runner does not start with policies whose limits it cannot keep."""

from __future__ import annotations

from pathlib import Path

import pytest
from forewarn.cli.main import main

POLICY = """
name: web
rule:
  match:
    - id: outer
      rule:
        match:
          - id: drain
            condition: event.EventType == "Reboot"
            output: approve
            {limit}
            prepare: [{{run: [/bin/true]}}]
"""


@pytest.mark.parametrize(("limit", "code"), [("limit: 1", 2), ("limit: 25%", 2), ("group: ready", 0)])
def test_a_limit_is_refused(limit: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy = tmp_path / "web.yml"
    policy.write_text(POLICY.format(limit=limit), encoding="utf-8")
    state = str(tmp_path / "state")
    assert (
        main(["run", "--check", "--policy", str(policy), "--endpoint", "http://127.0.0.1:9", "--state", state]) == code
    )
    written = "".join(capsys.readouterr())
    assert ("rule web/outer.drain has a limit" in written) == (code == 2), written
