# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sets of classes as decision diagrams: millions of classes in some hundred nodes, which a page can carry and walk.

A diagram asks one dimension after another, in their order, and ends at a leaf. A reference to a leaf is its number, 0
for impossible classes; a reference to a node is ``-1 - index``. Equal parts are one node, and a dimension is left
out where all of its values lead to the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..event_space.space import Space
from ..event_space.symbol_table import Dimension

EMPTY = 0


class DecisionDiagrams:
    """Diagrams over the same dimensions. ``nodes`` are pairs of a dimension's index and a reference for each value."""

    def __init__(self, dimensions: Sequence[Dimension]) -> None:
        self.dimensions = tuple(dimensions)
        self.nodes: list[tuple[int, tuple[int, ...]]] = []
        self._known: dict[tuple[int, tuple[int, ...]], int] = {}
        self._unions: dict[tuple[int, int], int] = {}

    def build(self, space: Space, leaves: Iterable[tuple[int, int]]) -> int:
        """Return the diagram of disjoint sets of classes, given as leaf and set. Outside the slice it leads nowhere."""
        by_name = {dimension.name: dimension for dimension in space.dimensions}
        levels: list[tuple[int, list[int]]] = []  # size here, and the places of the values among all
        for dimension in self.dimensions:
            values = by_name[dimension.name].values
            levels.append((len(values), [dimension.values.index(value) for value in values]))
        return _DiagramBuilder(self, levels, space.count).build(
            0, tuple((leaf, classes) for leaf, classes in leaves if classes)
        )

    def union(self, one: int, other: int) -> int:
        """Return the union of two diagrams that have no class in common."""
        if EMPTY in (one, other):
            return one + other  # the one that is not 0
        if one > other:
            one, other = other, one
        found = self._unions.get((one, other))
        if found is None:
            found = self._unions[one, other] = self._union_of(one, other)
        return found

    def node(self, dimension: int, children: tuple[int, ...]) -> int:
        """Return the node with these children, or the child, if all are the same."""
        if all(child == children[0] for child in children):
            return children[0]
        key = dimension, children
        found = self._known.get(key)
        if found is None:
            self.nodes.append(key)
            found = self._known[key] = -len(self.nodes)
        return found

    def _union_of(self, one: int, other: int) -> int:
        # A leaf stands for all classes below, so it cannot be disjoint from anything but nowhere.
        if one >= 0 or other >= 0:
            raise ValueError("the sets have a class in common")
        first, second = self.nodes[-1 - one], self.nodes[-1 - other]
        dimension = min(first[0], second[0])
        size = len(self.dimensions[dimension].values)
        pairs = zip(
            *(node[1] if node[0] == dimension else (root,) * size for node, root in ((first, one), (second, other)))
        )
        return self.node(dimension, tuple(self.union(*pair) for pair in pairs))


class _DiagramBuilder:
    """Splits sets by one dimension after the other; the first dimension is the highest digit of a class's number."""

    def __init__(self, diagrams: DecisionDiagrams, levels: list[tuple[int, list[int]]], count: int) -> None:
        self.diagrams = diagrams
        self.levels = levels
        self.counts = [count]  # classes below each level
        for size, _places in levels:
            self.counts.append(self.counts[-1] // size)
        self.known: dict[tuple[int, tuple[tuple[int, int], ...]], int] = {}

    def build(self, level: int, sets: tuple[tuple[int, int], ...]) -> int:
        if not sets:
            return EMPTY
        if level == len(self.levels):
            return sets[0][0]
        found = self.known.get((level, sets))
        if found is None:
            found = self.known[level, sets] = self._split(level, sets)
        return found

    def _split(self, level: int, sets: tuple[tuple[int, int], ...]) -> int:
        _size, places = self.levels[level]
        width = self.counts[level + 1]
        mask = (1 << width) - 1
        children = [EMPTY] * len(self.diagrams.dimensions[level].values)
        for digit, place in enumerate(places):
            shift = width * digit
            part = tuple((leaf, below) for leaf, classes in sets if (below := classes >> shift & mask))
            children[place] = self.build(level + 1, part)
        return self.diagrams.node(level, tuple(children))
