# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Publishes signed policies for runners that pull them: artifacts, and the manifest that gives them to waves of VMs.

A file that VMs may read is never changed, except for the manifest: that is replaced last, and at once.
"""

from __future__ import annotations

import hashlib
from pathlib import PurePosixPath
from typing import NamedTuple, Protocol

from ..errors import InputError
from ..policy import waves
from ..policy.artifact import Artifact, load, with_serial
from ..policy.signature import SUFFIX, Signers
from ..policy.waves import Wave
from . import signing

ALL = 100.0  # percent


class Destination(Protocol):
    """Where files are published. ``name`` is that of the manifest, ``where`` what people call it."""

    name: str
    where: str

    def read(self, name: str) -> bytes | None:
        """Return a file, None if there is none. Raises InputError or ServiceError."""

    def write(self, name: str, content: bytes) -> None:
        """Write a file, at once and whole. Raises InputError or ServiceError.

        It is an InputError, too, if somebody else has changed a file since it was read here.
        """


class Publication(NamedTuple):
    """What is published: the waves in order, and the policies before the latest that all VMs had."""

    waves: tuple[Wave, ...] = ()
    previous: Wave | None = None

    @property
    def newest(self) -> Wave | None:
        """The wave of the policies that were published last, if any."""
        return self.waves[0] if self.waves else None

    def for_all(self, now: float) -> Wave | None:
        """Return what every VM has at ``now``, in seconds since 1970, or None."""
        return waves.choose(self.waves, None, now).wave


class Publisher:
    """Reads and changes what is at a destination. ``key`` signs, as ``ssh-keygen -f`` takes it.

    All methods raise InputError, and what the destination raises.
    """

    def __init__(self, destination: Destination, signers: Signers, key: str) -> None:
        self._destination = destination
        self._signers = signers
        self._key = key
        self._found: dict[str, bytes] = {}  # artifacts by the names of their files

    def read(self) -> Publication:
        """Return what is published now. An artifact in the place of a manifest is for all VMs."""
        content = self._destination.read(self._destination.name)
        if content is None:
            return Publication()
        self._verify(self._destination.name, content)
        if waves.is_manifest(content):
            return Publication(tuple(waves.decode(content)), waves.previous(content))
        return Publication((self._add(content, ALL, None),))

    def artifact(self, wave: Wave) -> Artifact:
        """Return the artifact of a wave, with a valid signature."""
        return load(self._content(wave))

    def release(
        self, published: Publication, artifact: bytes, serial: int, share: float, start: float | None, now: float
    ) -> Wave:
        """Return the wave for new policies, which have at least this serial. Nothing is written yet."""
        newest = published.newest
        if newest is not None:
            serial = max(serial, newest.serial + 1)
        _check_share(published, share, now)
        return self._add(with_serial(artifact, serial), share, start)

    def widened(self, published: Publication, share: float, start: float | None, now: float) -> Wave:
        """Return the wave of the newest policies with another share."""
        if published.newest is None:
            raise InputError(f"{self._destination.where}: nothing is published yet.", "Name policies.")
        if published.newest == published.for_all(now) and share < ALL:
            raise InputError(f"all VMs have serial {published.newest.serial} already.", "Name other policies.")
        _check_share(published, share, now)
        return published.newest._replace(share=share, start=start)

    def back(self, published: Publication, now: float) -> Wave:
        """Return a wave for all VMs: the policies before the newest, under a newer serial, as VMs take no older one."""
        newest, everywhere = published.newest, published.for_all(now)
        if newest is not None and everywhere is not None and _same(newest, everywhere):
            # A version that began for all at a time has the one before it still in the manifest.
            earlier = (one for one in published.waves if one.share >= ALL and not _same(one, newest))
            before = next(earlier, published.previous)
        else:
            before = everywhere
        if newest is None or before is None:
            raise InputError(f"{self._destination.where}: there are no policies to go back to.", "Name policies.")
        content = with_serial(self._content(before), max(int(now), newest.serial + 1))
        return self._add(content, ALL, None)

    def publish(self, published: Publication, wave: Wave, now: float, remember: bool = True) -> Publication:
        """Write the wave, with what all other VMs have, and return what is published now.

        ``remember``: ``back`` can go back to what all VMs had.
        """
        everywhere = published.for_all(now)
        if wave.start is None or wave.start <= now:
            others = [] if everywhere is None or _same(everywhere, wave) else [everywhere]
        else:  # until then, every VM keeps what it has
            others = [one for one in published.waves if one.start is None or one.start <= now]
        at_once = wave.share >= ALL and wave.start is None
        new = Publication(
            (wave,) if at_once else (wave, *others),
            (others[0] if others else published.previous) if at_once and remember else None,
        )
        for file in (one.file for one in new.waves):
            content = self._found.get(file)
            if content is not None and self._destination.read(file) != content:
                self._write(file, content)
        self._write(self._destination.name, waves.encode(new.waves, new.previous))
        return new

    def _write(self, name: str, content: bytes) -> None:
        """Write the signature first: a VM that finds only one of both uses neither."""
        self._destination.write(name + SUFFIX, signing.sign(content, self._key))
        self._destination.write(name, content)

    def _add(self, content: bytes, share: float, start: float | None) -> Wave:
        if len(content) > waves.MAX_BYTES:
            raise InputError(
                f"the artifact has {len(content)} bytes, and VMs take {waves.MAX_BYTES}.",
                "Leave out policies that these VMs do not need.",
            )
        serial = load(content).serial
        if serial is None:
            raise InputError(f"{self._destination.where} has policies without a serial.", "Remove them first.")
        name = PurePosixPath(self._destination.name)
        file = f"{name.stem}-{serial}{name.suffix}"
        self._found[file] = content
        return Wave(serial, file, hashlib.sha256(content).hexdigest(), share, start)

    def _content(self, wave: Wave) -> bytes:
        content = self._found.get(wave.file) or self._destination.read(wave.file)
        if content is None or hashlib.sha256(content).hexdigest() != wave.sha256:
            raise InputError(f"{wave.file} is not the file that {self._destination.where} is about.")
        if wave.file not in self._found:
            self._verify(wave.file, content)
        return content

    def _verify(self, name: str, content: bytes) -> None:
        signature = self._destination.read(name + SUFFIX)
        if signature is None:
            raise InputError(f"{self._destination.where}: {name} has no signature.")
        try:
            self._signers.verify(content, signature)
        except InputError as error:
            raise InputError(f"{self._destination.where}: {name}: {error.message}", error.hint) from error


def _same(one: Wave, other: Wave) -> bool:
    return (one.serial, one.sha256) == (other.serial, other.sha256)


def _check_share(published: Publication, share: float, now: float) -> None:
    """Raise InputError where VMs would keep policies that nobody publishes any more: they take no older ones."""
    everywhere = published.for_all(now)
    for wave in published.waves:
        if wave == everywhere:
            break
        if share < wave.share < ALL:
            hint = f"Use --share {wave.share:g} or more, or --back."
            raise InputError(f"serial {wave.serial} is for {wave.share:g} % of the VMs already.", hint)
