# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every call that an expression can make, over variables, and values for these from the ordinary to the extreme."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from forewarn.compiler.cel import types as t
from forewarn.compiler.cel.overloads import COMPARISONS
from forewarn.compiler.cel.types import Type
from forewarn.policy.functions import timevalues as tv
from forewarn.policy.functions.overloads import FUNCTIONS, METHODS, OPERATORS

TEXTS, INTS, TABLE = t.list_of(t.STRING), t.list_of(t.INT), t.map_of(t.STRING, t.INT)
NESTED, NESTED_TABLE = t.list_of(TEXTS), t.map_of(t.STRING, TEXTS)
DOUBLES, TABLES = t.list_of(t.DOUBLE), t.list_of(TABLE)
_BY_KIND = {
    type_.kind: type_
    for type_ in (t.BOOL, t.INT, t.UINT, t.DOUBLE, t.STRING, t.BYTES, t.TIMESTAMP, t.DURATION, TEXTS, TABLE)
}
_COMPARED = (*_BY_KIND.values(), INTS, NESTED, NESTED_TABLE, DOUBLES, TABLES)


class Call(NamedTuple):
    """An expression over the variables ``x0``, ``x1``, … of the types."""

    source: str
    types: tuple[Type, ...]

    @property
    def variables(self) -> Mapping[str, Type]:
        """The variables with their types."""
        return {f"x{number}": type_ for number, type_ in enumerate(self.types)}


# What cel-expr-python has no extension for: tests/unit/compiler/cel/test_cel_lists.py judges these.
_ONLY_HERE = re.compile(
    r"sets\.|lists\.|\.(distinct|slice|sort|min|max|flatten|sortBy|transform\w+|existsOne)\(|\(k, v,"
)


def calls() -> Iterator[Call]:
    """Yield every overload of every function and operator, and each macro over each kind of container, if
    cel-expr-python has them.
    """
    for call in (*overload_calls(), *_containers(), *_dynamic(), *_optional()):
        reversed_list = ".reverse(" in call.source and call.types[0].kind == "list"
        if not _ONLY_HERE.search(call.source) and not reversed_list:
            yield call


def overload_calls() -> Iterator[Call]:
    """Yield every overload of every function and operator."""
    for name, overloads in METHODS.items():
        for overload in overloads:
            rest = ", ".join(f"x{number}" for number in range(1, len(overload.kinds)))
            yield Call(f"x0.{name}({rest})", _types(overload.kinds))
    for table in (FUNCTIONS, OPERATORS):
        for name, overloads in table.items():
            for overload in overloads:
                yield Call(written(name, len(overload.kinds)), _types(overload.kinds))
    for symbol in COMPARISONS:
        for type_ in _COMPARED:
            if symbol in ("==", "!=") or type_.kind in t.ORDERED:
                yield Call(f"x0 {symbol} x1", (type_, type_))


def _types(kinds: Sequence[str]) -> tuple[Type, ...]:
    return tuple(_BY_KIND[kind] for kind in kinds)


def written(name: str, arguments: int) -> str:
    """Return the call of a function or operator, over ``x0``, ``x1``, …"""
    if (name.isidentifier() and name != "negate") or "." in name:
        return f"{name}({', '.join(f'x{number}' for number in range(arguments))})"
    symbol = "-" if name == "negate" else name
    return f"x0 {symbol} x1" if arguments == 2 else f"{symbol}x0"


def _containers() -> Iterator[Call]:
    keyed = [(key, t.map_of(key, t.STRING)) for key in (t.BOOL, t.INT, t.UINT, t.STRING)]
    for container in (TEXTS, INTS, NESTED, DOUBLES, TABLES, NESTED_TABLE, *(table for _key, table in keyed)):
        element = container.of[0]
        yield Call("x0 in x1", (element, container))
        yield Call("size(x0)", (container,))
        yield Call("x0 == (x1 ? x0 : x2)", (container, t.BOOL, container))
        yield Call("x0[x1]", (container, t.INT if container.kind == "list" else element))
        for macro in ("all", "exists", "exists_one", "filter"):
            yield Call(f"x0.{macro}(e, e == x1)", (container, element))
            yield Call(f"x0.{macro}(e, e in [x1, x2])", (container, element, element))
        yield Call("x0.map(e, [e, x1])", (container, element))
        yield Call("x0.map(e, e != x1, size([e]))", (container, element))
        if container.kind == "list":
            yield Call("x0 + x1", (container, container))
            yield Call("x0 in [] || [] in [x0]", (container,))
            yield Call("x0 + [] == [] + x0 && [] != [x0]", (container,))
            yield Call("[x0].exists(e, x1 in e)", (container, element))
        else:
            yield Call("{x0: x1, x2: x1}", (element, container.of[1], element))
            yield Call("{x0: x1}[x2]", (element, container.of[1], element))
            yield Call("x0 in [] || {} in [x0] || x0 == {}", (container,))
    yield Call("x0.role", (TABLE,))
    yield Call("has(x0.role)", (TABLE,))
    yield Call("x0.join()", (TEXTS,))
    yield Call("x0.join(x1)", (TEXTS, t.STRING))
    yield Call("x0 ? x1 : x2", (t.BOOL, NESTED, NESTED))
    yield Call("x0 && x1 || !x2", (t.BOOL, t.BOOL, t.BOOL))
    yield Call("1 / x0 == x1 || x2", (t.INT, t.INT, t.BOOL))
    yield Call("1 / x0 == x1 && x2", (t.INT, t.INT, t.BOOL))
    yield Call("null == null && x0 == null || x0 == null", (t.NULL,))
    for pattern in ("^web", "_[0-9]+$", "a|b", "[^a]", "^$", "(?i)web", ".", "é", "^.{2}$", "x*", r"\bb\b", r"\d+"):
        yield Call(f"x0.matches(r'{pattern}')", (t.STRING,))


def _dynamic() -> Iterator[Call]:
    """Yield calls of values whose types are known only at run time, among them values of the wrong type."""
    scalars = (t.BOOL, t.INT, t.UINT, t.DOUBLE, t.STRING, t.BYTES, t.TIMESTAMP, t.DURATION, t.NULL)
    for one in (*scalars, TEXTS, TABLE):
        yield Call("type(x0) == type(dyn(x0))", (one,))
        yield Call("string(type(x0) == string) + 'x'", (one,))
        yield Call("size(dyn(x0)) == 1", (one,))
        yield Call("dyn(x0) ? 1 : 2", (one,))
        yield Call("dyn(x0) && true || false", (one,))
        if one != t.BOOL:  # cel-cpp alone converts it
            yield Call("int(dyn(x0)) + 1", (one,))
        yield Call("[x0, 'a', 1].exists(e, e == x0)", (one,))
        yield Call("dyn(x0).exists(e, e == 'a')", (one,))
        yield Call("dyn(x0)[0] == 'a'", (one,))
        yield Call("dyn(x0).a == 1", (one,))
        yield Call("has(dyn(x0).a)", (one,))
        for other in scalars:
            for symbol in COMPARISONS:
                yield Call(f"dyn(x0) {symbol} x1", (one, other))
            yield Call("x0 in dyn(x1)", (one, other))
            yield Call("dyn(x0) in [x1]", (one, other))
            yield Call("dyn(x0) + x1 == x1", (one, other))
            yield Call("dyn(x0) - x1 == x1", (one, other))
            yield Call("dyn(x0) * x1 == x1", (one, other))
            yield Call("{x0: 1, 'a': 2}[dyn(x1)]" if one.kind in t.KEYS else "[x0, x1] == [x1, x0]", (one, other))
    for name, overloads in (*METHODS.items(), *FUNCTIONS.items()):
        for overload in overloads:
            rest = ", ".join(f"x{number}" for number in range(1, len(overload.kinds)))
            method = name in METHODS and overload in METHODS[name]
            call = f"dyn(x0).{name}({rest})" if method else f"{name}({', '.join(('dyn(x0)', *filter(None, [rest])))})"
            yield Call(call if "E" not in overload.result else f"{call} == x0", _types(overload.kinds))
    for clause in ("%s", "%d", "%f", "%.2f", "%e", "%.0e", "%b", "%o", "%x", "%X"):
        for one in scalars:
            yield Call(f"'a{clause}%%b'.format([x0])", (one,))
        yield Call(f"'{clause}'.format([dyn(x0)])", (t.INT,))
    yield Call("'%s'.format([x0])", (INTS,))
    yield Call("'%s'.format([x0])", (NESTED_TABLE,))
    yield Call("'%s %s'.format(x0)", (TEXTS,))
    yield Call("x0.format([x1])", (t.STRING, t.INT))
    yield Call("math.greatest(x0, x1)", (t.INT, t.INT))
    yield Call("math.least(x0, x1, x2)", (t.DOUBLE, t.DOUBLE, t.DOUBLE))
    yield Call("math.greatest(x0)", (INTS,))
    yield Call("math.least(x0)", (DOUBLES,))
    yield Call("math.greatest(x0, x1, x2) == x1", (t.INT, t.DOUBLE, t.UINT))


def _optional() -> Iterator[Call]:
    """Yield what can be asked of optional values, and cel.bind()."""
    yield Call("x0.?a.hasValue()", (TABLE,))
    yield Call("x0.?a.orValue(x1)", (TABLE, t.INT))
    yield Call("x0.?a.or(x1.?b).value()", (TABLE, TABLE))
    yield Call("x0[?x1].orValue(x2)", (TABLE, t.STRING, t.INT))
    yield Call("x0[?x1].orValue(x2)", (TEXTS, t.INT, t.STRING))
    yield Call("x0.?a[?x1].orValue(x2)", (NESTED_TABLE, t.INT, t.STRING))
    yield Call("x0.?a[?x1].hasValue()", (NESTED_TABLE, t.INT))
    yield Call("{'b': x0}.?b[x1].orValue(x2)", (TABLE, t.STRING, t.INT))
    yield Call("x0.?a.optMap(v, v / x1).orValue(7)", (TABLE, t.INT))
    yield Call("x0.?a.optMap(v, v / x1).hasValue()", (TABLE, t.INT))
    yield Call("x0.?a.optFlatMap(v, x1[?v]).orValue('none')", (TABLE, TEXTS))
    yield Call("optional.of(1 / x0).hasValue()", (t.INT,))
    yield Call("optional.none().orValue(x0)", (t.INT,))
    yield Call("optional.of(x0) == optional.of(x1)", (t.STRING, t.STRING))
    yield Call("(x0 ? x1.?a : optional.none()).orValue(3)", (t.BOOL, TABLE))
    yield Call("[x0.?a, optional.of(1)].exists(o, o.hasValue() && o.value() == 1)", (TABLE,))
    yield Call("[?x0.?a, x1]", (TABLE, t.INT))
    yield Call("[x0.?a][0].orValue(x1)", (TABLE, t.INT))
    for type_ in (t.INT, t.STRING, t.BOOL, t.DOUBLE, TEXTS, TABLE, t.DURATION):
        yield Call("optional.ofNonZeroValue(x0).hasValue()", (type_,))
    yield Call("cel.bind(v, x0 / x1, v == v || x2)", (t.INT, t.INT, t.BOOL))
    yield Call("cel.bind(v, x0 / x1, x2 || v > 0)", (t.INT, t.INT, t.BOOL))
    yield Call("x0.map(e, cel.bind(v, e + x1, v * v))", (INTS, t.INT))
    yield Call("cel.bind(v, x0, cel.bind(w, v + '!', w + v))", (t.STRING,))


_INTS = (0, 1, -1, 2, -2, 3, 7, -7, 10, 59, 60, 2**31, -(2**31), 2**53 + 1, 2**62, 2**63 - 1, -(2**63), -(2**63) + 1,
         3037000499, 3037000500, -62135596800, 253402300799, 253402300800)  # fmt: skip
_DOUBLES = (0.0, -0.0, 1.0, -1.0, 0.5, -1.5, 2.5, 1e308, -1e308, 5e-324, float("inf"), float("-inf"), float("nan"),
            2.0**53, 2.0**63, -(2.0**63), 2.0**64, 9223372036854774784.0, 18446744073709549568.0)  # fmt: skip
ZONES = ("UTC", "GMT", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Etc/GMT+5",
         "+02:00", "-08:30", "05:45", "-00:00", "+14:00", "", "Nowhere/Land", "europe/berlin", "Europe", "+25:00",
         "+24:00", "-24:00", "2:00", "+2", "Z", "utc", "Local", "é", " UTC", "../UTC", "+02:00 ",
         "No\nZone")  # fmt: skip
_WORDS = ("", "a", "b", "ab", "aba", "web_0", "WEB_1", "role", "é", "e\u0301", "日本", "\U0001f600", "a,b,c", " x ",
          "ß", "\x00", "\u2028", "a\nb", "İ", "A" * 300, *ZONES)  # fmt: skip
_READABLE = ("0", "-7", "+5", "007", "1.5", ".5", "5.", "1e3", "9223372036854775807", "9223372036854775808",
             "18446744073709551615", "NaN", "-Infinity", "0x10", "true", "TRUE", "t", "f", "1", "yes", "9s", "1h30m",
             "-1.5s", "1d", "5 minutes", "300", "2562047h", "3000000h", "2026-01-31T12:00:00Z", "2026-02-30T00:00:00Z",
             "2026-01-31T12:00:00.123456789+05:30", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z",
             "2026-01-31")  # fmt: skip
_SPANS = (0, 1, 9, 30, 300, 900, 3600, 5400, 86400, 86400 * 366, 9223372035)
_MOMENTS = (0, 1, 1_769_860_800, 1_782_900_000, 1_774_747_800, 1_793_000_000, 951_782_400, -1, -86400 * 365,
            -62_135_596_800, 253_402_300_799)  # fmt: skip


def sample(random: Random, type_: Type, extreme: bool = True) -> Any:
    """Return a value of a type. Times are whole microseconds, since other engines are given no finer ones.

    Without ``extreme`` there is nothing that cel-expr-python's conversion from Python changes: it cuts texts off at a
    NUL, rounds fractions of times far away, and takes the first and last second of the calendar for infinite.
    """
    if type_.kind == "list":
        return [sample(random, type_.of[0], extreme) for _ in range(random.choice((0, 0, 1, 1, 2, 3)))]
    if type_.kind == "map":
        key, value = type_.of
        pairs = range(random.choice((0, 0, 1, 1, 2)))
        return {sample(random, key, extreme): sample(random, value, extreme) for _ in pairs}
    value = _SCALARS[type_.kind](random)
    if extreme:
        return value
    if type_.kind == "timestamp":
        value = min(max(value, _FIRST), _LAST)
        return value // tv.SECOND * tv.SECOND + random.choice((0, 0, 500_000_000))
    return (
        value.replace(*(("\x00", "") if isinstance(value, str) else (b"\x00", b""))) if type_.kind in _NULS else value
    )


_NULS = ("string", "bytes")
_FIRST, _LAST = tv.MIN_TIMESTAMP + tv.SECOND, tv.MAX_TIMESTAMP - tv.SECOND


def _int(random: Random) -> int:
    choice = random.random()
    if choice < 0.4:
        return random.choice(_INTS)
    return random.randint(-2, 7) if choice < 0.8 else random.getrandbits(64) - 2**63


def _string(random: Random) -> str:
    choice = random.random()
    if choice < 0.25:
        return random.choice(_READABLE)
    if choice < 0.6:
        return random.choice(_WORDS)
    return "".join(random.choice("aabbA,._ \té日\U0001f600") for _ in range(random.choice((0, 1, 1, 2, 3, 8))))


def _timestamp(random: Random) -> int:
    seconds = random.choice(_MOMENTS) if random.random() < 0.5 else random.randint(-62_135_596_800, 253_402_300_799)
    return seconds * tv.SECOND + random.choice((0, 0, 1_000, 500_000_000, 999_999_000))


def _duration(random: Random) -> int:
    seconds = random.choice(_SPANS) if random.random() < 0.7 else random.randint(0, 9_223_372_035)
    return random.choice((1, -1)) * (seconds * tv.SECOND + random.choice((0, 0, 1_000, 500_000_000)))


_SCALARS: Mapping[str, Callable[[Random], Any]] = {
    "bool": lambda random: random.random() < 0.5,
    "int": _int,
    "uint": lambda random: abs(_int(random)) * random.choice((1, 1, 2)) % 2**64,
    "double": lambda random: random.choice(_DOUBLES) if random.random() < 0.6 else random.uniform(-100, 100),
    "string": _string,
    "bytes": lambda random: random.choice((b"", b"a", b"ab", b"\xff", "é".encode(), b"\xed\xa0\x80", b"\x00")),
    "null": lambda _random: None,
    "timestamp": _timestamp,
    "duration": _duration,
}


class Composer:
    """Writes expressions by putting calls into the places of other calls' variables."""

    def __init__(self, results: Mapping[Call, Type]) -> None:
        self._results = results
        self._by_type: dict[str, list[Call]] = {}
        for call, type_ in results.items():
            self._by_type.setdefault(str(type_), []).append(call)

    def compose(self, random: Random, depth: int) -> Call:
        """Return a call of calls, at most ``depth`` of them within each other."""
        types: list[Type] = []
        source = self._write(random, random.choice(list(self._results)), depth, types)
        return Call(source, tuple(types))

    def _write(self, random: Random, call: Call, depth: int, types: list[Type]) -> str:
        parts: dict[str, str] = {}
        for name, type_ in call.variables.items():
            inner = self._by_type.get(str(type_), [])
            if depth > 1 and inner and random.random() < 0.6:
                parts[name] = f"({self._write(random, random.choice(inner), depth - 1, types)})"
            elif type_ in types and random.random() < 0.3:
                parts[name] = f"x{types.index(type_)}"  # one value in two places
            else:
                parts[name] = f"x{len(types)}"
                types.append(type_)
        return re.sub(r"\bx[0-9]+\b", lambda found: parts[found[0]], call.source)
