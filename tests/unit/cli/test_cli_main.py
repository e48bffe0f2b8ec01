# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The entry point: exit codes, help, and that a command costs the imports of that command only."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shlex
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path

import pytest
from forewarn import __version__
from forewarn.cli import main as entry
from forewarn.errors import ForewarnError, InputError, ServiceError
from tools.sites.commands import forewarn
from tools.suite.architecture import module_names

Command = Callable[[argparse.Namespace], int]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Callable[[Command], None]:
    """Return a function that sets what ``forewarn probe`` does; it takes one optional ``--word``."""

    def install(run: Command) -> None:
        module = types.ModuleType("forewarn.cli.probe")
        vars(module).update(add_arguments=lambda parser: parser.add_argument("--word"), run=run)
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setitem(entry.COMMANDS, "probe", ("probe", "do what a test says"))

    return install


@pytest.mark.parametrize("code", [0, 1])
def test_the_exit_code_is_the_command_s(command: Callable[[Command], None], code: int) -> None:
    seen = []

    def run(args: argparse.Namespace) -> int:
        seen.append(args.word)
        return code

    command(run)
    assert entry.main(["probe", "--word", "x"]) == code
    assert seen == ["x"]


def test_words_may_stand_before_and_after_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policies = [tmp_path / name for name in ("one.yml", "other.yml")]
    for policy in policies:
        policy.write_text(f"name: {policy.stem}\nrule: {{match: [{{id: all, output: hold}}]}}\n")
    assert entry.main(["policy", "check", str(policies[0]), "--api-version", "2020-07-01", str(policies[1])]) == 0
    assert "2 policies checked" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["policy", "check", "a.yml", "--extra"], ["doctor", "extra"]])
def test_what_no_command_takes_is_an_error(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        entry.main(arguments)
    assert f"unrecognized arguments: {arguments[-1]}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (
            InputError("web.yml:3:5: no field Foo.", "Did you mean Bar?"),
            2,
            "error: web.yml:3:5: no field Foo.\n  hint: ",
        ),
        (ServiceError("the service answered 403."), 3, "error: the service answered 403.\n"),
        (ForewarnError("no."), 2, "error: no.\n"),
        (ServiceError("half\x1b[2Ja\nline"), 3, "error: half\\x1b[2Ja\nline\n"),
    ],
)
def test_an_operator_s_error_is_a_sentence(
    command: Callable[[Command], None], capsys: pytest.CaptureFixture[str], error: ForewarnError, code: int, text: str
) -> None:
    def run(args: argparse.Namespace) -> int:
        raise error

    command(run)
    assert entry.main(["probe"]) == code
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith(text)
    assert "Traceback" not in output.err


def test_a_defect_stays_visible_and_is_no_finding(
    command: Callable[[Command], None], capsys: pytest.CaptureFixture[str]
) -> None:
    def run(args: argparse.Namespace) -> int:
        raise ZeroDivisionError

    command(run)
    assert entry.main(["probe"]) == 70
    output = capsys.readouterr().err
    assert output.startswith("Traceback")
    assert "ZeroDivisionError" in output
    assert "error: this is a defect of forewarn." in output


def test_an_interrupt_is_130(command: Callable[[Command], None]) -> None:
    def run(args: argparse.Namespace) -> int:
        raise KeyboardInterrupt

    command(run)
    assert entry.main(["probe"]) == 130


@pytest.mark.parametrize(
    "arguments",
    [
        *([], ["nonsense"], ["polic"], ["policy"], ["policy", "nonsense"], ["--colour"], ["policy", "--deep", "check"]),
        *(["emulate", "nonsense"], ["emulate", "--deep", "log"], ["emulate", "--port", "0", "publish", "--type", "X"]),
    ],
)
def test_bad_usage_is_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        entry.main(arguments)
    assert exit_.value.code == 2
    assert "usage: forewarn" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["--help"], entry.COMMANDS),
        (["policy", "--help"], entry.POLICY_COMMANDS),
        (["emulate", "--help"], entry.EMULATE_COMMANDS),
    ],
)
def test_help_names_every_command(
    arguments: list[str], names: dict[str, tuple[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        entry.main(arguments)
    assert exit_.value.code == 0
    text = capsys.readouterr().out
    for name, (_module, help_text) in names.items():
        assert name in text
        assert help_text.split()[0] in text


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        entry.main(["--version"])
    assert exit_.value.code == 0
    assert re.fullmatch(rf"forewarn {re.escape(__version__)}\+[0-9a-f]{{12}}\n", capsys.readouterr().out)


COMMAND_LINES = [
    *([name] for name in entry.COMMANDS if name != "policy"),
    *(["policy", name] for name in entry.POLICY_COMMANDS),
    *(["emulate", name] for name in entry.EMULATE_COMMANDS),
]


@pytest.mark.parametrize("arguments", COMMAND_LINES, ids=" ".join)
def test_every_command_has_its_file_and_its_help(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        entry.main([*arguments, "--help"])
    assert exit_.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: forewarn {' '.join(arguments)} ")


def test_every_file_of_a_command_is_a_command(package: Path) -> None:
    tables = (
        entry.COMMANDS,
        entry.POLICY_COMMANDS,
        entry.HOOK_COMMANDS,
        entry.GROUP_COMMANDS,
        entry.FLEET_COMMANDS,
        entry.EMULATE_COMMANDS,
    )
    named = {module for table in tables for module, _help in table.values()}
    modules = module_names(package / "cli")
    assert {module for module, path in modules.items() if "def add_arguments(" in path.read_text()} <= named


def test_nothing_is_imported_before_it_is_asked_for() -> None:
    """The runner must start fast, and on a VM the libraries of the other commands do not exist."""
    program = (
        "import sys\nfrom forewarn.cli.main import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print(*sorted(name for name in sys.modules if name.startswith('forewarn')), file=sys.stderr)\n"
        "print(*{'yaml', 'celpy', 'requests', 'jsonschema', 'http.client'} & set(sys.modules), file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    own, others = result.stderr.splitlines()
    names = (
        "cli cli.main cli.output cli.output.console errors "
        "system system.early_signals system.posix system.posix.early_signals texts"
    )
    assert own == " ".join(["forewarn", *(f"forewarn.{name}" for name in names.split())])
    assert others == ""


def test_a_command_that_is_not_installed_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a VM, where the runner alone is installed."""
    monkeypatch.setitem(entry.COMMANDS, "probe", ("no_such_file", "do what a test says"))
    assert entry.main(["probe"]) == 2
    text = capsys.readouterr().err
    missing = "the module forewarn.cli.no_such_file is missing."
    assert f"error: the command probe is not part of this installation: {missing}" in text
    assert "pip install ~/.ansible/collections/ansible_collections/forewarn/azure" in text


@pytest.mark.parametrize(
    ("arguments", "about"),
    [
        (["run", "--once", "--policy", ""], "the argument after --policy"),
        (["run", "--once", "--policy", "a.yml", ""], "an argument"),
        (["run", "--once", "--artifact", "a.json", "--config="], "--config"),
        (["run", "--once", "--artifact", "a.json", "--state", ""], "the argument after --state"),
        (["status", "--state", ""], "the argument after --state"),
        (["events", "--vm-name", ""], "the argument after --vm-name"),
        (["events", "--vm-name", " "], "--vm-name"),
        (["policy", "check", ""], "an argument"),
        (["policy", "verify", "--", ""], "an argument"),
        (["policy", "diff", "old", ""], "an argument"),
        (["policy", "compile", "a.yml", "-o", ""], "the argument after -o"),
    ],
)
def test_empty_value_is_refused_before_any_work(
    arguments: list[str],
    about: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As a path it would be the current directory; it is what is left of a variable that is not set."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.yml").write_text("name: p\nrule:\n  match: [{condition: 'true', output: approve}]\n")
    assert entry.main(arguments) == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err.splitlines()[0]) == ("", f"error: {about} is empty.")


def test_value_may_end_with_an_equals_sign(command: Callable[[Command], None]) -> None:
    command(lambda args: int(args.word != "name="))
    assert entry.main(["probe", "--word", "name="]) == 0
    assert entry.main(["probe", "--word=name="]) == 0


def test_a_double_dash_does_no_harm(command: Callable[[Command], None]) -> None:
    """Newer Pythons drop it, older ones refuse it: either way the command's file is what is asked for."""
    command(lambda args: 0)
    with contextlib.suppress(SystemExit):
        assert entry.main(["--", "probe"]) == 0


def probe_program(body: str) -> list[str]:
    """Return the command line of a process in which ``forewarn probe`` runs the expression ``body``."""
    program = (
        "import sys, types\nfrom forewarn.cli import main as entry\nfrom forewarn.errors import InputError\n"
        "def fail(error):\n    raise error\n"
        "module = types.ModuleType('forewarn.cli.probe')\n"
        "module.add_arguments = lambda parser: None\n"
        f"module.run = lambda args: {body}\n"
        "sys.modules['forewarn.cli.probe'] = module\nentry.COMMANDS['probe'] = ('probe', 'p')\n"
        "sys.exit(entry.main(['probe']))"
    )
    return [sys.executable, "-c", program]


def test_closed_output_exits_with_141_without_traceback() -> None:
    """As with any other program: ``forewarn policy check . | head -1`` must not pass where there are mistakes."""
    command = probe_program("[print('x' * 1000) for _ in range(10000)] and 0")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(10)
    process.stdout.close()
    with process.stderr as stream:
        errors = stream.read()
    assert process.wait(timeout=30) == 141
    assert errors == b""


NEEDS_FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")


@NEEDS_FULL
@pytest.mark.parametrize(
    "body",
    ["print('x') or 0", "print('x' * 100000) or 1", "print('x', flush=True)", "fail(OSError(28, 'No space left'))"],
)
def test_a_full_disk_is_a_sentence(body: str) -> None:
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(probe_program(body), stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert result.returncode == 2
    assert result.stderr.startswith("error: the output cannot be written: No space left")
    assert "Traceback" not in result.stderr
    assert "Exception ignored" not in result.stderr


@NEEDS_FULL
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_error_keeps_its_exit_code_without_output(unbuffered: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)  # without it, stderr keeps what it could not write
    body = "sys.stdout.reconfigure(write_through=False) or print('x') or fail(InputError('no.'))"
    with Path("/dev/full").open("w") as full:
        output = subprocess.run(probe_program(body), stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        assert (output.returncode, output.stderr) == (2, "error: no.\n")
        assert subprocess.run(probe_program(body), stdout=full, stderr=full, check=False).returncode == 2
        assert subprocess.run(probe_program("1"), stdout=full, stderr=full, check=False).returncode == 1


def test_error_of_another_file_is_no_output_error(
    command: Callable[[Command], None], capsys: pytest.CaptureFixture[str]
) -> None:
    def run(args: argparse.Namespace) -> int:
        raise OSError(28, "No space left", "/state/journal")

    command(run)
    assert entry.main(["probe"]) == 70
    assert "'/state/journal'" in capsys.readouterr().err


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_stream_that_is_closed_ends_no_command(closed: str, tmp_path: Path) -> None:
    """And no file that a command opens takes the place of one, and with it what is meant for people."""
    file = tmp_path / "file"
    body = f"[open({str(file)!r}, 'wb').close(), print('out'), print('err', file=sys.stderr), open(0).close()] and 7"
    arguments = " ".join(shlex.quote(part) for part in probe_program(body))
    result = subprocess.run(["sh", "-c", f"{arguments} {closed}"], capture_output=True, text=True, check=False)
    assert (result.returncode, "Traceback" in result.stderr, file.read_bytes()) == (7, False, b"")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["evnts"], "forewarn: error: there is no command 'evnts': did you mean 'events'?\n"),
        (["policy", "chek", "x.yml"], "forewarn policy: error: there is no command 'chek': did you mean 'check'?\n"),
        (["policy", "xyz"], "there is no command 'xyz': the commands are init, check, test, verify, "),
        (["emulate", "publsh"], "forewarn emulate: error: there is no command 'publsh': did you mean 'publish'?\n"),
    ],
)
def test_a_misspelt_command_gets_the_right_one_suggested(
    arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        entry.main(arguments)
    assert exit_.value.code == 2
    assert text in capsys.readouterr().err


def test_unencodable_character_is_escaped() -> None:
    environ = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = probe_program("print('a – b') or 0")
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
    assert (result.returncode, result.stdout, result.stderr) == (0, "a \\u2013 b\n", "")


def test_the_module_runs_as_a_program() -> None:
    assert forewarn("--version").stdout.startswith(f"forewarn {__version__}+")
    assert forewarn("nonsense").returncode == 2
