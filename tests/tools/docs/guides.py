# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Does what a Markdown page asks its reader to do, and compares the results with those that the page shows.

A fenced block of ``console`` is a session: lines after ``$ `` are commands, ``> `` goes on with one, and what follows
is their output. Output that is shown has to come, ``…`` standing for anything, a line of it for any number of lines. A
command ends with 0, or with N where it closes with ``# exit code N``. Readers do not see these comments before a block:

``<!-- file: NAME -->``     the block is the content of a file
``<!-- background -->``     its command runs on, as in a terminal of its own: an emulator
``<!-- not run: WHY -->``   the block is left out
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tools.sites.commands import run_program

EMULATOR_PORT = "8254"  # the default, as pages write it; tests take one that is free
_FENCE = re.compile(r"^```(\w*)\s*$")
_NOTE = re.compile(r"^<!-- (file|background|not run)(?:: (.+))? -->$")
_EXIT_CODE = re.compile(r"#.*\bexit code (\d+)\s*$")
_MARK = "\x1e"
_VARYING = (
    (re.compile(r"\b[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\b"), "GUID"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "TIME"),
    (re.compile(r"sha256:[0-9a-f]+"), "sha256:DIGEST"),
    (re.compile(r"(?m)[ \t]+$"), ""),
)


class Block(NamedTuple):
    """A fenced block, at its line of the page, with the comment before it."""

    line: int
    language: str
    text: str
    note: str | None
    value: str | None


class Command(NamedTuple):
    """A command of a session; ``output`` is what the page shows of it, or None."""

    line: int
    text: str
    output: str | None
    background: bool

    @property
    def code(self) -> int:
        """The exit code that the page announces."""
        match = _EXIT_CODE.search(self.text)
        return int(match[1]) if match else 0


def blocks(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page."""
    note: re.Match[str] | None = None
    language: str | None = None
    begin, body = 0, list[str]()
    for number, line in enumerate(page.read_text().splitlines(), 1):
        fence = _FENCE.match(line)
        if language is not None:
            if fence:
                yield Block(begin, language, "".join(body), note and note[1], note and note[2])
                language, note, body = None, None, []
            else:
                body.append(line + "\n")
        elif fence:
            language, begin = fence[1], number
        elif line.strip():
            note = _NOTE.match(line)
    assert language is None, f"{page}: a block has no end"


def commands(block: Block) -> Iterator[Command]:
    """Yield the commands of a session."""
    parts: list[tuple[int, list[str], list[str]]] = []
    for number, line in enumerate(block.text.splitlines(), block.line + 1):
        if line.startswith("$ "):
            parts.append((number, [line[2:]], []))
        elif line.startswith("> ") and not parts[-1][2]:
            parts[-1][1].append(line[2:])
        else:
            parts[-1][2].append(line)
    for number, text, output in parts:
        yield Command(
            number, "\n".join(text), "\n".join(output).rstrip() if output else None, block.note == "background"
        )


def run(page: Path, directory: Path, port: int, environ: Mapping[str, str]) -> int:
    """Run a page's commands in a directory; return how many. Raises AssertionError where their output differs."""
    ran: list[Command] = []
    script = ["exec 2>&1", "trap 'jobs=$(jobs -p); if [ -n \"$jobs\" ]; then kill $jobs; fi' EXIT"]
    for block in blocks(page):
        if block.note == "not run":
            continue
        if block.note == "file":
            assert block.value
            script.append(f"mkdir -p {shlex.quote(str(Path(block.value).parent))}")
            script.append(f"cat >{shlex.quote(block.value)} <<'END OF FILE'\n{block.text}END OF FILE")
        elif block.language == "console":
            for command in commands(block):
                script += [f"printf '\\n{_MARK}{len(ran)}\\n'", *_shell(command, port), f"printf '\\n{_MARK}%s\\n' $?"]
                ran.append(command)
    process = run_program("bash", "-c", "\n".join(script), cwd=directory, env=environ, stdin="", timeout=300)
    pieces = process.stdout.replace(f":{port}", f":{EMULATOR_PORT}").split(f"\n{_MARK}")[1:]
    for command, begin, end in zip(ran, pieces[::2], pieces[1::2], strict=True):
        place = f"{page.name}:{command.line}: $ {command.text}"
        _number, _newline, output = begin.partition("\n")
        code = end.partition("\n")[0]
        assert code == str(command.code), f"{place}\nended with {code}:\n{output}"
        if command.output is not None:
            assert re.fullmatch(_pattern(command.output), _plain(output) + "\n"), (
                f"{place}\nshows\n{command.output}\n--- printed was\n{output}"
            )
    return len(ran)


def _shell(command: Command, port: int) -> list[str]:
    text = command.text.replace(f":{EMULATOR_PORT}", f":{port}")
    # The commands that drive the emulator use the default port unless an option names another.
    text = re.sub(r"\bforewarn emulate [a-z]\S*", rf"\g<0> --control http://127.0.0.1:{port}", text)
    if not command.background:
        return [text]
    ready = f"ready-{command.line}"
    text = text.replace("forewarn emulate", f"forewarn emulate --port {port} --ready-file {ready}")
    return [f"{text} >/dev/null &", f"for try in $(seq 200); do [ -e {ready} ] && break; sleep 0.05; done", "true"]


def _plain(text: str) -> str:
    for pattern, word in _VARYING:
        text = pattern.sub(word, text)
    return text.strip("\n")


def _pattern(shown: str) -> str:
    return "".join(
        "(?:.*\n)*?" if line == "…" else re.escape(line).replace("…", ".*") + "\n" for line in _plain(shown).split("\n")
    )
