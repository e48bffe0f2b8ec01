# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waves: a manifest says which policies are for which share of the VMs, and from when (docs/pull.md).

A VM's place among all is a hash of its name: the VMs of the first 5 % are the same in each rollout.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import InputError
from ..events import parse_time
from .artifact import LARGEST_SERIAL

FORMAT = "forewarn-waves"
MAX_BYTES = 1024 * 1024  # of an answer that a runner takes from its source
_VERSION = 1
_MOST_WAVES = 20
_FILE = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}"
_SHA256 = r"[0-9a-f]{64}"


class Wave(NamedTuple):
    """Policies for the first ``share`` percent of the VMs, above 0 to 100.

    ``file`` is the name of the artifact beside the manifest, ``sha256`` that of its bytes in hexadecimal. ``start`` is
    when the wave begins, in seconds since 1970, None for at once.
    """

    serial: int
    file: str
    sha256: str
    share: float
    start: float | None = None


class Choice(NamedTuple):
    """The wave that is for a VM now, or None; and when another one may be, in seconds since 1970."""

    wave: Wave | None
    again: float | None


def place_of(vm: str) -> float:
    """Return a VM's place among all, from 0 to below 100; letters in either case are the same."""
    number = int.from_bytes(hashlib.sha256(vm.lower().encode("utf-8", "surrogatepass")).digest()[:6], "big")
    return 100.0 * number / 2**48


def choose(waves: Sequence[Wave], vm: str | None, now: float) -> Choice:
    """Return the first wave that has begun and has the VM in its share. Without its name only all of them have it."""
    place = 100.0 if vm is None else place_of(vm)
    mine = [wave for wave in waves if place < wave.share or wave.share >= 100.0]
    chosen = next((wave for wave in mine if wave.start is None or wave.start <= now), None)
    before = mine if chosen is None else mine[: mine.index(chosen)]
    return Choice(chosen, min((wave.start for wave in before if wave.start is not None), default=None))


def is_manifest(content: bytes) -> bool:
    """Return whether a file calls itself a manifest; it may still be wrong."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.get("format") == FORMAT


def decode(content: bytes) -> list[Wave]:
    """Return the waves of a manifest, in order. Raises InputError."""
    try:
        found = json.loads(content)
        if found["format"] != FORMAT or found["version"] != _VERSION or isinstance(found["version"], bool):
            hint = "Publish it again with the forewarn that the VMs run."
            raise InputError(f"the manifest is not one of version {_VERSION}.", hint)
        waves = [_wave(entry) for entry in found["waves"]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"the manifest is damaged: {type(error).__name__}: {error}.", "Publish it again.") from error
    if not 1 <= len(waves) <= _MOST_WAVES:
        raise InputError(f"the manifest has {len(waves)} waves, and 1 to {_MOST_WAVES} are possible.")
    return waves


def previous(content: bytes) -> Wave | None:
    """Return the policies that a valid manifest remembers for those who publish: those before the latest, if any."""
    found = json.loads(content).get("previous")
    try:
        return None if found is None else _wave(found)
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"the manifest is damaged: {type(error).__name__}: {error}.", "Publish it again.") from error


def encode(waves: Sequence[Wave], before: Wave | None = None) -> bytes:
    """Return the manifest with these waves, as JSON. ``before`` is for ``previous``."""
    content: dict[str, Any] = {"format": FORMAT, "version": _VERSION, "waves": [_entry(wave) for wave in waves]}
    if before is not None:
        content["previous"] = _entry(before)
    return (json.dumps(content, indent=1, sort_keys=True) + "\n").encode("ascii")


def _entry(wave: Wave) -> dict[str, Any]:
    entry = {name: value for name, value in wave._asdict().items() if value is not None}
    return entry if wave.start is None else {**entry, "start": _iso(wave.start)}


def _iso(seconds: float) -> str:
    from datetime import datetime, timezone  # here: a VM only reads

    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _wave(entry: Mapping[str, Any]) -> Wave:
    serial, share, start = entry["serial"], entry["share"], entry.get("start")
    if isinstance(serial, bool) or not isinstance(serial, int) or not 1 <= serial <= LARGEST_SERIAL:
        raise ValueError(f"serial {serial!r}")
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share <= 100:
        raise ValueError(f"share {share!r} is not a number above 0 to 100")
    if not re.fullmatch(_FILE, entry["file"]) or not re.fullmatch(_SHA256, entry["sha256"]):
        raise ValueError(f"file {entry['file']!r}, sha256 {entry['sha256']!r}")
    at = None if start is None else parse_time(start).timestamp()
    return Wave(serial, entry["file"], entry["sha256"], float(share), at)
