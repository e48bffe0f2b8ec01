# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hooks that are not equal have different texts, also as a page or a terminal shows them, and so have lists of them."""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from forewarn import hook_kinds
from forewarn.analysis.diff.behaviour import behaviour, hook_of, list_text
from forewarn.analysis.hook_wording import hook_text, hook_texts, quoted, seconds_text
from forewarn.cli.output.console import one_line
from forewarn.compiler.yaml.schema import load
from forewarn.policy.decision import HTTP_TEMPLATES
from forewarn.policy.structure import MAX_ATTEMPTS
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.suite.sizes import examples

# Few characters, so that random texts meet: those that shells and this text use, spaces, and two ways to write é.
CHARACTERS = st.sampled_from(
    [*"ab -'\"\\$(),+[]1x/", "\n", "\t", "\x00", "\xa0", "\u200b", "\u202e", "e", "\u0301", "\u00e9", "😀"]
)
TEXTS = st.text(CHARACTERS, max_size=4)
WORDS = st.one_of(TEXTS, st.sampled_from(["start", "unit", "http", "once", "bearer", "60 s", "nothing", "a.service"]))
SECONDS = st.one_of(
    st.sampled_from([0.1, 0.3, 0.1 + 0.2, 1, 60, 60.0, 60.000000000000007, 1e16, 1e16 + 2, 10**20]),
    st.floats(min_value=0.001, max_value=1e6),
)
RETRIES = st.fixed_dictionaries(
    {},
    optional={
        "attempts": st.integers(1, MAX_ATTEMPTS),
        "delay_seconds": SECONDS,
        "max_delay_seconds": SECONDS,
    },
).filter(bool)
BEARERS = st.one_of(st.fixed_dictionaries({"credential": WORDS}), st.fixed_dictionaries({"file": WORDS}))
OPTIONS = {"timeout_seconds": SECONDS, "retry": RETRIES}
# An expression is known by its source: the same one may stand elsewhere in another version of a file.
BODIES = st.builds(
    lambda source, line: {"source": source, "line": line, "column": 9, "form": ["lit", "string", 0, 0, source]},
    st.one_of(WORDS, st.sampled_from(['{"text": "a"}', "{'text': 'a'}"])),
    st.integers(1, 2),
)
KINDS = [
    st.fixed_dictionaries(
        {"run": st.lists(WORDS, min_size=1, max_size=4)},
        optional={"credentials": st.lists(WORDS, min_size=1, max_size=2), **OPTIONS},
    ),
    st.fixed_dictionaries({"unit": WORDS, "action": st.sampled_from(["start", "stop"])}, optional=OPTIONS),
    st.fixed_dictionaries(
        {"http": WORDS}, optional={"bearer": BEARERS, "template": st.sampled_from(HTTP_TEMPLATES), **OPTIONS}
    ),
    st.fixed_dictionaries({"http": WORDS, "body": BODIES}, optional={"bearer": BEARERS, **OPTIONS}),
    st.fixed_dictionaries(
        {
            "kind": WORDS,
            "options": st.fixed_dictionaries(
                {},
                optional={
                    "server": WORDS,
                    "file": WORDS,
                    "wait": st.booleans(),
                    "seconds": SECONDS,
                    "command": st.lists(WORDS, max_size=3),
                },
            ),
        },
        optional=OPTIONS,
    ),
]
HOOKS: st.SearchStrategy[dict[str, Any]] = st.one_of(KINDS)
LISTS = st.lists(HOOKS, max_size=3)


def shown(text: str) -> str:
    """Return what people see of a text: in a terminal, and in a page or table, which join spaces."""
    return unicodedata.normalize("NFC", " ".join(one_line(text).split()))


def meant(hook: dict[str, Any]) -> dict[str, Any]:
    body = {"body": hook["body"]["source"]} if "body" in hook else {}
    return {"timeout_seconds": 60.0, **hook, **body}


def whole(hooks: Iterable[dict[str, Any]]) -> str:
    return list_text([hook_of(hook) for hook in hooks])


def test_generated_hooks_have_every_schema_option() -> None:
    hook = load("policy.schema.json")["$defs"]["hook"]["properties"]
    assert set(hook) == {
        "run",
        "unit",
        "action",
        "http",
        "bearer",
        "credentials",
        "timeout",
        "retry",
        "template",
        "body",
        *hook_kinds.NAMES,
    }
    assert set(hook["retry"]["properties"]) == {"attempts", "delay", "max_delay"}
    assert set(hook["bearer"]["properties"]) == {"credential", "file"}


@settings(max_examples=examples(250))
@given(LISTS, LISTS)
def test_hook_lists_have_equal_texts_only_if_equal(one: list[Any], other: list[Any]) -> None:
    same = [meant(hook) for hook in one] == [meant(hook) for hook in other]
    assert (shown(whole(one)) == shown(whole(other))) == same
    assert (tuple(map(hook_of, one)) == tuple(map(hook_of, other))) == same


@settings(max_examples=examples(250))
@given(HOOKS, st.data())
def test_hook_with_a_changed_part_has_another_text(hook: dict[str, Any], data: st.DataObject) -> None:
    kind = st.one_of(
        [one for one, name in zip(KINDS, ("run", "unit", "http", "http", "kind"), strict=True) if name in hook]
    )
    other = data.draw(kind)
    key = data.draw(st.sampled_from(sorted({*hook, *other})))
    changed = {name: value for name, value in {**hook, key: other.get(key)}.items() if value is not None}
    assert (shown(hook_text(hook)) == shown(hook_text(changed))) == (meant(hook) == meant(changed))


def every_command() -> Iterator[list[str]]:
    """Yield every command of one or two words of at most two of some awkward characters."""
    characters = ["a", " ", "'", '"', "(", ",", "\\", "\n", "$"]
    words = ["", *characters, *map("".join, itertools.product(characters, repeat=2))]
    yield from ([one] for one in words)
    yield from map(list, itertools.product(words, repeat=2))


def test_short_commands_have_distinct_texts() -> None:
    commands = list(every_command())
    texts = {shown(hook_text({"run": command})) for command in commands}
    assert len(texts) == len(commands) == 8372


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"run": ["a", "--fast --now"]}, {"run": ["a", "--fast", "--now"]}),
        ({"run": ["a"]}, {"run": ["a", ""]}),
        ({"run": ["a", "b  c"]}, {"run": ["a", "b c"]}),
        ({"run": ["a", "b\nc"]}, {"run": ["a", "b\\nc"]}),
        ({"run": ["a", "b\nc"]}, {"run": ["a", "$'b\\nc'"]}),
        ({"run": ["\u00e9"]}, {"run": ["e\u0301"]}),
        ({"run": ["start", "a.service"]}, {"unit": "a.service", "action": "start"}),
        ({"run": ["https://a/b"]}, {"http": "https://a/b"}),
        ({"http": "https://a/b"}, {"http": "https://a/b", "bearer": {"credential": "x"}}),
        ({"http": "https://a", "bearer": {"credential": "x"}}, {"http": "https://a", "bearer": {"credential": "y"}}),
        ({"http": "https://a", "bearer": {"credential": "x"}}, {"http": "https://a", "bearer": {"file": "x"}}),
        ({"run": ["a"], "retry": {"attempts": 1}}, {"run": ["a"], "retry": {"attempts": 1, "delay_seconds": 2}}),
        ({"run": ["a"], "timeout_seconds": 0.3}, {"run": ["a"], "timeout_seconds": 0.1 + 0.2}),
        ({"run": ["a"]}, {"run": ["a"], "option of tomorrow": True}),
    ],
)
def test_hooks_that_could_be_confused(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert shown(hook_text(old)) != shown(hook_text(new))
    assert hook_of(old) != hook_of(new)


def test_a_hook_is_still_easy_to_read() -> None:
    assert hook_text({"run": ["/bin/drain", "--wait"], "timeout_seconds": 300.0}) == "/bin/drain --wait (300 s)"
    assert hook_text({"unit": "web.service", "action": "stop"}) == "stop web.service (unit, 60 s)"
    http = {"http": "https://a.example/b", "bearer": {"credential": "token"}, "retry": {"attempts": 5}}
    assert hook_text(http) == "https://a.example/b (http, bearer credential token, 60 s, at most 5 times)"
    assert quoted("a\tb") == "$'a\\x09b'"
    assert [seconds_text(one) for one in (60.0, 1.5, 1e20)] == ["60 s", "1.5 s", "100000000000000000000 s"]
    match = {"prepare": [{"run": ["/bin/a"]}], "prepare_within_seconds": 900.0}
    assert hook_texts(match) == {"prepare": ["/bin/a (60 s)", "from 900 s before NotBefore"]}


def test_no_hooks_are_nothing() -> None:
    assert list_text(behaviour([]).hooks) == "nothing" != whole([{"run": ["nothing"]}])
