# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A tour of Forewarn on this machine: emulator, runners and Ansible as real processes, in two minutes.

Exits with 0 if everything went as it should, otherwise with 1. It ends what it starts, and its files are temporary.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import traffic
import yaml
from acts import TIME_SCALE, Acts
from ansible_command import POLICY, AdHoc
from narration import Narrator
from pool import PLACEHOLDER, Pool
from stage import ROOT, Stage, StageError, forewarn
from verify import HEADER, judge

RUNNERS = ("web_0", "web_1")
ALL = (*RUNNERS, "db_0")


def main() -> int:
    """Play the demo."""
    narrator = Narrator()
    try:
        with Stage(narrator.hear) as stage:
            pool = Pool(stage.directory / "hooks", RUNNERS)
            set_up(stage, narrator, pool)
            acts = Acts(stage, narrator, AdHoc(stage, ALL), pool, RUNNERS)
            acts.live_migration()
            acts.prepared()
            acts.waiting()
            acts.administrator()
            acts.outage()
            acts.redeploy()
            acts.cancelled()
            acts.killed()
            rows, differences = judge(acts)
            look_back(stage, narrator)
        differences += traffic.play(narrator)
    except StageError as error:
        narrator.console.error(f"The demo cannot go on: {error}")
        return 1
    except KeyboardInterrupt:
        narrator.console.line("\nEnded, and everything that was started too.")
        return 130
    praise = f"All {len(rows)} events went as they should, by the emulator's records and the journals."
    return narrator.conclude(HEADER, rows, differences, praise)


def set_up(stage: Stage, narrator: Narrator, pool: Pool) -> None:
    """Show the policy, compile it, and start the emulator and the runners."""
    policy = yaml.safe_load((ROOT / POLICY).read_text(encoding="utf-8"))
    narrator.act(f"The policy: {POLICY}", policy["description"])
    narrator.table(("RULE", "CONDITION", "OUTPUT"), [_rule(match) for match in policy["rule"]["match"]])
    narrator.act(
        "Three VMs",
        f"web_0 and web_1 run Forewarn, db_0 does not. Emulated time runs {TIME_SCALE:g} times as fast: a minute is a",
        "second, so that the 15 minutes of notice are 15 seconds. The runners poll once a real second.",
    )
    narrator.say("", f"$ cp demo/hooks/* {pool.directory}", "bold")
    narrator.say("", f"$ sed s,{PLACEHOLDER},{pool.directory}, {POLICY} > policy.yml", "bold")
    own = stage.directory / "policy.yml"
    pool.policy(ROOT / POLICY, own)
    narrator.say("", "$ forewarn policy compile --output policy.json policy.yml", "bold")
    code, _output, errors = stage.command(forewarn("policy", "compile", "--output", str(stage.artifact), str(own)))
    if code:
        raise StageError(errors)
    narrator.say("", f"$ forewarn emulate --scenario demo/scenario.yml --time-scale {TIME_SCALE:g}", "bold")
    stage.emulate(ROOT / "demo" / "scenario.yml", TIME_SCALE)
    for vm in RUNNERS:
        options = f"--artifact policy.json --endpoint {stage.emulator.vm_endpoint(vm)} --state {stage.state(vm).name}"
        narrator.say(vm, f"$ forewarn run {options}", "bold")
        stage.run(vm)


def look_back(stage: Stage, narrator: Narrator) -> None:
    """Show what an operator would see of the last event afterwards."""
    narrator.act("What an operator sees of that afterwards")
    state = stage.state("web_0")
    narrator.say("", f"$ forewarn history --limit 1 --state {state.name}", "bold")
    narrator.console.line()
    stage.show(forewarn("history", "--limit", "1", "--state", str(state)))


def _rule(match: Mapping[str, Any]) -> list[str]:
    hooks = [Path(hook["run"][0]).name for hook in match.get("prepare", ())]
    output = f"{match['output']}, after {', '.join(hooks)}" if hooks else match["output"]
    return [match["id"], match.get("condition", "(always)"), output]


if __name__ == "__main__":
    raise SystemExit(main())
