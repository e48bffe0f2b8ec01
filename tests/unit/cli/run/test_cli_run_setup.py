# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever a configuration file holds, it is read or refused: no value in it is a defect of forewarn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from forewarn.cli.main import _parser
from forewarn.cli.run.config import _OPTIONS, command_line, read_config
from forewarn.cli.run.setup import read
from forewarn.errors import InputError
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.sites.runner_process import compiled
from tools.suite.sizes import examples

POLICY = "name: holds\nparams: [{name: n, type: int, default: 1}]\nrule:\n  match:\n    - {output: hold}\n"

_texts = st.text() | st.sampled_from(
    ["policy.json", "127.0.0.1:1", "http://127.0.0.1", "auto", "\0", "\ud800", "é" * 300]
)
_scalars = st.none() | st.booleans() | st.integers() | st.floats() | _texts
_values = st.recursive(
    _scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_texts, inner, max_size=3), max_leaves=6
)
_of_type: dict[type, st.SearchStrategy[Any]] = {
    str: _texts,
    bool: st.booleans(),
    int: st.integers(-1, 70),
    float: st.floats(),
    list: st.lists(_texts, max_size=2),
    dict: st.dictionaries(_texts | st.just("n"), _scalars, max_size=2),
}
# More often of the right type than not.
_options = {name: st.one_of(_of_type[kinds[0]], _of_type[kinds[-1]], _values) for name, (kinds, _) in _OPTIONS.items()}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("etc")
    compiled(directory, POLICY)
    return directory


def arguments(*options: str) -> dict[str, Any]:
    command = ["run", *options]
    return dict(vars(_parser(command).parse_args(command)))


@settings(max_examples=examples(400))
@given(config=st.fixed_dictionaries({}, optional=_options), whole=st.booleans())
def test_any_configuration_is_read_or_refused(config: dict[str, Any], whole: bool, place: Path) -> None:
    file = place / "config.json"
    file.write_text(json.dumps({**config, "artifact": "policy.json"} if whole else config))
    state = place / "state"
    try:
        setup = read(arguments("--config", str(file)), {"STATE_DIRECTORY": str(state)})
    except InputError:
        setup = None
    assert not state.exists()
    if setup is not None:
        assert 1 <= setup.interval <= 60
        assert setup.config == read_config(str(file)).digest
        assert setup.options == {"config": str(file)}


def test_command_line_options_have_absolute_paths(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    assert command_line(arguments()) == {}
    given = arguments(
        "--artifact", "policy.json", "--param", "n=2", "--interval", "5s", "--state", "state", "--dry-run"
    )
    assert command_line(given) == {
        "artifact": str(place / "policy.json"),
        "param": ["n=2"],
        "interval": 5.0,
        "state": str(place / "state"),
        "dry_run": True,
    }
    given = arguments("--policy", "a.yml", "/b.yml", "--config", "c.json", "--metrics-listen", "127.0.0.1:1")
    assert command_line(given) == {
        "policy": [str(place / "a.yml"), "/b.yml"],
        "config": str(place / "c.json"),
        "metrics_listen": "127.0.0.1:1",
    }
