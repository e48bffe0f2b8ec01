# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What expressions may read of an event, as dimensions: which parts of a form they are, and which values they have.

Filled while expressions are read, then turned into dimensions. A dimension that nothing reads does not exist, but for
EventType and EventStatus, of which the engine itself wants to know.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ...events import (
    API_VERSIONS,
    EVENT_SOURCES,
    EVENT_STATUSES,
    MAX_ID_CHARACTERS,
    MAX_NAME_CHARACTERS,
    MAX_TEXT_CHARACTERS,
    RESOURCE_TYPES,
    event_types,
    has_field,
)
from ...policy.forms import Call, Field, Form, Has, Literal, Variable
from ...policy.functions import INT_MAX, INT_MIN
from ...policy.params import convert
from ...policy.timevalues import MAX_DURATION, MAX_TIMESTAMP, MIN_DURATION, MIN_TIMESTAMP
from .concrete import other_spelling
from .domains import LONGEST, MICROSECOND, MISSING, Dimension, Value, after, intervals, show, texts

_ORDERED = ("int", "double", "duration", "timestamp")
_RANGES: Mapping[str, tuple[Any, Any]] = {
    "int": (INT_MIN, INT_MAX),
    "double": (None, None),
    "duration": (MIN_DURATION, MAX_DURATION),
    "timestamp": (MIN_TIMESTAMP, MAX_TIMESTAMP),
}
FIRST_NOW, LAST_NOW = 946_684_800 * 10**9, 4_102_444_800 * 10**9  # of the years 2000 to 2100
_VM_NAME = "vm_0"  # of a VM that no policy names
OTHER_CASE = " in another case"  # behind a name: any spelling of it that nobody asks for
_MAY_LACK = ("zone", "scale_set", "fault_domain")  # facts that not every VM has


class Leaf(NamedTuple):
    """A part of an expression that reads dimensions; ``main`` is the one that is cut by comparing it.

    ``enumerable``: each value of the dimensions stands for itself, so that any function of them is exact.
    """

    kind: str
    dims: tuple[str, ...]
    main: str
    enumerable: bool = False
    signed: bool = False  # a difference to NotBefore may be negative, a notice cannot


class _Spec:
    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.cuts: set[Any] = set()
        self.texts: set[str] = set()
        self.signed = False


class OpaqueTerm(NamedTuple):
    """An expression that is not understood: its text, how to evaluate it on a concrete event, and what it reads, such
    as ``event.NotBefore`` or ``now``.
    """

    source: str
    atom: Any
    reads: frozenset[str] = frozenset()

    def words(self, label: str) -> str:
        """Return in words which value it has."""
        if not self.atom.is_test:  # it stands for whether there is a value
            return f"({self.source}) has {'a' if label == 'true' else 'no'} value"
        return f"({self.source}) is {label}"


class SymbolTable:
    """The dimensions of a set of policies. ``params`` has the declarations of parameters that vary, by name."""

    def __init__(
        self, api_version: str, params: Mapping[str, Mapping[str, Any]], extra: Mapping[str, tuple[str, ...]]
    ) -> None:
        self.api_version = api_version
        self.params = params
        self.extra = extra
        self.specs: dict[str, _Spec] = {"event.EventType": _Spec("text"), "event.EventStatus": _Spec("text")}
        self.opaque_terms: dict[str, OpaqueTerm] = {}
        self._free_keys: dict[Any, str] = {}
        self._groups: dict[str, frozenset[str]] = {}

    # Reading

    def leaf(self, form: Form, reader: Any) -> Leaf | None:
        """Return what a form reads if it is one of the known accesses, None otherwise."""
        if isinstance(form, Variable):
            return _VARIABLES.get(form.name)
        if isinstance(form, Field) and form.record is not None:
            return self._field(form.record, form.name, form.type, reader)
        if isinstance(form, Has):
            return _has(form)
        return self._call(form, reader) if isinstance(form, Call) else None

    def _field(self, record: str, name: str, kind: str, reader: Any) -> Leaf | None:
        dimension = f"{record}.{name}"
        if record == "params":
            if name in reader.params:
                return Leaf(kind, (), "", enumerable=True)
            declaration = self.params.get(name)
            if declaration is None:
                return None
            closed = "enum" in declaration or kind == "bool"
            return Leaf("text" if kind == "string" else kind, (dimension,), dimension, closed)
        if name in ("Resources", "tags", "NotBefore"):
            return None
        if record == "event" and name == "DurationInSeconds":
            return Leaf("int", (dimension,), dimension)
        closed = name in ("EventType", "EventStatus") and not reader.invariants
        return Leaf("text", (dimension,), dimension, closed)

    def _call(self, form: Call, reader: Any) -> Leaf | None:
        name, (first, *others) = form.function, [reader.resolved(argument) for argument in form.arguments]
        second = others[0] if others else None
        if name == "size" and is_field(first, "event", "Resources"):
            return Leaf("int", ("count",), "count")
        if name == "index_map" and is_field(first, "vm", "tags") and isinstance(second, Literal):
            tag = f"tag:{second.value}"
            return Leaf("text", (tag, "vm.tags"), tag)
        if name == "in" and isinstance(first, Literal):
            element = first.value
            if is_field(second, "event", "Resources"):
                return Leaf("bool", (f"names:{element}",), f"names:{element}", enumerable=True)
            if is_field(second, "vm", "tags"):
                return Leaf("bool", (f"tag:{element}", "vm.tags"), f"tag:{element}", enumerable=True)
        if name == "diff_timestamp" and is_field(first, "event", "NotBefore") and is_variable(second, "now"):
            return Leaf("duration", ("notice",), "notice", signed=True)
        return None

    def want(self, leaf: Leaf) -> None:
        """Have the dimensions of a leaf."""
        for name in leaf.dims:
            self._spec(name)
        if leaf.signed:
            self._spec("notice").signed = True

    def cut(self, leaf: Leaf, op: str, value: Any) -> None:
        """Let the classes tell ``leaf OP value``."""
        spec = self._spec(leaf.main)
        if leaf.kind == "text":
            spec.texts.add(value)
            return
        if op not in ("le", "gt"):
            spec.cuts.add(value)
        if op not in ("lt", "ge"):
            spec.cuts.add(after(value))

    def join(self, first: Leaf, second: Leaf) -> frozenset[str] | None:
        """Let the classes tell two ordered leaves from each other; None for texts."""
        if "text" in (first.kind, second.kind):
            return None
        self.want(first)
        self.want(second)
        both = self.group(first.main) | self.group(second.main)
        self._groups.update(dict.fromkeys(both, both))
        if "notice" in both:  # past NotBefore, and once started, it is 0
            self._spec("notice").cuts |= {0, 1}
        return frozenset((*first.dims, *second.dims))

    def group(self, name: str) -> frozenset[str]:
        """Return the dimensions that a dimension is compared with, itself included."""
        return self._groups.get(name, frozenset((name,)))

    def opaque(self, key: Any, source: str, atom: Any, reads: frozenset[str]) -> str:
        """Return the dimension of an expression that is not understood."""
        if key not in self._free_keys:
            name = f"opaque:{len(self.opaque_terms) + 1}"
            self._free_keys[key] = name
            self.opaque_terms[name] = OpaqueTerm(source, atom, reads)
            self.specs[name] = _Spec("opaque")
        return self._free_keys[key]

    def _spec(self, name: str) -> _Spec:
        if name not in self.specs:
            self.specs[name] = _Spec(self._kind(name))
            if name == "place":
                self._spec("vm.name")
        return self.specs[name]

    def _kind(self, name: str) -> str:
        if name in ("place", "vm.tags") or name.startswith("names:"):
            return "flag"
        fixed = {"event.DurationInSeconds": "int", "count": "int", "notice": "duration", "age": "duration"}
        fixed["now"] = "timestamp"
        if name.startswith("params."):
            declaration = self.params[name[7:]]
            if "enum" in declaration or declaration["type"] == "bool":
                return "flag"
            return "text" if declaration["type"] == "string" else str(declaration["type"])
        return fixed.get(name, "text")

    # Dimensions

    def dimensions(self) -> tuple[Dimension, ...]:
        """Return all dimensions; the first vary slowest in the order of classes."""
        order = {name: place for place, name in enumerate(("event.EventType", "event.EventStatus"))}
        return tuple(self.dimension(name) for name in sorted(self.specs, key=lambda name: (order.get(name, 9), name)))

    def dimension(self, name: str) -> Dimension:
        """Return one dimension as far as it is known by now."""
        spec = self._spec(name)
        return Dimension(name, spec.kind, self._values(name, spec), tuple(sorted(self.group(name))))

    def _values(self, name: str, spec: _Spec) -> tuple[Value, ...]:
        record, _dot, field = name.partition(".")
        if spec.kind == "opaque":
            return (Value("true", True), Value("false", False))
        if record == "event" and not has_field(self.api_version, field):
            return (Value("missing", MISSING),)
        if record == "params":
            return self._param_values(name, spec)
        if name.startswith("names:") and not self._can_be(name, name[6:]):
            return (Value("no", False),)
        if spec.kind == "flag":
            return _flag(name)
        if spec.kind in _ORDERED:
            return self._ordered(name, spec)
        return self._texts(name, spec)

    def _texts(self, name: str, spec: _Spec) -> tuple[Value, ...]:
        extra = self.extra.get(name[6:], ())
        literals = {text for text in spec.texts if self._can_be(name, text)}
        if name in ("event.EventType", "event.EventStatus"):  # others are of claims alone, by parameters
            known = event_types(self.api_version) if name == "event.EventType" else EVENT_STATUSES
            return texts((*known, *extra), literals, None, literal=False, other=False)
        usual = {"event.EventSource": EVENT_SOURCES, "event.ResourceType": RESOURCE_TYPES}.get(name)
        if usual is not None:
            return texts(usual, literals, False, literal=False, other=False)
        if name == "event.EventId":
            return texts((), literals, None)
        if name == "vm.name":  # whether it is one of the names that Resources is asked for makes a difference
            asked = {one[6:] for one in self.specs if one.startswith("names:") and self._can_be(one, one[6:])}
            found = texts((), literals | asked, False, name=_VM_NAME)
            return (*found[:-2], *self._otherwise_spelled(asked, literals | asked), *found[-2:])
        absent_is_normal = name.startswith("tag:") or name == "event.Description" or name[3:] in _MAY_LACK
        return texts((), literals, absent_is_normal)

    def _can_be(self, name: str, text: str) -> bool:
        """Tell whether an event, or the VM, may have a text: events.py reads no other."""
        if name == "vm.name" or name.startswith("names:"):
            prefix = 1 if self.api_version == API_VERSIONS[0] else 0
            return 0 < len(text) <= MAX_NAME_CHARACTERS - prefix
        if name == "event.EventId":
            return bool(text.strip()) and len(text) <= MAX_ID_CHARACTERS
        if name in ("event.EventType", "event.EventStatus") and not text:
            return False
        return not name.startswith("event.") or len(text) <= MAX_TEXT_CHARACTERS

    def _otherwise_spelled(self, asked: set[str], taken: set[str]) -> Iterator[Value]:
        """Yield for each asked name a spelling that nobody asks for: Resources may mean such a VM by that name."""
        if "place" not in self.specs:
            return
        for name in sorted({one.lower(): one for one in sorted(asked)}.values()):
            other = other_spelling(name, taken)
            if other is not None:
                yield Value(f"{name}{OTHER_CASE}", other)

    def _ordered(self, name: str, spec: _Spec) -> tuple[Value, ...]:
        low, high, unit = {
            "event.DurationInSeconds": (-1, INT_MAX, 1),
            "count": (1, INT_MAX, 1),
            "notice": (-LONGEST if spec.signed else 0, LONGEST, MICROSECOND),
            "age": (0, LONGEST, MICROSECOND),
            "now": (FIRST_NOW, LAST_NOW, MICROSECOND),
        }[name]
        cuts = self._cuts(name)
        if name == "event.DurationInSeconds":
            cuts.add(0)  # -1 is not a valid duration (SE-19)
        values = intervals(spec.kind, cuts, low, high, len(self.group(name)), unit == 1)
        if name == "event.DurationInSeconds":
            values = tuple(value._replace(label="-1 (unknown)") if value.concrete == -1 else value for value in values)
            values += (Value("missing", MISSING, False),)
        if name == "notice":
            values += (Value("no NotBefore", MISSING, False),)  # and normal once started, see Space
        return values

    def _cuts(self, name: str) -> set[Any]:
        """Return the cuts of a dimension, with those of all that it is compared with, and their bounds."""
        cuts: set[Any] = set()
        for peer in self.group(name):
            if peer == "count":  # so that each class has room for those who must be listed, or not
                named = sum(1 for one in self.specs if one.startswith("names:"))
                cuts |= set(range(2, named + 3 if named or "place" in self.specs else 2))
            cuts |= self._spec(peer).cuts
            if peer.startswith("params."):
                cuts |= set(self.params[peer[7:]].get("cuts", ()))
                low, high = self._range(self.params[peer[7:]])
                cuts |= {bound for bound in (low,) if bound is not None}
                cuts |= {after(bound) for bound in (high,) if bound is not None}
            elif peer in ("event.DurationInSeconds", "notice", "age", "count") and peer != name:
                cuts |= {{"event.DurationInSeconds": -1, "count": 1}.get(peer, 0), 0}
        return cuts

    def _range(self, declaration: Mapping[str, Any]) -> tuple[Any, Any]:
        kind = declaration["type"]
        low, high = _RANGES[kind]
        if "min" in declaration:
            low = convert(declaration["min"], kind)
        if "max" in declaration:
            high = convert(declaration["max"], kind)
        return low, high

    def _param_values(self, name: str, spec: _Spec) -> tuple[Value, ...]:
        declaration = self.params[name[7:]]
        kind = declaration["type"]
        if "enum" in declaration:
            values = []
            for item in declaration["enum"]:
                value = convert(item, kind)
                values.append(Value(show(kind, value) if kind in _ORDERED else str(value), value))
            return tuple(values)
        if kind == "bool":
            return (Value("true", True), Value("false", False))
        if kind == "string":
            return texts((), {*spec.texts, *declaration.get("texts", ())}, None)
        low, high = self._range(declaration)
        return intervals(kind, self._cuts(name), low, high, len(self.group(name)), True)


def _has(form: Has) -> Leaf | None:
    name = form.name
    if form.record == "event":
        if name == "Resources":
            return Leaf("bool", (), "", enumerable=True)
        dimension = "notice" if name == "NotBefore" else f"event.{name}"
        return Leaf("bool", (dimension,), dimension, enumerable=True)
    if form.record == "vm":
        return Leaf("bool", (f"vm.{name}",), f"vm.{name}", enumerable=True)
    if is_field(form.operand, "vm", "tags"):
        return Leaf("bool", (f"tag:{name}", "vm.tags"), f"tag:{name}", enumerable=True)
    return None


def _flag(name: str) -> tuple[Value, ...]:
    if name == "place":
        return tuple(Value(place, place) for place in ("leader", "further down", "not listed"))
    if name == "vm.tags":
        return (Value("known", True), Value("not known", False, False))
    return (Value("yes", True), Value("no", False))


def is_variable(form: Form | None, name: str) -> bool:
    """Tell whether a form is a declared variable."""
    return isinstance(form, Variable) and form.name == name


def is_field(form: Form | None, record: str, name: str) -> bool:
    """Tell whether a form is a field of a declared variable."""
    return isinstance(form, Field) and (form.record, form.name) == (record, name)


_VARIABLES: Mapping[str, Leaf] = {
    "notice": Leaf("duration", ("notice", "event.EventStatus"), "notice"),
    "age": Leaf("duration", ("age",), "age"),
    "now": Leaf("timestamp", ("now",), "now"),
    "affects_me": Leaf("bool", ("place", "vm.name"), "place", enumerable=True),
    "leader": Leaf("bool", ("place", "vm.name"), "place", enumerable=True),
}
