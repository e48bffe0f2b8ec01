# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hooks that cannot run on the system that a policy is for, and what a compiler says of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from forewarn.compiler.findings import Finding
from tools.fixtures.policy_files import HEAD, compiled

BOTH, ANYWHERE = ("windows", "linux"), ("any", "windows", "linux")


def policy(hook: str) -> str:
    return f"{HEAD}    - {{output: hold, prepare: [{hook}]}}\n"


def findings_for(directory: Path, hook: str, target: str) -> list[Finding]:
    return compiled(directory, policy(hook), target=target).findings


@pytest.mark.parametrize(
    ("hook", "target", "at", "hint"),
    [
        ("{unit: x.service, action: stop}", "windows", "unit:", "write service: {name: NAME}"),
        ("{systemd: {unit: x.service}}", "windows", "systemd:", "write service: {name: NAME}"),
        ("{slurm: {}}", "windows", "slurm:", "drain.cmd"),
        ("{service: {name: Spooler}}", "linux", "service:", "write systemd: {unit: NAME.service}"),
        ("{run: [/usr/local/bin/x]}", "windows", "/usr/local/bin/x", r"'C:\Program Files\Forewarn\hooks\drain.cmd'"),
        (r"{run: ['C:\x\y.cmd', a]}", "linux", r"'C:\x\y.cmd'", "'/opt/forewarn/hooks/drain'"),
        ("{http: 'https://x/', bearer: {file: /etc/x}}", "windows", "/etc/x", r"'C:\ProgramData\Forewarn\token'"),
        (r"{http: 'https://x/', bearer: {file: 'C:\x'}}", "linux", r"'C:\x'", "'/etc/forewarn/token'"),
        ("{run: [x], credentials: [aux]}", "windows", "aux", "another name"),
        ("{http: 'https://x/', bearer: {credential: con.txt}}", "windows", "con.txt", "another name"),
        ("{run: [x], credentials: [token.]}", "windows", "token.", "another name"),
    ],
)
def test_hook_of_another_system_is_refused(tmp_path: Path, hook: str, target: str, at: str, hint: str) -> None:
    (finding,) = findings_for(tmp_path, hook, target)
    assert (finding.code, finding.severity) == ("wrong-system", "error")
    assert finding.source_line[finding.column - 1 :].startswith(at)
    assert hint in finding.suggestion
    other = BOTH[target == "windows"]
    assert findings_for(tmp_path, hook, "any") == findings_for(tmp_path, hook, other) == []


@pytest.mark.parametrize(
    "hook",
    [
        "{probe: {wait: 20s}}",
        "{http: 'https://x/', bearer: {credential: token}}",
        "{run: [drain, 'a&b', '%x%'], credentials: [auxiliary, console]}",
        "{run: [drain.exe]}",
    ],
)
def test_hook_of_every_system_is_no_finding(tmp_path: Path, hook: str) -> None:
    assert [findings_for(tmp_path, hook, target) for target in ANYWHERE] == [[], [], []]


@pytest.mark.parametrize(
    "hook",
    [
        r"{run: ['C:\Program Files\App\drain.exe']}",
        r"{run: ['C:\Program Files (x86)\App\drain.cmd', 'a b', --x=1, 'C:\dir\']}",
        r"{run: ['C:\x\drain.exe', 'a&b', '100%']}",
        r"{run: ['c:/x/drain.PS1', '(x)']}",
        r"{http: 'https://x/', bearer: {file: 'D:\secret dir\x'}}",
    ],
)
def test_whole_path_of_windows_is_accepted(tmp_path: Path, hook: str) -> None:
    assert findings_for(tmp_path, hook, "any") == findings_for(tmp_path, hook, "windows") == []


@pytest.mark.parametrize(
    ("hook", "code", "at", "says"),
    [
        (r"{run: ['C:\x\drain.sh']}", "command", r"'C:\x\drain.sh'", "is none of .exe, .cmd, .bat, .ps1"),
        (r"{run: ['\\host\x\drain.exe']}", "command", r"'\\host\x\drain.exe'", "is on another computer"),
        (r"{run: ['bin\drain.exe']}", "command", r"'bin\drain.exe'", "write the whole path"),
        (r"{run: ['\bin\drain.exe']}", "command", r"'\bin\drain.exe'", "write the whole path"),
        (r"{run: ['C:\x\drain.cmd now']}", "command", r"'C:\x\drain.cmd now'", "no shell splits it"),
        (r'{run: ["C:\new\drain.exe"]}', "yaml-syntax", r".exe", ""),
        (r'{run: ["C:\new\table.exe", x]}', "command", r'"C:\new', "single quotes"),
        (r"{run: ['C:\x\drain.cmd', a, 'a&b']}", "cmd-argument", "'a&b'", "run an .exe or a .ps1"),
        (r"{run: ['C:\x\drain.BAT', '100%']}", "cmd-argument", "'100%'", "has '%' in it"),
        (r"{run: ['C:\x\drain.bat', 'C:\my dir\']}", "cmd-argument", r"'C:\my dir\'", "backslash"),
    ],
)
def test_program_that_runs_nowhere_is_refused(tmp_path: Path, hook: str, code: str, at: str, says: str) -> None:
    for target in ("any", "windows"):
        finding = next(one for one in findings_for(tmp_path, hook, target) if one.code == code)
        assert finding.severity == "error"
        if code != "yaml-syntax":
            assert finding.source_line[finding.column - 1 :].startswith(at)
        assert says in f"{finding.message} {finding.suggestion}"


@pytest.mark.parametrize(
    ("hook", "code"), [("{run: [drain.cmd, 'a|b']}", "cmd-argument"), ("{run: ['C:drain.exe']}", "command")]
)
def test_command_of_windows_is_checked_for_it(tmp_path: Path, hook: str, code: str) -> None:
    assert findings_for(tmp_path, hook, "any") == []
    assert [finding.code for finding in findings_for(tmp_path, hook, "windows")] == [code]


@pytest.mark.parametrize(("zone", "known"), [("Europe/Berlin", False), ("UTC", True), ("+02:00", True)])
def test_zone_without_an_offset_is_unknown_on_windows(tmp_path: Path, zone: str, known: bool) -> None:
    expression = f"now.getHours('{zone}') < 6"
    text = (
        f'name: p\nrule:\n  variables:\n    - {{name: night, expression: "{expression}"}}\n'
        f'  match:\n    - {{condition: "{expression} || variables.night", output: approve}}\n    - {{output: hold}}\n'
    )
    assert compiled(tmp_path, text, target="linux").findings == []
    findings = compiled(tmp_path, text, target="windows").findings
    assert [finding.code for finding in findings] == ([] if known else ["wrong-system"] * 2)
    assert all("an offset such as '+02:00'" in finding.suggestion for finding in findings)


def test_zone_in_a_library_is_unknown_on_windows(tmp_path: Path) -> None:
    (tmp_path / "hours.yml").write_text(
        "name: hours\nlibrary: true\nvariables:\n  - {name: night, expression: \"now.getHours('Europe/Berlin') < 6\"}\n"
    )
    text = "name: p\nimports:\n  - path: hours.yml\n"
    text += "rule:\n  match:\n    - {condition: variables.night, output: hold}\n"
    assert compiled(tmp_path, text, target="any").findings == []
    (finding,) = compiled(tmp_path, text, target="windows").findings
    assert (finding.code, Path(finding.path).name) == ("wrong-system", "hours.yml")
