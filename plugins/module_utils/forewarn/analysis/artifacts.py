# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What artifacts declare, several of them together, and what their expressions are made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Mapping, NamedTuple

from ..policy.artifact import Artifact
from ..policy.forms import Access, Field, Form
from ..policy.params import check_names

Json = Mapping[str, Any]  # an object of JSON: an entry of an artifact, values of parameters, an event


class ParamDeclaration(NamedTuple):
    """The declaration of a parameter by a policy of one of several versions; ``entry`` is that of the artifact."""

    version: int
    policy: str
    entry: Json


def extra_values(policies: Iterable[Json]) -> dict[str, tuple[str, ...]]:
    """Return the types and statuses that policies declare beside the documented ones, by their field."""
    found: dict[str, tuple[str, ...]] = {}
    for data in policies:
        for field, texts in data.get("extra_values", {}).items():
            found[field] = tuple(dict.fromkeys((*found.get(field, ()), *texts)))
    return found


def declared_params(versions: Sequence[Sequence[Json]], given: Json) -> dict[str, list[ParamDeclaration]]:
    """Return the declarations of parameters by their names, in order. Each version is a list of policies.

    Raises InputError if a parameter is ``given`` that no policy declares.
    """
    found: dict[str, list[ParamDeclaration]] = {}
    for version, policies in enumerate(versions):
        for data in policies:
            for entry in data["params"]:
                found.setdefault(entry["name"], []).append(ParamDeclaration(version, data["name"], entry))
    check_names(given, (one.entry for declarations in found.values() for one in declarations))
    return dict(sorted(found.items()))


def every_part(form: Form) -> Iterator[Form]:
    """Yield a form and all forms in it, outer ones first.

    What a variable of the policy stands for is not in it, nor is the record whose field it reads.
    """
    yield form
    if not isinstance(form, Access) or form.record is None:
        for part in form.parts:
            yield from every_part(part)


def params_read(form: Form) -> set[str]:
    """Return the names of the parameters that a form reads."""
    return {one.name for one in every_part(form) if isinstance(one, Field) and one.record == "params"}


def without_invariants(artifact: Artifact, policies: Iterable[Json]) -> Artifact:
    """Return an artifact with some of its policies, without their invariants."""
    chosen = [{**data, "invariants": []} for data in policies]
    return Artifact({**artifact.data, "policies": chosen}, "", artifact.api_version)
