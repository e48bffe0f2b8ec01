# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What policies may read of an event (symbols), what their expressions ask of it, and the dimensions that this makes.

The table is filled while expressions are read. A dimension that nothing reads does not exist, but for EventType and
EventStatus, of which the engine itself wants to know.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from ..artifacts import Json
from .case import Case
from .domains import MISSING, ORDERED, DomainValue, after, merged_range

S = TypeVar("S", bound="Symbol")


class Symbol(abc.ABC):
    """Something that policies may read.

    ``name`` reads as in expressions (``event.EventType``, ``notice``, ``params.x``). ``kind`` is ``text``, ``flag``,
    ``opaque`` or, ordered: ``int``, ``double``, ``duration``, ``timestamp``.
    """

    kind = "text"
    bounds: frozenset[int] = frozenset()  # where the values of ordered symbols are cut that are compared with it
    joint_cuts: frozenset[int] = frozenset()  # where its own values are cut if it is compared with others
    absent = "missing"  # the word for an event, or a VM, that lacks it
    section = ""  # the part of a case that has its value; the case itself if empty
    rank = 2  # the dimensions with the lowest vary slowest in the order of classes

    def __init__(self, name: str, key: str | None = None, *, spoken: str = "", title: str = "", part: str = "") -> None:
        self.name = name
        self.key = name if key is None else key  # in its entries; a tag may have an empty name
        self.spoken = spoken or name  # its name as people say it
        self.title = title or self.spoken  # the same at the head of a list of values
        self.part = part or name  # the part of an event that it describes, maybe together with others

    def entries(self, case: Case) -> dict[str, Any]:
        """Return that of a case among which its value is."""
        found: dict[str, Any] = vars(case)[self.section] if self.section else vars(case)
        return found

    def put(self, case: Case, value: Any) -> None:
        """Let a case have a value."""
        self.entries(case)[self.key] = value

    @abc.abstractmethod
    def values(self, table: SymbolTable) -> tuple[DomainValue, ...]:
        """Return the values that tell apart what was asked of it, and of those that it is compared with."""

    def cuts(self, _table: SymbolTable) -> set[Any]:
        """Return where the values of an ordered symbol are cut whatever is asked of it."""
        return set()

    def companions(self) -> tuple[Symbol, ...]:
        """Return the symbols that have a dimension where this one has one."""
        return ()

    def phrase(self, listed: Sequence[str]) -> str:
        """Return in words that it has one of some values: their labels, or ranges of them."""
        if listed == ["missing"]:
            return f"{self.spoken} is {self.absent}"
        range_ = self.kind in ORDERED and (".." in listed[0] or " " in listed[0].removesuffix(" (unknown)"))
        return f"{self.spoken} {'=' if len(listed) == 1 and not range_ else 'in'} {', '.join(listed)}"


class SymbolUses:
    """What expressions ask of a symbol: where they cut an ordered one, and which texts they compare it with.

    ``signed``: a difference to NotBefore may be negative, a notice cannot.
    """

    def __init__(self, symbol: Symbol) -> None:
        self.symbol = symbol
        self.cuts: set[Any] = set()
        self.texts: set[str] = set()
        self.signed = False


class Leaf(NamedTuple):
    """A part of an expression that reads symbols; ``main``, the first of them, is cut by comparing it.

    ``enumerable``: each value of the symbols stands for itself, so that any function of them is exact.
    """

    kind: str
    symbols: tuple[Symbol, ...]
    enumerable: bool = False
    signed: bool = False  # a difference to NotBefore may be negative, a notice cannot

    @property
    def main(self) -> Symbol:
        """The symbol that is compared."""
        return self.symbols[0]

    @property
    def dims(self) -> frozenset[str]:
        """The names of the symbols."""
        return frozenset(symbol.name for symbol in self.symbols)


class Dimension(NamedTuple):
    """A symbol with its values; ``peers`` are the names of symbols that it is compared with, itself included."""

    symbol: Symbol
    values: tuple[DomainValue, ...]
    peers: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the symbol."""
        return self.symbol.name

    @property
    def kind(self) -> str:
        """The kind of the symbol."""
        return self.symbol.kind

    @property
    def ordered(self) -> bool:
        """Whether its values are intervals."""
        return self.kind in ORDERED

    def phrase(self, values: Sequence[DomainValue]) -> str:
        """Return in words that it has one of some of its values, which are in its order."""
        return self.symbol.phrase(_ranges(self, values) if self.ordered else [value.label for value in values])


class SymbolTable:
    """The symbols of a set of policies. ``params`` has the declarations of parameters that vary, by name.

    ``extra`` has the types and statuses that policies declare; ``uses`` is by the names of symbols.
    """

    def __init__(self, api_version: str, params: Mapping[str, Json], extra: Mapping[str, tuple[str, ...]]) -> None:
        self.api_version = api_version
        self.params = params
        self.extra = extra
        self.uses: dict[str, SymbolUses] = {}
        self.opaque: dict[Any, Symbol] = {}  # expressions that are not understood, by their keys
        self._groups: dict[str, frozenset[str]] = {}

    # Uses

    def use(self, symbol: Symbol) -> SymbolUses:
        """Return what is asked of a symbol, which has a dimension from now on."""
        if symbol.name not in self.uses:
            self.uses[symbol.name] = SymbolUses(symbol)
            for one in symbol.companions():
                self.use(one)
        return self.uses[symbol.name]

    def use_leaf(self, leaf: Leaf) -> None:
        """Have the dimensions of a leaf."""
        for symbol in leaf.symbols:
            uses = self.use(symbol)
            uses.signed = uses.signed or leaf.signed

    def use_opaque(self, key: Any, make: Callable[[int], Symbol]) -> Symbol:
        """Return the symbol of an expression that is not understood: the same for the same key.

        ``make`` is given its number, from 1.
        """
        if key not in self.opaque:
            self.opaque[key] = make(len(self.opaque) + 1)
            self.use(self.opaque[key])
        return self.opaque[key]

    def cut(self, leaf: Leaf, op: str, values: Collection[Any]) -> None:
        """Let the classes distinguish ``leaf OP value`` for each of some values."""
        self.use_leaf(leaf)
        uses = self.use(leaf.main)
        if leaf.kind == "text":
            uses.texts.update(values)
            return
        if op not in ("le", "gt"):
            uses.cuts.update(values)
        if op not in ("lt", "ge"):
            uses.cuts.update(map(after, values))

    def join(self, first: Leaf, second: Leaf) -> frozenset[str] | None:
        """Let the classes distinguish two ordered leaves; None for texts."""
        if "text" in (first.kind, second.kind):
            return None
        self.use_leaf(first)
        self.use_leaf(second)
        both = self.group(first.main.name) | self.group(second.main.name)
        self._groups.update(dict.fromkeys(both, both))
        for name in both:
            self.uses[name].cuts |= self.uses[name].symbol.joint_cuts
        return first.dims | second.dims

    def group(self, name: str) -> frozenset[str]:
        """Return the dimensions that a dimension is compared with, itself included."""
        return self._groups.get(name, frozenset((name,)))

    def symbols(self, kind: type[S]) -> list[S]:
        """Return the symbols of a class."""
        return [one.symbol for one in self.uses.values() if isinstance(one.symbol, kind)]

    def cuts_of(self, symbol: Symbol) -> set[Any]:
        """Return where the values of an ordered symbol are cut, with all that it is compared with, and their bounds."""
        found: set[Any] = set()
        for name in self.group(symbol.name):
            peer = self.uses[name]
            found |= peer.cuts | peer.symbol.cuts(self)
            if peer.symbol is not symbol:
                found |= peer.symbol.bounds
        return found

    # Dimensions

    def dimensions(self) -> tuple[Dimension, ...]:
        """Return all dimensions; the first vary slowest in the order of classes."""
        return tuple(map(self.dimension, sorted(self.uses, key=lambda name: (self.uses[name].symbol.rank, name))))

    def dimension(self, name: str) -> Dimension:
        """Return one dimension as far as it is known by now."""
        symbol = self.uses[name].symbol
        return Dimension(symbol, symbol.values(self), tuple(sorted(self.group(name))))


def case_of(values: Iterable[tuple[Dimension, DomainValue]]) -> Case:
    """Return a case in which some dimensions have these values."""
    case = Case()
    for dimension, value in values:
        dimension.symbol.put(case, value.concrete)
    return case


def _ranges(dimension: Dimension, values: Sequence[DomainValue]) -> list[str]:
    """Return ordered values as ranges, adjacent intervals as one. An interval of which not all representatives are
    meant, since something else is compared with it, is marked as a part.
    """
    texts: list[str] = []
    run: list[DomainValue] = []
    bounds: dict[tuple[Any, Any], list[DomainValue]] = {}
    for value in dimension.values:
        bounds.setdefault((value.low, value.high), []).append(value)
    for every in bounds.values():
        meant = [value for value in every if value in values]
        whole = len(meant) == len(every) and every[0].concrete is not MISSING and every[0].low != -1
        if whole:
            run.append(every[0])
            continue
        if run:
            texts.append(merged_range(dimension.kind, run))
            run = []
        if len(meant) == len(every):
            texts.append(every[0].label)
        elif meant:
            texts.append(f"a part of {merged_range(dimension.kind, every[:1])}")
    return [*texts, merged_range(dimension.kind, run)] if run else texts
