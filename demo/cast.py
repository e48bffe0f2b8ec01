# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plays the demo in a terminal of its own, and draws some of its acts as an animated SVG. Usage: ``cast.py FILE``."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import sys
import termios
import time
from collections.abc import Sequence
from pathlib import Path

from terminal_svg import COLUMNS, ROWS, Line, draw

# How the sections that are shown begin. A line of dots stands for those between them.
SECTIONS = (
    *("The policy", "RULE ", "A live migration", "A reboot that is prepared for", "The runner is killed"),
    "EVENT ",
)
DESCRIPTION = (
    "The demo in a terminal: a policy, then what it does. A short freeze is approved within a second. A reboot"
    " waits for a drain, and so does another, although the runner is killed in the middle of it. At the end, a"
    " table says that all ten events went as they should."
)
_LONGEST_PAUSE = 2.0  # seconds: nobody watches a picture for as long as the demo
_DOTS = "…"
_TITLE = re.compile(r"\x1b\[1m[^\x1b ][^\x1b]*\x1b\[0m")


def main(path: Path) -> int:
    """Write the picture. Where the demo fails, say so, leave the file as it is, and return 1."""
    try:
        lines = record([sys.executable, str(Path(__file__).with_name("demo.py"))])
    except ChildProcessError as error:
        print(error, file=sys.stderr)
        return 1
    shown = excerpt(lines)
    shown[:0] = [Line(shown[0].at, text) for text in ("\x1b[1m$ make demo\x1b[0m", "")]
    path.write_text(draw(hurry(shown), "make demo", DESCRIPTION), encoding="utf-8")
    return 0


def record(argv: Sequence[str]) -> list[Line]:
    """Run a program in a terminal; return what it writes. Raises ChildProcessError where it fails."""
    child, terminal = pty.fork()
    if child == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        # Not the user's settings: the picture is the same everywhere.
        os.execve(argv[0], list(argv), {**os.environ, "TERM": "xterm", "NO_COLOR": ""})
    lines: list[Line] = []
    rest, begin = b"", time.monotonic()
    while chunk := _read(terminal):
        *complete, rest = (rest + chunk).split(b"\r\n")
        lines += [Line(time.monotonic() - begin, text.decode()) for text in complete]
    os.close(terminal)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code:
        last = "\n".join(line.text for line in lines[-10:])
        raise ChildProcessError(f"{' '.join(argv)} ended with {code}, after\n{last}")
    return lines


def excerpt(lines: Sequence[Line]) -> list[Line]:
    """Return the lines of ``SECTIONS``, and dots for what is left out. Raises ValueError if one of them is missing."""
    begins = [number for number in range(1, len(lines)) if _begins_section(lines[number - 1], lines[number])]
    missing = list(SECTIONS)
    shown: list[Line] = []
    for begin, end in zip(begins, [*begins[1:], len(lines)]):
        if missing and lines[begin].plain.startswith(missing[0]):
            del missing[0]
            shown += lines[begin:end]
        elif _DOTS not in [line.text for line in shown[-2:]]:
            shown += [Line(lines[begin].at, _DOTS), Line(lines[begin].at, "")]
    if missing:
        raise ValueError(f"the demo has no section that begins with {missing[0]!r}: see SECTIONS in demo/cast.py")
    while not shown[-1].text:
        del shown[-1]
    return shown


def hurry(lines: Sequence[Line]) -> list[Line]:
    """Return the lines from second 0 on, with no pause between them longer than ``_LONGEST_PAUSE``."""
    now, before, result = 0.0, lines[0].at, list[Line]()
    for line in lines:
        now += min(line.at - before, _LONGEST_PAUSE)
        before = line.at
        result.append(Line(now, line.text))
    return result


def _begins_section(before: Line, line: Line) -> bool:
    return not before.text and bool(_TITLE.match(line.text))


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # how Linux says that nobody writes to it any more
        return b""


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1])))
