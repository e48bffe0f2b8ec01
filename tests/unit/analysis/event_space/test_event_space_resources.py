# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names that differ in case only, of which the classes of events know by their spellings."""

from __future__ import annotations

import pytest
from forewarn.analysis.event_space.case import other_spelling, spelling
from forewarn.analysis.event_space.resources import ResourceListed
from forewarn.analysis.event_space.symbol_table import SymbolTable
from forewarn.analysis.event_space.symbols import EVENT_TYPE, EventField
from forewarn.events import MAX_NAME_CHARACTERS


@pytest.mark.parametrize("name", ["vm_0", "VM", "É", "é_0", "straße", "a"])
def test_another_spelling(name: str) -> None:
    other = other_spelling(name, {name})
    assert other is not None
    assert other != name
    assert other.lower() == name.lower()


@pytest.mark.parametrize("name", ["7", "_", "1-2", "ß"])
def test_there_may_be_no_other_spelling(name: str) -> None:
    """The other case of ß is SS, which is another name to Azure."""
    assert other_spelling(name, {name}) is None


def test_a_spelling_that_nobody_asks_for() -> None:
    assert other_spelling("ab", {"AB", "Ab"}) == "aB"
    assert other_spelling("ab", {"AB", "Ab", "aB", "ab"}) is None


def test_how_a_vm_is_listed() -> None:
    assert spelling("vm", {}) == "vm"
    assert spelling("vm", {"VM": True}) == "VM"
    assert spelling("vm", {"VM": False, "other": True}) == "vm"
    assert spelling("vm", {"vm": False}) == "VM"
    assert spelling("7", {"7": False}) is None
    assert spelling("É", {"É": False}) == "é"


@pytest.mark.parametrize(("api_version", "most"), [("2017-03-01", 255), ("2020-07-01", 256)])
def test_what_can_be_listed(api_version: str, most: int) -> None:
    table = SymbolTable(api_version, {}, {})
    assert MAX_NAME_CHARACTERS == 256
    for name, possible in (("", False), ("a", True), ("a" * most, True), ("a" * (most + 1), False)):
        labels = {value.label for value in ResourceListed(name).values(table)}
        assert labels == ({"yes", "no"} if possible else {"no"}), len(name)


def test_a_type_is_a_text() -> None:
    table = SymbolTable("2020-07-01", {}, {})
    for field, possible in ((EVENT_TYPE, False), (EventField("Description"), True)):
        table.use(field).texts.update(("", "Freeze"))
        values = {value.concrete for value in field.values(table)}
        assert ("" in values) is possible
        assert "Freeze" in values
