# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which parameters vary, and over which values, where versions of policies declare them differently."""

from __future__ import annotations

from typing import Any

import pytest
from forewarn.analysis.event_space.param_domains import varying_params
from forewarn.errors import InputError


def policies(**entry: Any) -> list[dict[str, Any]]:
    """Return a version: one policy with one parameter."""
    return [{"name": "p", "params": [{"name": "n", "type": "int", **entry}]}]


def test_a_parameter_without_limits_has_its_default() -> None:
    assert varying_params([policies(default=3)], {}) == {}
    assert varying_params([policies(default=3), policies(default=3)], {}) == {}


def test_parameter_with_limit_or_without_default_varies() -> None:
    assert set(varying_params([policies(default=3, max=9)], {})) == {"n"}
    assert set(varying_params([policies()], {})) == {"n"}


def test_a_given_parameter_does_not_vary() -> None:
    assert varying_params([policies(default=3, max=9)], {"n": 4}) == {}


def test_two_versions_allow_what_one_of_them_does() -> None:
    settled = varying_params([policies(default=3, min=1, max=60), policies(default=3, min=2, max=61)], {})
    assert settled["n"] == {
        "name": "n",
        "type": "int",
        "default": 3,
        "min": 1,
        "max": 61,
        "cuts": [1, 2, 61, 62],
    }


def test_a_list_of_values_beside_limits() -> None:
    settled = varying_params([policies(default=30, enum=[30, 5, 90]), policies(default=30, min=10, max=60)], {})
    assert (settled["n"]["min"], settled["n"]["max"]) == (5, 90)
    settled = varying_params([policies(default=30, enum=[30, 5]), policies(default=30, enum=[5, 7])], {})
    assert settled["n"]["enum"] == [30, 5, 7]


def test_a_version_without_a_limit_has_none() -> None:
    settled = varying_params([policies(default=3, min=1, max=60), policies(default=3, min=1)], {})
    assert "max" not in settled["n"]
    assert settled["n"]["min"] == 1


def test_different_defaults_in_one_version_are_fixed() -> None:
    (one,), (other,) = policies(default=3, max=60), policies(default=4, max=61)
    assert varying_params([[one, other]], {}) == {}


def test_versions_that_differ_at_their_defaults() -> None:
    versions = [policies(default=3, max=60), policies(default=3, max=61)]
    assert varying_params(versions, {}, at_default=["n"]) == {}


def test_what_cannot_vary_needs_a_value() -> None:
    lists = [policies(type="list(int)")]
    with pytest.raises(InputError, match="parameter n has no default"):
        varying_params(lists, {})
    assert varying_params(lists, {"n": [1]}) == {}
