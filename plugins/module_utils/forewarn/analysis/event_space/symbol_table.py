# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What expressions ask of symbols.

Filled while expressions are read, then turned into dimensions. A dimension that nothing reads does not exist, but for
EventType and EventStatus, of which the engine itself wants to know.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from .domains import after
from .leaves import Leaf
from .resources import PLACE, VM_NAME, Named
from .symbols import (
    EVENT_STATUS,
    EVENT_TYPE,
    NOTICE,
    Asked,
    Dimension,
    Opaque,
    Symbol,
)


class SymbolTable:
    """The dimensions of a set of policies. ``params`` has the declarations of parameters that vary, by name."""

    def __init__(
        self, api_version: str, params: Mapping[str, Mapping[str, Any]], extra: Mapping[str, tuple[str, ...]]
    ) -> None:
        self.api_version = api_version
        self.params = params
        self.extra = extra
        self.specs: dict[str, Asked] = {}
        self.opaque_terms: dict[str, Opaque] = {}
        self._opaque_keys: dict[Any, str] = {}
        self._groups: dict[str, frozenset[str]] = {}
        for symbol in (EVENT_TYPE, EVENT_STATUS):
            self.asked(symbol)

    # Asking

    def want(self, leaf: Leaf) -> None:
        """Have the dimensions of a leaf."""
        for symbol in leaf.symbols:
            self.asked(symbol)
        if leaf.signed:
            self.asked(NOTICE).signed = True

    def cut(self, leaf: Leaf, op: str, values: Collection[Any]) -> None:
        """Let the classes distinguish ``leaf OP value`` for each of some values."""
        self.want(leaf)
        asked = self.asked(leaf.main)
        if leaf.kind == "text":
            asked.texts.update(values)
            return
        if op not in ("le", "gt"):
            asked.cuts.update(values)
        if op not in ("lt", "ge"):
            asked.cuts.update(map(after, values))

    def join(self, first: Leaf, second: Leaf) -> frozenset[str] | None:
        """Let the classes distinguish two ordered leaves; None for texts."""
        if "text" in (first.kind, second.kind):
            return None
        self.want(first)
        self.want(second)
        both = self.group(first.main.name) | self.group(second.main.name)
        self._groups.update(dict.fromkeys(both, both))
        if NOTICE.name in both:  # past NotBefore, and once started, it is 0
            self.asked(NOTICE).cuts |= {0, 1}
        return first.dims | second.dims

    def group(self, name: str) -> frozenset[str]:
        """Return the dimensions that a dimension is compared with, itself included."""
        return self._groups.get(name, frozenset((name,)))

    def opaque(self, key: Any, source: str, atom: Any, reads: frozenset[str]) -> str:
        """Return the dimension of an expression that is not understood."""
        if key not in self._opaque_keys:
            term = Opaque(len(self.opaque_terms) + 1, source, atom, reads)
            self._opaque_keys[key] = term.name
            self.opaque_terms[term.name] = term
            self.asked(term)
        return self._opaque_keys[key]

    def asked(self, symbol: Symbol) -> Asked:
        """Return what is asked of a symbol, which has a dimension from now on."""
        if symbol.name not in self.specs:
            self.specs[symbol.name] = Asked(symbol)
            if symbol is PLACE:
                self.asked(VM_NAME)
        return self.specs[symbol.name]

    def named(self) -> list[Named]:
        """Return the names that Resources is asked for."""
        return [one.symbol for one in self.specs.values() if isinstance(one.symbol, Named)]

    def cuts_of(self, symbol: Symbol) -> set[Any]:
        """Return where the values of an ordered symbol are cut, with all that it is compared with, and their bounds."""
        found: set[Any] = set()
        for name in self.group(symbol.name):
            peer = self.specs[name]
            found |= peer.cuts | peer.symbol.cuts(self)
            if peer.symbol is not symbol:
                found |= peer.symbol.bounds
        return found

    # Dimensions

    def dimensions(self) -> tuple[Dimension, ...]:
        """Return all dimensions; the first vary slowest in the order of classes."""
        first = (EVENT_TYPE.name, EVENT_STATUS.name)
        return tuple(map(self.dimension, (*first, *sorted(self.specs.keys() - set(first)))))

    def dimension(self, name: str) -> Dimension:
        """Return one dimension as far as it is known by now."""
        asked = self.specs[name]
        return Dimension(asked.symbol, asked.symbol.values(self), tuple(sorted(self.group(name))))
