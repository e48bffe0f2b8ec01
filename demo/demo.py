# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A tour of Forewarn on this machine: emulator, runners and Ansible as real processes, in about a minute.

Ends with 0 if everything went as it should, with 1 if not. What it starts it ends, and its files are temporary.
"""

from __future__ import annotations

import yaml
from acts import TIME_SCALE, Acts
from ansible_command import POLICY, AdHoc
from narration import Narrator
from stage import ROOT, Stage, StageError, forewarn
from verify import HEADER, judge

RUNNERS = ("web_0", "web_1")
ALL = (*RUNNERS, "db_0")


def main() -> int:
    """Play the demo."""
    narrator = Narrator()
    try:
        with Stage(narrator.hear) as stage:
            set_up(stage, narrator)
            acts = Acts(stage, narrator, AdHoc(stage, ALL))
            acts.live_migration()
            acts.unknown_duration()
            acts.administrator()
            acts.outage()
            acts.redeploy()
            acts.cancelled()
            rows, differences = judge(acts)
    except StageError as error:
        narrator.console.error(f"The demo cannot go on: {error}")
        return 1
    except KeyboardInterrupt:
        narrator.console.line("\nEnded, and everything that was started too.")
        return 130
    narrator.table(HEADER, rows)
    narrator.console.line()
    for difference in differences:
        narrator.console.error(difference)
    if differences:
        return 1
    narrator.say("", f"All {len(rows)} events went as they should, by the emulator's own records.", "green")
    return 0


def set_up(stage: Stage, narrator: Narrator) -> None:
    """Show the policy, compile it, and start what runs all the time."""
    policy = yaml.safe_load((ROOT / POLICY).read_text(encoding="utf-8"))
    rules = [[match["id"], match.get("condition", "(always)"), match["output"]] for match in policy["rule"]["match"]]
    narrator.act(f"The policy: {POLICY}", policy["description"])
    narrator.table(("RULE", "CONDITION", "OUTPUT"), rows=rules)
    narrator.act(
        "Three VMs",
        f"web_0 and web_1 run Forewarn, db_0 does not. Emulated time runs {TIME_SCALE:g} times as fast: a minute is a",
        "second, so that the 15 minutes of notice are 15 seconds. The runners poll once a real second.",
    )
    artifact = stage.directory / "policy.json"
    narrator.say("", f"$ forewarn policy compile --output policy.json {POLICY}", "bold")
    code, _output, errors = stage.command(forewarn("policy", "compile", "--output", str(artifact), POLICY))
    if code:
        raise StageError(errors)
    narrator.say("", f"$ forewarn emulate --scenario demo/scenario.yml --time-scale {TIME_SCALE:g}", "bold")
    stage.emulate(ROOT / "demo" / "scenario.yml", TIME_SCALE)
    for vm in RUNNERS:
        narrator.say(vm, f"$ forewarn run --artifact policy.json --endpoint {stage.emulator.vm_endpoint(vm)}", "bold")
        stage.run(vm, artifact)


if __name__ == "__main__":
    raise SystemExit(main())
