# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every HTML page of Forewarn has: one design, and texts that stay texts.

A page is self-contained: its Content-Security-Policy admits only its style sheet and its script, by their hashes.
Templates escape every text, and write characters that would hide or reverse text as escapes. The same values give the
same bytes.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..texts import escaped

_HERE = Path(__file__).parent


def render(template: Path, scripts: Sequence[Path] = (), **values: Any) -> str:
    """Return a page: a template that extends ``base.html.j2``, and ``scripts`` as one script, in their order.

    Templates import others of their directory. A name without a value raises jinja2.UndefinedError.
    """
    from markupsafe import Markup  # here: on a VM there is none

    style = _text(_HERE / "style.css")
    script = '(() => {\n"use strict";\n' + "".join(map(_text, scripts)) + "})();\n" if scripts else ""
    csp = ["default-src 'none'", f"style-src {_hash(style)}", "base-uri 'none'", "form-action 'none'"]
    if script:
        csp.append(f"script-src {_hash(script)}")
    own = {"csp": Markup("; ".join(csp)), "style": Markup(style), "script": Markup(script)}  # noqa: S704 - ours
    return str(_environment(template.parent).get_template(template.name).render(**own, **values))


@lru_cache(maxsize=None)
def _environment(directory: Path) -> Any:
    """Return what renders the templates of a directory. It compiles each of them once."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # here: on a VM there is none
    from markupsafe import escape

    environment = Environment(
        loader=FileSystemLoader([directory, _HERE]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: value if hasattr(value, "__html__") else printable(value),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["lines"] = lambda value: escape(printable(value, newline="\n"))
    environment.filters["counted"] = counted
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    return environment


def counted(number: int, noun: str) -> str:
    """Return ``1 host`` or ``2 hosts``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def printable(value: object, newline: str = " ") -> str:
    """Return anything as a text that shows each of its characters (``texts``); line breaks become ``newline``."""
    return escaped(str(value).replace("\n", newline), keep=newline)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
