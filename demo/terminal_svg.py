# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Draws what a terminal shows over time as an SVG that moves by CSS alone, for light and dark pages.

All lines stand below each other from the start. A cover over those that are still to come moves down, and once the
window is full the lines scroll up. Where nothing moves (on paper, or for readers who prefer that), the end is to be
seen.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

COLUMNS, ROWS = 100, 26
LAST_PAUSE = 8.0  # seconds, before it begins again
LINE_HEIGHT = 19
_CHARACTER_WIDTH, _MARGIN, _BAR_HEIGHT = 8.45, 16, 34
_DESCENT = 5  # what hangs below a line's place: g, y, commas
_WIDTH = round(COLUMNS * _CHARACTER_WIDTH) + 2 * _MARGIN
_HEIGHT = _BAR_HEIGHT + ROWS * LINE_HEIGHT + _MARGIN

_STYLED = re.compile(r"\x1b\[([\d;]*)m([^\x1b]*)")
_CLASSES = {"1": "b", "2": "d", "31": "r", "32": "g", "33": "y", "34": "u", "36": "c"}
_STYLE = """
  text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; white-space: pre }
  .window, .cover { fill: #fff } .window { stroke: #d0d7de } .bar { stroke: #d0d7de } text { fill: #1f2328 }
  .b { font-weight: 600 } .d, .title { fill: #59636e } .r { fill: #b3261e } .g { fill: #116329 } .y { fill: #7d4e00 }
  .u { fill: #0550ae } .c { fill: #0a5c75 }
  @media (prefers-color-scheme: dark) {
    .window, .cover { fill: #0d1117 } .window { stroke: #3d444d } .bar { stroke: #3d444d } text { fill: #e6edf3 }
    .d, .title { fill: #9198a1 } .r { fill: #ff7b72 } .g { fill: #56d364 } .y { fill: #e3b341 }
    .u { fill: #79c0ff } .c { fill: #76e3ea }
  }
"""


class Line(NamedTuple):
    """A line with its colours as a terminal gets them, and the second at which it was written."""

    at: float
    text: str

    @property
    def plain(self) -> str:
        """The text without colours."""
        return _STYLED.sub(r"\2", self.text)


def draw(lines: Sequence[Line], title: str, description: str) -> str:
    """Return the SVG of lines, in the order of their times; the description is for those who cannot see it."""
    seconds = lines[-1].at + LAST_PAUSE
    covers, scrolls = _steps(lines)
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">
<!-- SPDX-License-Identifier: GPL-3.0-or-later -->
<title>{escape(description)}</title>
<style>{_STYLE}\
  .cover {{ transform: translateY({covers[-1][1]}px) }} .lines {{ transform: translateY({scrolls[-1][1]}px) }}
  @media (prefers-reduced-motion: no-preference) {{
    .cover {{ animation: cover {seconds:.2f}s step-end infinite }}
    .lines {{ animation: scroll {seconds:.2f}s step-end infinite }}
  }}
  @keyframes cover {{ {_keyframes(covers, seconds)} }}
  @keyframes scroll {{ {_keyframes(scrolls, seconds)} }}
</style>
<clipPath id="screen"><rect y="{_BAR_HEIGHT + _DESCENT}" width="{_WIDTH}" height="{ROWS * LINE_HEIGHT}"/></clipPath>
<rect class="window" x=".5" y=".5" width="{_WIDTH - 1}" height="{_HEIGHT - 1}" rx="8"/>
<circle cx="18" cy="17" r="5" fill="#ec6a5e"/><circle cx="36" cy="17" r="5" fill="#f4bf4f"/>\
<circle cx="54" cy="17" r="5" fill="#61c554"/>
<text class="title" x="{_WIDTH // 2}" y="22" text-anchor="middle">{escape(title)}</text>
<path class="bar" d="M1 {_BAR_HEIGHT - 0.5}H{_WIDTH - 1}"/>
<g clip-path="url(#screen)"><g class="lines">
{_texts(lines)}
<rect class="cover" x="2" width="{_WIDTH - 4}" y="{_BAR_HEIGHT}" height="{len(lines) * LINE_HEIGHT + _DESCENT}"/>
</g></g>
</svg>
"""


def _steps(lines: Sequence[Line]) -> tuple[list[tuple[float, int]], list[tuple[float, int]]]:
    """Return the places of the cover and of the lines, each with the second from which it counts."""
    covers, scrolls = [(0.0, 0)], [(0.0, 0)]
    for number, line in enumerate(lines, 1):
        cover, scroll = number * LINE_HEIGHT + _DESCENT, -max(0, number - ROWS) * LINE_HEIGHT
        for steps, place in ((covers, cover), (scrolls, scroll)):
            if place != steps[-1][1]:
                if f"{line.at:.2f}" == f"{steps[-1][0]:.2f}":
                    del steps[-1]
                steps.append((line.at, place))
    return covers, scrolls


def _keyframes(steps: Sequence[tuple[float, int]], seconds: float) -> str:
    # From 0 %: otherwise, a browser begins with the place without an animation.
    return " ".join(f"{100 * at / seconds:.2f}%{{transform:translateY({place}px)}}" for at, place in steps)


def _texts(lines: Sequence[Line]) -> str:
    texts = []
    for number, line in enumerate(lines, 1):
        if line.text:
            y = _BAR_HEIGHT + number * LINE_HEIGHT
            texts.append(f'<text x="{_MARGIN}" y="{y}">{_spans(line.text)}</text>')
    return "\n".join(texts)


def _spans(text: str) -> str:
    """Return the tspans of a line. Styles hold until they are reset, as in a terminal."""
    spans, classes = [], list[str]()
    for codes, words in _STYLED.findall("\x1b[0m" + text):
        for code in codes.split(";"):
            classes = [*classes, _CLASSES[code]] if code.strip("0") else []
        if words:
            name = " ".join(classes)
            spans.append(f'<tspan class="{name}">{escape(words)}</tspan>' if name else escape(words))
    return "".join(spans)
