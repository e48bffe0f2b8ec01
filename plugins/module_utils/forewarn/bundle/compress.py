# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A compressor whose output depends on its input alone.

Not ``zlib``: what that writes differs between zlib, zlib-ng (which Fedora has in its place) and their versions. Two
control nodes that roll out the same runner in turn would replace it, and restart it, on every VM. Any inflate reads the
result: the format is RFC 1951. A call writes one block, with Huffman codes of its own, which suits files of some kB.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

_SHORTEST, _LONGEST, _WINDOW = 3, 258, 32768
_CANDIDATES = 64  # earlier places that are compared with each place: more makes less than 0.1 % of difference
_END = 256  # the symbol that ends a block; below it are the bytes themselves, above it the lengths of matches
_LONGEST_CODE, _LONGEST_CODE_OF_LENGTHS = 15, 7
# In which order a block names the lengths of the codes of lengths.
_ORDER = (16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15)

# A length or distance is a symbol for a range of them, and some further bits for the place within the range.
_Range = tuple[int, int, int]  # symbol, first of the range, number of further bits


def _ranges(symbol: int, first: int, last: int, per_bits: int) -> Iterator[_Range]:
    """Yield the ranges from ``first`` to ``last``: of each number of further bits there are ``per_bits``."""
    bits, left = 0, 2 * per_bits  # of the ranges of a single number there are twice as many
    while first <= last:
        yield symbol, first, bits
        symbol, first, left = symbol + 1, first + (1 << bits), left - 1
        if not left:
            bits, left = bits + 1, per_bits


_LENGTHS = {
    length: found
    for found in (*_ranges(257, _SHORTEST, _LONGEST - 1, 4), (285, _LONGEST, 0))
    for length in range(found[1], found[1] + (1 << found[2]))
}
_DISTANCES = tuple(_ranges(0, 1, _WINDOW, 2))


def deflate(data: bytes) -> bytes:
    """Return data compressed, as a raw stream: what ``zlib.decompress(stream, -15)`` takes."""
    matches = list(_matches(data))
    symbols = Counter({_END: 1})
    distances: Counter[int] = Counter()
    for length, value in matches:
        symbols[_LENGTHS[length][0] if length else value] += 1
        if length:
            distances[_distance(value)[0]] += 1
    symbol_lengths, distance_lengths = _code_lengths(symbols, _LONGEST_CODE), _code_lengths(distances, _LONGEST_CODE)
    bits = _Bits()
    bits.add(0b101, 3)  # the last block, and one with codes of its own
    _write_code_lengths(bits, symbol_lengths, distance_lengths)
    symbol_codes, distance_codes = _codes(symbol_lengths), _codes(distance_lengths)
    for length, value in matches:
        if not length:
            bits.add(*symbol_codes[value])
            continue
        symbol, first, more = _LENGTHS[length]
        bits.add(*symbol_codes[symbol])
        bits.add(length - first, more)
        symbol, first, more = _distance(value)
        bits.add(*distance_codes[symbol])
        bits.add(value - first, more)
    bits.add(*symbol_codes[_END])
    return bits.content()


def _distance(value: int) -> _Range:
    low, high = 0, len(_DISTANCES)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _DISTANCES[middle][1] <= value else (low, middle)
    return _DISTANCES[low]


def _matches(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield ``(0, byte)`` for a byte, ``(length, distance)`` for a repetition of what has been."""
    places: defaultdict[bytes, list[int]] = defaultdict(list)
    place, pending = 0, (0, 0)
    while place < len(data):
        match = pending if pending[0] else _longest(data, place, places)
        places[data[place : place + _SHORTEST]].append(place)
        pending = (0, 0)
        if match[0]:
            # A longer match at the next place is worth a byte by itself.
            following = _longest(data, place + 1, places)
            if following[0] > match[0]:
                match, pending = (0, 0), following
        if not match[0]:
            yield 0, data[place]
            place += 1
            continue
        yield match
        for skipped in range(place + 1, place + match[0]):
            places[data[skipped : skipped + _SHORTEST]].append(skipped)
        place += match[0]


def _longest(data: bytes, place: int, places: Mapping[bytes, list[int]]) -> tuple[int, int]:
    """Return length and distance of the longest match, the nearest of several; ``(0, 0)`` if there is none."""
    best, distance = _SHORTEST - 1, 0
    most = min(_LONGEST, len(data) - place)
    for earlier in reversed(places.get(data[place : place + _SHORTEST], [])[-_CANDIDATES:]):
        if most <= best or place - earlier > _WINDOW:
            break
        if data[earlier + best] != data[place + best]:
            continue
        length = _SHORTEST
        while length < most and data[earlier + length] == data[place + length]:
            length += 1
        if length > best:
            best, distance = length, place - earlier
    return (best, distance) if distance else (0, 0)


def _code_lengths(counts: Mapping[int, int], limit: int) -> dict[int, int]:
    """Return the lengths, up to a limit, of the shortest Huffman code for symbols that occur so often.

    Package-merge: a symbol's length is the number of times that it is among the cheapest packages. A code of one
    symbol, or of none, would be incomplete, and not every inflate takes that: it gets symbols that do not occur.
    """
    if len(counts) < 2:
        counts = {0: 1, 1: 1, **counts}
    leaves = sorted((count, (symbol,)) for symbol, count in counts.items())
    packages: list[tuple[int, tuple[int, ...]]] = list(leaves)
    for _level in range(limit - 1):
        pairs = [(one + two, these + those) for (one, these), (two, those) in zip(packages[::2], packages[1::2])]
        packages = sorted([*leaves, *pairs])
    return Counter(symbol for _count, symbols in packages[: 2 * len(leaves) - 2] for symbol in symbols)


def _codes(lengths: Mapping[int, int]) -> dict[int, tuple[int, int]]:
    """Return the code of each symbol and its length: ascending by length and symbol, its first bit the lowest."""
    codes, code, before = {}, 0, 0
    for length, symbol in sorted((length, symbol) for symbol, length in lengths.items()):
        code <<= length - before
        codes[symbol] = int(f"{code:0{length}b}"[::-1], 2), length
        code, before = code + 1, length
    return codes


def _write_code_lengths(bits: _Bits, symbols: Mapping[int, int], distances: Mapping[int, int]) -> None:
    """Write the head of a block: the lengths of both codes, in a code whose own lengths come first."""
    last_symbol, last_distance = max(symbols), max(distances)
    lengths = [symbols.get(symbol, 0) for symbol in range(last_symbol + 1)]
    lengths += [distances.get(symbol, 0) for symbol in range(last_distance + 1)]
    runs = list(_runs(lengths))
    code_lengths = _code_lengths(Counter(run[0] for run in runs), _LONGEST_CODE_OF_LENGTHS)
    named = max(_ORDER.index(symbol) for symbol in code_lengths) + 1
    bits.add(last_symbol - 256, 5)
    bits.add(last_distance, 5)
    bits.add(named - 4, 4)
    for symbol in _ORDER[:named]:
        bits.add(code_lengths.get(symbol, 0), 3)
    codes = _codes(code_lengths)
    for symbol, value, more in runs:
        bits.add(*codes[symbol])
        bits.add(value, more)


def _runs(lengths: list[int]) -> Iterator[tuple[int, int, int]]:
    """Yield symbol, value of the further bits and their number: a length, or a repetition of zeros or of the last."""
    place = 0
    while place < len(lengths):
        length, end = lengths[place], place + 1
        while end < len(lengths) and lengths[end] == length:
            end += 1
        if length:
            yield length, 0, 0
            place += 1
        while end - place >= 3:
            if length:
                times, symbol, first, more = min(end - place, 6), 16, 3, 2
            elif end - place > 10:
                times, symbol, first, more = min(end - place, 138), 18, 11, 7
            else:
                times, symbol, first, more = end - place, 17, 3, 3
            yield symbol, times - first, more
            place += times
        while place < end:
            yield length, 0, 0
            place += 1


class _Bits:
    """Bytes, filled from their lowest bit."""

    def __init__(self) -> None:
        self._whole = bytearray()
        self._rest, self._number = 0, 0

    def add(self, value: int, number: int) -> None:
        """Append the lowest bits of a value."""
        self._rest |= value << self._number
        self._number += number
        while self._number >= 8:
            self._whole.append(self._rest & 0xFF)
            self._rest >>= 8
            self._number -= 8

    def content(self) -> bytes:
        """Return all of it, the last byte filled with zeros."""
        return bytes(self._whole) + (bytes([self._rest]) if self._number else b"")
