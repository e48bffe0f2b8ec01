# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``scheduled_events`` warns of what ``forewarn policy verify`` finds, and decides all the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from forewarn.emulator.server import EmulatorServer
from tools.sites.adhoc import AdHoc

pytestmark = pytest.mark.in_turn(3)

POLICY = """\
name: web
description: The second rule never decides.
params:
  - {name: tolerable_freeze, type: int, default: 9}
rule:
  match:
    - {id: freeze, condition: event.EventType == "Freeze", output: hold}
    - id: brief-freeze
      condition: event.EventType == "Freeze" && event.DurationInSeconds in [0, 5] && 5 < params.tolerable_freeze
      output: approve
"""
SUPPRESSED = POLICY + "suppress:\n  - {code: shadowed-rule, rule: brief-freeze, reason: it is being written}\n"


@pytest.fixture
def adhoc(tmp_path: Path, collections_path: Path) -> AdHoc:
    (tmp_path / "web.yml").write_text(POLICY)
    return AdHoc(tmp_path, collections_path)


def test_a_finding_is_a_warning_and_no_more(adhoc: AdHoc) -> None:
    with EmulatorServer(vms=["web_0"]) as server:
        hosts = {name: {"my_endpoint": server.vm_endpoint("web_0")} for name in ("a", "b")}
        args = {"endpoint": "{{ my_endpoint }}", "policies": ["web.yml"]}
        outcome = adhoc.run(hosts, args)
        assert outcome.status == {"a": "SUCCESS", "b": "SUCCESS"}
        assert "web.yml:8:7: error shadowed-rule" in " ".join((outcome.stdout + outcome.stderr).split())
        # Proven once, and cached: the next run reports the same for the same policies.
        (kept,) = adhoc.directory.rglob("verified/*")
        kept.write_text(json.dumps(["what was kept is what is said"]))
        again = adhoc.run(hosts, args)
        assert "what was kept is what is said" in again.stdout + again.stderr
        # Another value of a parameter is another proof.
        adhoc.run(hosts, {**args, "params": {"tolerable_freeze": 4}})
        assert len(list(adhoc.directory.rglob("verified/*"))) == 2
        (adhoc.directory / "web.yml").write_text(SUPPRESSED)
        quiet = adhoc.run(hosts, args)
        assert "shadowed-rule" not in quiet.stdout + quiet.stderr
