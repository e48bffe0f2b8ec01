# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which parameters are given: where versions of policies have several defaults, events are described for each case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from .event_space.policies import Reading, read_together
from .event_space.regions import ANY
from .proof import Proof
from .smt.terms import Formula, conj, neg


class Context(NamedTuple):
    """Which parameters are given, in words and as a formula, and what expressions read then."""

    words: str
    given: Formula
    readings: Sequence[Reading]

    def joined(self, words: str) -> str:
        """Return the words for events, with those for which parameters are given."""
        return " and ".join(one for one in (self.words, words) if one not in ("", ANY)) or ANY


def contexts(proof: Proof, invariants: Sequence[Mapping[str, Any]] = ()) -> Iterator[Context]:
    """Yield which parameters are given: all of those that have several defaults, or all but one.

    ``invariants`` are further expressions to read, as ``read_together`` takes them.
    """
    given = {name: one for name, (_kind, _term, one) in proof.params.varying().items() if one is not True}
    yield Context("", conj(given.values()), read_together(proof.versions, proof.given, invariants))
    for name, one in given.items():
        readings = read_together(proof.versions, proof.given, invariants, at_default=[name])
        yield Context(f"params.{name} is not given", neg(one), readings)
