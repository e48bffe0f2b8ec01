# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Policies and tests written untidily: any indentation, comments in odd places, every way to write a text.

What is drawn is valid YAML by construction, so that nothing has to be thrown away.
"""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import strategies as st

KEYS = ("name", "description", "rule", "match", "id", "condition", "output", "section", "tests", "prepare", "params")
WORDS = (
    "hold",
    "approve",
    "leader == affects_me == event.leads",
    'event.EventType == "Freeze"',
    "it's # no comment",
    "'a freeze of ' + string(event.DurationInSeconds)",
    "ends with white space  ",
    "  begins with it",
    "two\nlines",
    "event.EventId == 'a'\n\n  && // indented\n# no comment\nleader",
    "last line end\n",
    "line ends\n\n\n",
    "\ttab",
    "ünï",
    "",
    "12",
    "- no list",
    "key: value",
)
_TEXTS = st.sampled_from(WORDS)
DATA = st.recursive(
    _TEXTS,
    lambda inner: st.lists(inner, min_size=1, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, min_size=1),
    max_leaves=16,
)
_PLAIN = re.compile(r"[A-Za-z][\w.]*( == [\w.]+)*")


class UntidyWriter:
    """Writes data as YAML; each choice is drawn. ``comments`` are those that it wrote, in order."""

    def __init__(self, data: st.DataObject) -> None:
        self._data = data
        self.comments: list[str] = []
        self.lines: list[str] = []
        self._anchors = 0
        self._in_text = False  # whether the last line is one of a block scalar

    def document(self, value: dict[str, Any]) -> str:
        """Return a document, with line ends of either kind and perhaps without the last one."""
        self._between(0)
        if self._one_of(False, True):
            self.lines.append("---" + self._after())
        self._mapping(value, self._one_of(0, 0, 2, 3), "")
        self._between(0)
        text: str = self._one_of("\n", "\r\n", "\r").join(self.lines)
        last = self.lines[-1]
        return text + str(self._one_of("\n", "\n\n\n", "" if last.strip() and not self._in_text else "\n"))

    def _one_of(self, *choices: Any) -> Any:
        return self._data.draw(st.sampled_from(choices))

    def _comment(self) -> str:
        self.comments.append(f"# comment {len(self.comments)}")
        return self.comments[-1]

    def _after(self) -> str:
        """Return what may follow a value in its line."""
        self._in_text = False
        kind = self._one_of("", "", "", "  ", "comment")
        return f" {self._comment()}{self._one_of('', '  ')}" if kind == "comment" else kind

    def _between(self, most: int) -> None:
        """Write blank lines and comments; after a block scalar, whose lines they might be, only what ends it."""
        for kind in self._data.draw(st.lists(st.sampled_from(("blank", "white", "comment")), max_size=3)):
            indent = self._one_of(0, most) if self._in_text else self._one_of(0, most, 1, 5, 12)
            if kind == "comment":
                self._in_text = False
                self.lines.append(" " * indent + self._comment() + self._one_of("", " \t"))
            elif not self._in_text:
                self.lines.append(" " * indent if kind == "white" else "")

    def _mapping(self, value: dict[str, Any], column: int, head: str) -> None:
        for number, (key, one) in enumerate(value.items()):
            lead = head if head and number == 0 else " " * column
            if not (head and number == 0):
                self._between(column)
            written = self._one_of(key, key, json.dumps(key), f"'{key}'")
            self._value(one, column, f"{lead}{written}:", in_list=False)

    def _list(self, value: list[Any], column: int, head: str) -> None:
        for number, one in enumerate(value):
            lead = head if head and number == 0 else " " * column
            if not (head and number == 0):
                self._between(column)
            self._value(one, column, f"{lead}-", in_list=True)

    def _value(self, value: Any, column: int, lead: str, *, in_list: bool) -> None:
        anchor = ""
        if self._one_of(False, False, False, True):
            self._anchors += 1
            anchor = f" &a{self._anchors}"
        if isinstance(value, str):
            self._text(value, column, lead + anchor)
            return
        if self._one_of(False, False, True):
            self._flow(value, column, lead + anchor)
            return
        step = self._one_of(1, 2, 2, 3, 4)
        gap = self._one_of(1, 1, 1, 3)
        if in_list and not anchor and self._one_of(True, False):
            inner = len(lead) + gap
            head = lead + " " * gap
            (self._mapping if isinstance(value, dict) else self._list)(value, inner, head)
            return
        self.lines.append(lead + anchor + self._after())
        inner = column + step
        if isinstance(value, list):
            if not in_list and self._one_of(True, False):
                inner = column
            self._between(inner)
            self._list(value, inner, "")
        else:
            self._between(inner)
            self._mapping(value, inner, "")

    def _flow(self, value: Any, column: int, lead: str) -> None:
        parts = self._flow_parts(value)
        text = lead + " "
        for part in parts:
            text += part
            if part in ("{", "[", ", ") and self._one_of(False, False, True):
                self.lines.append(text.rstrip(" ") + self._after())
                if self._one_of(False, False, True):
                    self.lines.append(" " * self._one_of(0, column, 9) + self._comment())
                text = " " * self._one_of(column + 1, column + 2, column + 7)
        self.lines.append(text + self._after())

    def _flow_parts(self, value: Any) -> list[str]:
        if isinstance(value, str):
            return [json.dumps(value, ensure_ascii=False)]
        found = ["{" if isinstance(value, dict) else "["]
        for number, one in enumerate(value):
            found += [", "] if number else []
            found += [f"{one}: ", *self._flow_parts(value[one])] if isinstance(value, dict) else self._flow_parts(one)
        return [*found, "}" if isinstance(value, dict) else "]"]

    def _text(self, value: str, column: int, lead: str) -> None:
        kinds = ["double"]
        if "\n" not in value and "\t" not in value:
            kinds.append("single")
        if _PLAIN.fullmatch(value):
            kinds += ["plain", "plain", "folded words"]
        if value.strip() and not value.startswith((" ", "\t", "\n")):
            kinds += ["literal", "literal", "folded"]
        kind = self._one_of(*kinds)
        separator = self._one_of(" ", " ", "  ")
        if kind in ("literal", "folded"):
            self._block(value, column, lead + separator, kind)
            return
        if kind == "folded words" and " " in value:
            first, rest = value.split(" ", 1)
            self.lines += [f"{lead} {first}", " " * (column + self._one_of(1, 2, 6)) + rest + self._after()]
            return
        text = value if "plain" in kind or "words" in kind else json.dumps(value, ensure_ascii=False)
        if kind == "single":
            text = "'" + value.replace("'", "''") + "'"
        elif kind == "double" and " " in value.strip() and self._one_of(False, True):
            head, _space, rest = text.partition(" ")
            if head != '"' and rest.strip(' "') and not rest.startswith(" ") and not head.endswith("\\"):
                self.lines += [f"{lead} {head}", " " * (column + self._one_of(1, 2, 6)) + rest + self._after()]
                return
        if self._one_of(False, False, True):
            self.lines += [lead + self._after(), " " * (column + self._one_of(1, 2, 5)) + text + self._after()]
        else:
            self.lines.append(lead + separator + text + self._after())

    def _block(self, value: str, column: int, lead: str, kind: str) -> None:
        """Write a block scalar. A folded one does not have the value that it was given; the parser says what it has."""
        step = self._one_of(1, 2, 4)
        indicator = (
            ("|" if kind == "literal" else ">") + self._one_of("", "", str(step)) + self._one_of("", "", "-", "+")
        )
        self.lines.append(lead + indicator + self._after())
        for line in value.split("\n"):
            self.lines.append(" " * (column + step) + line if line else "")
        self._in_text = True
