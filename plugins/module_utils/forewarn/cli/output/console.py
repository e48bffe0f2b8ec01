# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Output of commands: JSON for programs; for people aligned tables, with colour on a terminal, plain text in a pipe.

No text from the service or from a file can pass for a line of ours.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Callable, TextIO

from ...texts import escaped

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}


class Console:
    """Writes to one stream. Colour needs a terminal, and NO_COLOR unset (no-color.org); FORCE_COLOR overrides.

    ``environ`` is the process's own unless given.
    """

    def __init__(self, stream: TextIO, environ: Mapping[str, str] | None = None) -> None:
        self.stream = stream
        environ = os.environ if environ is None else environ
        if environ.get("FORCE_COLOR"):
            self.colour = True
        else:
            self.colour = stream.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"

    def style(self, text: str, *styles: str) -> str:
        """Return the text in the named styles, or unchanged where there is no colour."""
        text = clean(text)
        if not self.colour or not styles:
            return text
        return "\033[" + ";".join(_CODES[name] for name in styles) + "m" + text + "\033[0m"

    def line(self, text: str = "") -> None:
        """Write one line; the text may hold styled parts."""
        self.stream.write(text + "\n")

    def error(self, message: str, hint: str = "") -> None:
        """Write an error, and the hint below it. The message may have several lines."""
        self.line(self.style("error:", "bold", "red") + " " + clean(message))
        if hint:
            self.labelled("hint", hint)

    def warning(self, text: str) -> None:
        """Write a warning of one line."""
        self.result("warning", text, "bold", "yellow")

    def note(self, text: str) -> None:
        """Write a note of one line."""
        self.result("note", text, "yellow")

    def result(self, label: str, text: str, *styles: str) -> None:
        """Write what a command has done: a label with its styles, and a text of one line."""
        self.line(f"{self.style(f'{label}:', *styles)} {one_line(text)}")

    def labelled(self, label: str, text: str, style: str = "cyan") -> None:
        """Write a text after a label, indented below what it belongs to."""
        self.line(f"  {self.style(f'{label}:', style)} {self.style(text)}")

    def table(
        self,
        header: Sequence[str],
        rows: Sequence[Sequence[str]],
        styles: Mapping[str, str] | None = None,
        after_row: Callable[[int], None] | None = None,
    ) -> None:
        """Write an aligned table, one line per row.

        ``styles`` maps a cell's whole text to its styles, separated by spaces. ``after_row`` is called with the number
        of each row that is written, from 0 on.
        """
        cells = [[one_line(cell) for cell in row] for row in rows]
        widths = [max(len(row[i]) for row in [list(header), *cells]) for i in range(len(header))]
        self._row(header, widths, dict.fromkeys(header, "bold"))
        for number, row in enumerate(cells):
            self._row(row, widths, styles or {})
            if after_row is not None:
                after_row(number)

    def _row(self, row: Sequence[str], widths: Sequence[int], styles: Mapping[str, str]) -> None:
        parts = []
        for cell, width in zip(row, widths):
            padding = " " * (width - len(cell))
            parts.append((self.style(cell, *styles[cell].split()) if cell in styles else cell) + padding)
        self.line("  ".join(parts).rstrip())


def write_result(as_json: bool, schema: str, content: Mapping[str, Any]) -> Console:
    """Write a result as one JSON object, if ``as_json``; return the console for what people read.

    Beside a JSON object, what people read goes nowhere: a command does not have to ask which of them is wanted.
    """
    if not as_json:
        return Console(sys.stdout)
    write_json(schema, content)
    return Console(io.StringIO())


def write_json(schema: str, content: Mapping[str, Any]) -> None:
    """Write one JSON object to standard output, the name and version of its schema first."""
    sys.stdout.write(json_text(schema, content))


def write_json_stream(schema: str, content: Mapping[str, Any]) -> None:
    """Write one JSON object to standard output, piece by piece: a long list does not have to fit into memory.

    A value that is an iterator becomes a list; one that is a function is called when everything before is written.
    """
    write = sys.stdout.write
    write(f'{{"forewarn": {json.dumps({"schema": schema, "version": 1})}')
    for name, value in content.items():
        write(f", {json.dumps(name)}: ")
        if isinstance(value, Iterator):
            write("[")
            for number, item in enumerate(value):
                write(("," if number else "") + "\n" + json.dumps(item))
            write("\n]")
        else:
            write(json.dumps(value() if callable(value) else value))
    write("}\n")


def json_text(schema: str, content: Mapping[str, Any]) -> str:
    """Return one JSON object and a line end, the name and version of its schema first."""
    return json.dumps({"forewarn": {"schema": schema, "version": 1}, **content}, indent=2) + "\n"


def attributes(value: object, names: str) -> dict[str, Any]:
    """Return attributes of an object by name, for JSON; ``names`` are separated by spaces."""
    return {name: getattr(value, name) for name in names.split()}


def clean(text: str) -> str:
    """Return the text with every character escaped that would hide or rearrange it, except line ends and tabs."""
    return escaped(text, keep="\n\t")


def one_line(text: str) -> str:
    """Return the text with every such character escaped, so that it cannot pass for a line of ours."""
    return escaped(text)
