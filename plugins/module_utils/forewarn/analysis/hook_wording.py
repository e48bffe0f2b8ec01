# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Describes the hooks of a match: what they do, how often, and when.

Hooks that are not equal have different texts, and so have lists of them: a program or a value that a page, a table or a
terminal would not show as it is, is written with escapes.
"""

from __future__ import annotations

import json
import shlex
import unicodedata

from ..policy.decision import HOOK_TIMEOUT_SECONDS, PHASES
from ..policy.hook_body import with_body_source
from ..policy.hook_program import option_source
from ..texts import escaped
from .artifacts import Json

_RETRY = (("delay_seconds", "again after"), ("max_delay_seconds", "pauses of at most"))
_IN_WORDS = {
    "run",
    "unit",
    "action",
    "http",
    "bearer",
    "credentials",
    "body",
    "kind",
    "options",
    "timeout_seconds",
    "retry",
}  # other keys are shown as JSON


def hook_text(hook: Json) -> str:
    """Describe a hook: its action, and in parentheses its options with the timeout and the retries."""
    if "run" in hook:
        what, options = " ".join(map(quoted, hook["run"])), []
    elif "unit" in hook:
        what, options = f"{quoted(hook['action'])} {quoted(hook['unit'])}", ["unit"]  # a program may be called start
    elif "kind" in hook:
        texts = [_option_text(name, hook["options"]) for name in sorted(hook["options"])]
        what, options = quoted(hook["kind"]), ["kind", *texts]
    else:
        what, options = quoted(hook["http"]), ["http"]
        options += [f"body {quoted(with_body_source(hook)['body'])}"] if "body" in hook else []
    options += [f"bearer {kind} {quoted(name)}" for kind, name in sorted(hook.get("bearer", {}).items())]
    options += [f"credential {quoted(name)}" for name in hook.get("credentials", ())]
    options.append(seconds_text(hook.get("timeout_seconds", HOOK_TIMEOUT_SECONDS)))
    options += [text] if (text := retry_text(hook)) else []
    options += [f"{quoted(key)} {quoted(json.dumps(hook[key]))}" for key in sorted(hook.keys() - _IN_WORDS)]
    return f"{what} ({', '.join(options)})"


def _option_text(name: str, options: Json) -> str:
    value = option_source(options[name])
    return f"{quoted(name)} {quoted(value if isinstance(value, str) else json.dumps(value))}"


def hook_texts(match: Json) -> dict[str, list[str]]:
    """Describe the hooks of a match by phase, and after them when they run; phases without hooks are left out."""
    found = {phase: [hook_text(hook) for hook in match.get(phase, ())] for phase in PHASES}
    if found["prepare"] and "prepare_within_seconds" in match:
        found["prepare"].append(f"from {seconds_text(match['prepare_within_seconds'])} before NotBefore")
    if found["recover"] and match.get("recover_when") == "started":
        found["recover"].append("also where the event started without preparation")
    return {phase: texts for phase, texts in found.items() if texts}


def retry_text(hook: Json) -> str:
    """Describe a hook's retries; empty if it has none."""
    retry = hook.get("retry", {})
    parts = []
    if "attempts" in retry:
        parts.append("once" if retry["attempts"] == 1 else f"at most {retry['attempts']} times")
    return ", ".join(parts + [f"{words} {seconds_text(retry[key])}" for key, words in _RETRY if key in retry])


def seconds_text(seconds: float) -> str:
    """Return ``60 s``, ``0.5 s``: exact, so that two durations never have one text."""
    return f"{int(seconds) if seconds == int(seconds) else repr(seconds)} s"


def quoted(text: str) -> str:
    """Return a text as one word of a shell's command.

    A text that a page, a table or a terminal would not show as it is has escapes, as in ``$'a\\tb'``.
    """
    if shows_as_it_is(text):
        return shlex.quote(text)
    shown = "".join(one if one.isascii() and one.isprintable() and one not in "\\' " else _escape(one) for one in text)
    return f"$'{shown}'"


def shows_as_it_is(text: str) -> bool:
    """Return whether no page, table or terminal would show another text in the same way."""
    return escaped(text) == text and "  " not in text and unicodedata.is_normalized("NFC", text)


def _escape(character: str) -> str:
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x80 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
