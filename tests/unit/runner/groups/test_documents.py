# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The documents in a store: what is written is read, and nothing else is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from forewarn.runner.groups import barrier, documents, semaphore
from forewarn.runner.groups.barrier import Barrier, Closure, Statement
from forewarn.runner.groups.documents import SharedDocumentError
from forewarn.runner.groups.semaphore import HELD, RECOVERING, Release, Semaphore, Slot, Waiter
from hypothesis import given
from hypothesis import strategies as st

TEXTS = st.text(max_size=8)
STATEMENTS = st.builds(Statement, TEXTS, st.sampled_from(barrier.STATES), TEXTS)
BARRIERS = st.builds(
    Barrier, st.dictionaries(TEXTS, STATEMENTS, min_size=1, max_size=4), st.none() | st.builds(Closure, TEXTS, TEXTS)
)
SLOTS = st.builds(Slot, st.dictionaries(TEXTS, st.sampled_from((HELD, RECOVERING))), st.booleans(), TEXTS, TEXTS)
NUMBERS = st.none() | st.floats(allow_nan=False, allow_infinity=False)
WAITERS = st.builds(Waiter, st.lists(TEXTS, max_size=3).map(tuple), NUMBERS, TEXTS, TEXTS)
RELEASES = st.builds(Release, TEXTS, TEXTS, TEXTS, TEXTS, TEXTS)
SEMAPHORES = st.builds(
    Semaphore,
    st.dictionaries(TEXTS, SLOTS, max_size=3),
    st.dictionaries(TEXTS, WAITERS, max_size=3),
    st.lists(RELEASES, max_size=3).map(tuple),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


@given(BARRIERS)
def test_a_barrier_is_read_as_it_was_written(document: Barrier) -> None:
    assert barrier.decode(barrier.encode(document, "event")) == document


@given(SEMAPHORES)
def test_a_semaphore_is_read_as_it_was_written(document: Semaphore) -> None:
    assert semaphore.decode(semaphore.encode(document)) == document


@given(st.binary(max_size=60))
def test_bytes_are_no_document(content: bytes) -> None:
    for decoded in (barrier.decode, semaphore.decode):
        with pytest.raises(SharedDocumentError):
            decoded(content)


@given(st.sampled_from(["members", "closed", "slots", "waiting", "releases", "forewarn"]), JSON)
def test_damaged_document_is_refused_or_read(name: str, value: Any) -> None:
    whole: dict[str, Any] = {"members": {}, "closed": None, "slots": {}, "waiting": {}, "releases": []}
    for schema, decoded in ((barrier.SCHEMA, barrier.decode), (semaphore.SCHEMA, semaphore.decode)):
        data = {"forewarn": {"schema": schema, "version": 1}, **whole, name: value}
        try:
            decoded(json.dumps(data).encode())
        except SharedDocumentError as error:
            assert str(error)  # noqa: PT017 - any other error fails the test


def test_a_newer_document_is_refused() -> None:
    data = {"forewarn": {"schema": "barrier", "version": 2}, "members": {}, "closed": None}
    with pytest.raises(SharedDocumentError, match="upgrade this VM"):
        barrier.decode(json.dumps(data).encode())


@given(TEXTS, TEXTS)
def test_keys_are_safe_in_a_store(one: str, other: str) -> None:
    key = documents.barrier_key("web", one)
    assert key.startswith(documents.prefix("web"))
    assert all(character.isalnum() or character in "/._-" for character in key)
    assert (key == documents.barrier_key("web", other)) == (one == other)


@pytest.mark.parametrize(
    ("name", "good"), [("web-1", True), ("", False), ("a/b", False), ("..", False), ("a..b", False)]
)
def test_group_name_must_fit_into_a_key(name: str, good: bool) -> None:
    assert documents.is_group(name) == good
