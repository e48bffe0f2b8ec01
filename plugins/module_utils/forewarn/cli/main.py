# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Entry point of ``forewarn``: finds the command's file, and turns errors into a message and an exit code.

Exit codes: 0 fine, 1 a finding or a failed test, 2 bad usage or bad input, 3 the service or the network, 70 a defect of
forewarn. As in a shell, 130 means interrupted, and 141 that nobody read the output to its end.
"""

from __future__ import annotations

import argparse
import errno
import gc
import importlib
import io
import os
import sys
import types
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from .. import __version__
from ..errors import ForewarnError, InputError
from ..system.early_signals import keep_reloads
from .output.console import Console

# Command -> (module of this package, one line of help). A module has add_arguments(parser) and run(args), which returns
# the exit code. It is imported only when its command is used: the runner must start fast, and a VM does not have the
# libraries of the other commands.
COMMANDS = {
    "run": ("run.command", "poll the service, decide by policy, approve"),
    "events": ("events", "show what is scheduled now"),
    "status": ("status.command", "show what is pending, what it waits for, and how the service is"),
    "doctor": ("doctor.command", "check what the service needs on this VM, and say what to do"),
    "history": ("history.command", "show what happened to events, and why"),
    "approve": ("approve", "approve events by id"),
    "pause": ("pause", "approve nothing on this VM for a while"),
    "resume": ("resume", "end a pause"),
    "drill": ("drill", "rehearse an event through the running service"),
    "recover": ("recover", "run a recovery that fails again, or end it"),
    "credential": ("credential", "encrypt a secret for the runner, on Windows"),
    "hook": ("hook.list", "list, explain and try the kinds of hooks"),
    "group": ("group.status", "show and mend what VMs of a group share"),
    "emulate": ("emulate.command", "serve an emulated Scheduled Events service"),
    "policy": ("policy_accept", "check, test, explain and compile policies"),
    "fleet": ("fleet.status", "show many VMs, and bring them policies and the runner"),
    "bundle": ("bundle", "write forewarn.pyz, the runner as one file for VMs"),
}
POLICY_COMMANDS = {
    "init": ("policy.init.command", "write a first policy with its tests, after three questions"),
    "check": ("policy.check", "find mistakes in policy files"),
    "test": ("policy.test", "run the tests beside the policies"),
    "verify": ("policy.verify", "prove what policies do with every possible event"),
    "query": ("policy.query", "show the events for which an expression holds, or prove that there are none"),
    "implies": ("policy.implies", "prove that one set of policies approves no more than another"),
    "diff": ("policy.diff", "show what a change of policies changes, for every event"),
    "explain": ("policy.explain", "show every rule tried on one event, with values"),
    "eval": ("policy.eval", "show the value of an expression for one event, and of its parts"),
    "replay": ("policy.replay", "show what a policy would have decided about past events"),
    "fmt": ("policy.fmt", "format files of policies and tests, and change nothing that they say"),
    "compile": ("policy.compile", "write the artifact that a runner loads"),
    "accept": ("policy_accept", "let signed policies follow that are older than those in use, on a VM"),
    "schema": ("policy.schema", "print the JSON Schema of policies, or of their tests, for an editor"),
}
HOOK_COMMANDS = {
    "list": ("hook.list", "list the kinds of hooks"),
    "show": ("hook.show", "explain one kind, with its options"),
    "try": ("hook.try_hook", "run a hook on this VM now"),
}
GROUP_COMMANDS = {
    "status": ("group.status", "show who holds a slot, who waits, and how far the VMs of each event are"),
    "create": ("group.create", "create the semaphore of a group, before its first limit"),
    "release": ("group.release", "free the slots of a VM that will not do it itself"),
}
FLEET_COMMANDS = {
    "publish": ("fleet.publish", "publish signed policies for VMs that pull them, in waves"),
    "cloud-init": ("fleet.cloud_init", "write user data by which new VMs install the runner at their first boot"),
    "status": ("fleet.status", "show all VMs as Prometheus knows them, without a connection to any"),
}
EMULATE_COMMANDS = {
    "publish": ("emulate.publish", "make a running emulator announce an event"),
    "cancel": ("emulate.change", "remove an event that has not started"),
    "start": ("emulate.change", "start an event now, approved or not"),
    "finish": ("emulate.change", "remove a started event from the list now"),
    "impact": ("emulate.change", "make a started event affect its VMs once more"),
    "fail": ("emulate.fail", "make requests to the service fail or take long"),
    "time": ("emulate.change", "jump ahead in emulated time, or change its pace"),
    "status": ("emulate.status", "show VMs, events and faults, or one event"),
    "log": ("emulate.log", "show the requests to the service"),
    "switch-off": ("emulate.change", "switch the service off, as a day without requests does"),
    "reset": ("emulate.change", "restart the scenario"),
}
_SUBCOMMANDS = {
    "policy": POLICY_COMMANDS,
    "hook": HOOK_COMMANDS,
    "group": GROUP_COMMANDS,
    "fleet": FLEET_COMMANDS,
    "emulate": EMULATE_COMMANDS,
}
_GROUPS = ("policy", "hook", "group", "fleet")  # which do nothing by themselves


_UNSET = "Is a variable of the shell not set?"
# The errors of writing to a full disk, or to a terminal that is gone.
_NOT_WRITABLE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF})


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    if argv is None:  # otherwise the process is not ours
        keep_reloads()
    arguments = list(sys.argv[1:] if argv is None else argv)
    _open_standard_streams()
    if isinstance(sys.stdout, io.TextIOWrapper):  # a character that the locale cannot write must not end a command
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        return _run(arguments)
    except ForewarnError as error:
        _report(error.message, error.hint)
        return error.exit_code
    except BrokenPipeError:  # the reader, for example `head`, has seen enough, but cannot know whether all is well
        return 141
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # Python would end with 1, which means that a policy has a finding
        if isinstance(error, OSError) and error.filename is None and error.errno in _NOT_WRITABLE:
            hint = "The command may still have done its work."
            _report(f"the output cannot be written: {error.strerror}.", hint)
            return 2
        _report_defect()
        return 70
    finally:
        _flush_or_drop()


def _run(arguments: Sequence[str]) -> int:
    try:
        args = _parser(arguments).parse_args(arguments)
    except SystemExit:  # after the help, the version or a complaint
        sys.stdout.flush()
        raise
    _refuse_empty(arguments)
    result = args.run(args)
    sys.stdout.flush()
    return int(result)


def _refuse_empty(arguments: Sequence[str]) -> None:
    """Raise InputError for an empty argument: it probably comes from a variable that is not set.

    As a path it would mean the current directory, as a name nobody.
    """
    before, options = "", True  # "--" ends the options
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if options and name.startswith("--") and equals and not value:
            raise InputError(f"{name} is empty.", _UNSET)
        if not argument:
            about = f"the argument after {before}" if before.startswith("-") and before != "--" else "an argument"
            raise InputError(f"{about} is empty.", _UNSET)
        options = options and argument != "--"
        before = argument


def _open_standard_streams() -> None:
    """Open the streams that were closed at the start: otherwise the next file would get their number and output."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r" if number == 0 else "w", encoding="utf-8"))  # noqa: PTH123, SIM115 - for as long as this process runs


def _report(message: str, hint: str) -> None:
    with suppress(OSError):  # the exit code still says it
        Console(sys.stderr).error(message, hint)


def _report_defect() -> None:
    import traceback  # here: hopefully nobody needs it

    with suppress(OSError):
        traceback.print_exc()
    _report("this is a defect of forewarn.", "Please report it, with the lines above and what you were doing.")


def _flush_or_drop() -> None:
    """Leave no output that Python would fail to write when it ends, which would change the exit code."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:  # noqa: PERF203 - of two streams, each by itself
            from ..system.files import open_to_write  # here: hopefully nobody needs it

            os.dup2(open_to_write(os.devnull, follow=True), stream.fileno())


class _Formatter(argparse.HelpFormatter):
    """Finds the width itself: argparse would import shutil to do so, each time it makes a formatter."""

    def __init__(self, prog: str) -> None:
        try:
            width = os.get_terminal_size().columns - 2
        except OSError:  # no terminal
            width = 78
        super().__init__(prog, width=width)


class _Parser(argparse.ArgumentParser):
    """Where a command takes any number of words, these may stand before and after its options."""

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=_Formatter, **options)

    # argparse takes them in one place alone; parse_intermixed_args() has no subcommands.
    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        found, rest = super().parse_known_args(args, namespace)
        last: Any = next((one for one in reversed(self._actions) if not one.option_strings), None)
        if not rest or last is None or last.nargs not in ("*", "+") or any(word.startswith("-") for word in rest):
            return found, rest
        setattr(found, last.dest, [*(getattr(found, last.dest) or ()), *map(last.type or str, rest)])
        return found, []


class _Version(argparse.Action):
    """Shows the version of the runner here: that of this program on a VM, elsewhere that of one which is built now."""

    def __call__(self, parser: argparse.ArgumentParser, *_parsed: object) -> None:
        try:
            version = importlib.import_module("..bundle", __package__).version()
        except (ModuleNotFoundError, InputError):  # a VM has nothing to build from
            version = __version__
        sys.stdout.write(f"forewarn {version}\n")
        parser.exit()


class _Completion(argparse.Action):
    """Shows what a shell sources to complete commands and options."""

    def __call__(self, parser: argparse.ArgumentParser, _namespace: object, shell: object, *_option: object) -> None:
        text = _module("--print-completion", "completion").script(_parser((), every=True), shell)
        sys.stdout.write(text)
        parser.exit()


def _parser(arguments: Sequence[str], every: bool = False) -> argparse.ArgumentParser:
    """Return the parser for a command line, with the options of its command alone; ``every``: of all commands."""
    parser = _Parser(prog="forewarn", description="Decides, by policy, what happens to Azure Scheduled Events.")
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and build, and exit")
    parser.add_argument(
        "--print-completion",
        action=_Completion,
        choices=("bash", "zsh", "fish"),
        help="show what this shell sources to complete commands, and exit",
    )
    _add_commands(parser, _listed(COMMANDS, arguments), arguments, 0, every=every)
    return parser


def _listed(commands: dict[str, tuple[str, str]], arguments: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return the commands that a help lists: only those that are installed. Where one is given, it is among all."""
    if not commands.keys().isdisjoint(arguments):
        return commands
    from importlib.util import find_spec  # here: no command needs it

    places = {module.partition(".")[0] for module, _help in commands.values()}
    here = {place for place in places if find_spec(f".{place}", __package__) is not None}
    return {name: command for name, command in commands.items() if command[0].partition(".")[0] in here}


def _add_commands(
    parser: argparse.ArgumentParser,
    commands: dict[str, tuple[str, str]],
    arguments: Sequence[str],
    depth: int,
    required: bool = True,
    every: bool = False,
) -> None:
    names = [argument for argument in arguments if not argument.startswith("-")]
    wanted = names[depth] if len(names) > depth else None
    if wanted is not None and arguments[depth] == wanted and wanted not in commands:
        parser.error(_no_such_command(wanted, list(commands)))
    if wanted is not None and arguments[depth] != wanted and not required:
        wanted = None  # it belongs to an option of the command above
    metavar = "COMMAND" if required else "[COMMAND]"
    subparsers = parser.add_subparsers(metavar=metavar, dest="command", required=required)
    for name, (module_name, help_text) in commands.items():
        subparser = subparsers.add_parser(name, help=help_text, description=help_text[0].upper() + help_text[1:] + ".")
        if name != wanted and not every:
            continue
        if name not in _GROUPS:
            module = _module(name, module_name)
            module.add_arguments(subparser)
            subparser.set_defaults(run=module.run)
        if depth == 0 and name in _SUBCOMMANDS:
            below = _listed(_SUBCOMMANDS[name], arguments[1:])
            _add_commands(subparser, below, arguments, 1, required=name in _GROUPS, every=every)


def _no_such_command(wanted: str, commands: list[str]) -> str:
    from difflib import get_close_matches  # here: nobody who knows the commands needs it

    close = get_close_matches(wanted, commands, 1)
    hint = f"did you mean {close[0]!r}?" if close else f"the commands are {', '.join(commands)}"
    return f"there is no command {wanted!r}: {hint}"


def _module(command: str, name: str) -> types.ModuleType:
    gc.disable()  # there is no garbage among modules, and looking for it takes a twentieth of the start
    try:
        if command == "run":  # before anything else imports http.client
            importlib.import_module("..runner.skip_openssl", __package__)
        return importlib.import_module(f".{name}", __package__)
    except ModuleNotFoundError as error:
        raise InputError(
            f"the command {command} is not part of this installation: the module {error.name} is missing.",
            "A VM has only what the runner needs; where policies are written, install all of it from the collection: "
            "pip install ~/.ansible/collections/ansible_collections/forewarn/azure",
        ) from error
    finally:
        gc.freeze()
        gc.enable()


if __name__ == "__main__":
    raise SystemExit(main())
