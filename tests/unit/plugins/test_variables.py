# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of variables: those that users may set are all known, and a slip of a finger in one of them is found."""

from __future__ import annotations

import importlib
import re
from operator import ne
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from tools.generators.misspelled import misspelled


@pytest.fixture
def variables(collections_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(collections_path))
    return importlib.import_module("ansible_collections.forewarn.azure.plugins.plugin_utils._variables")


def test_known_names_are_those_of_role_and_playbooks(variables: ModuleType, repository: Path) -> None:
    """So a playbook that reads a further variable, or keeps something under such a name, is noticed."""
    role = yaml.safe_load((repository / "roles" / "forewarn" / "meta" / "argument_specs.yml").read_text())
    options = role["argument_specs"]["main"]["options"].keys()
    texts = [path.read_text() for path in (repository / "playbooks").iterdir()]
    read = {name for text in texts for name in re.findall(r"(?<!_)\bforewarn_[a-z_]+", text)}
    assert read - options == set(variables.OF_PLAYBOOKS)
    assert variables.known() == options | set(variables.OF_PLAYBOOKS)


def differing_letters(one: str | None, other: str | None) -> int:
    return sum(map(ne, one or "", other or "")) if len(one or "") == len(other or "") else 99


def test_every_misspelling_yields_the_intended_name(variables: ModuleType) -> None:
    """A letter is dropped, doubled, added, replaced, or swapped with the next, or another case is used."""
    known = variables.known()
    tried = 0
    for name in known:
        wrong = misspelled(name) - known
        found = variables.unknown(wrong)
        assert found.keys() == wrong
        # A replaced letter may be one slip from two names: forewarn_hoots.
        assert all(meant == name or differing_letters(slip, meant) == 1 for slip, meant in found.items())
        tried += len(wrong)
    assert tried > 5000


def test_unlike_name_with_the_prefix_is_refused(variables: ModuleType) -> None:
    assert variables.unknown(["forewarn_zzzzzzzzzz"]) == {"forewarn_zzzzzzzzzz": None}
    assert variables.unknown(["forewarn_policy"])["forewarn_policy"] in variables.known()


def test_names_of_others_are_ignored(variables: ModuleType) -> None:
    others = ["forewarn", "ansible_host", "__forewarn_policies", "my_forewarn_policies", "policies", "foreman_url"]
    assert variables.unknown([*others, *variables.known()]) == {}


def test_the_collections_own_names_are_known(variables: ModuleType, repository: Path) -> None:
    """Documentation, demo and tests set only what there is."""
    places = [repository / "demo", repository / "docs", repository / "README.md", repository / "tests" / "lab"]
    files = [path for place in places for path in ([place] if place.is_file() else place.rglob("*"))]
    texts = [path.read_text() for path in files if path.suffix in (".md", ".yml", ".sh", ".py")]
    set_there = {name for text in texts for name in re.findall(r"-e '?\"?(forewarn_[a-z_]+)=", text)}
    set_there |= {name for text in texts for name in re.findall(r"^ *(?:- )?\"?(forewarn_[a-z_]+)\"?: ", text, re.M)}
    assert len(set_there) > 20
    assert set_there <= variables.known()
