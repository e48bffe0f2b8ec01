# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An artifact: compiled policies as a JSON file, which is checked before anything in it is used."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import InputError
from ..events import API_VERSIONS
from .program import Program
from .structure import check_policies, check_source

FORMAT = "forewarn-policy"
FORMAT_VERSION = 1
_USER_INFO = r"(?i)^(https?://)[^/?#]*@"
MAX_BYTES = 16 * 1024 * 1024  # bytes
LARGEST_SERIAL = 2**53  # every program that reads JSON has this number as it is


class Artifact(NamedTuple):
    """``data`` is the checked JSON; ``digest`` is ``sha256:…`` over its canonical form, as ``digest_of`` returns it."""

    data: Mapping[str, Any]
    digest: str
    api_version: str

    @property
    def params(self) -> tuple[Mapping[str, Any], ...]:
        """The declarations of parameters of all policies, which may share names."""
        return tuple(entry for policy in self.data["policies"] for entry in policy["params"])

    @property
    def source(self) -> Mapping[str, Any] | None:
        """Where the policies came from, as ``with_source`` describes it, or None if that is not known."""
        return self.data.get("source")

    @property
    def serial(self) -> int | None:
        """The number that grows with each version that is signed, or None if it was not made to be signed."""
        return self.data.get("serial")


def digest_of(data: Mapping[str, Any]) -> str:
    """Return the digest of an artifact: SHA-256 of its canonical JSON, without ``digest``, ``source`` and ``serial``.

    So the digest is the same for the same policies from another commit. A signature covers all bytes of the file.
    """
    content = {key: value for key, value in data.items() if key not in ("digest", "source", "serial")}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return "sha256:" + hashlib.sha256(text.encode("ascii")).hexdigest()


def load(source: bytes | str | Mapping[str, Any]) -> Artifact:
    """Return an artifact, after checks of its format, version, digest and structure, and of every expression.

    ``source`` is JSON, or its value. Raises InputError that says what is wrong and what to do.
    """
    data = source if isinstance(source, Mapping) else _decode(source)
    if data.get("format") != FORMAT:
        raise InputError("this is not a compiled policy", "Compile it: forewarn policy compile POLICY -o policy.json")
    version = data.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version != FORMAT_VERSION:
        raise InputError(
            f"the artifact has format version {version!r}, and this forewarn reads {FORMAT_VERSION}",
            "Compile the policies again with the forewarn that runs them.",
        )
    digest = digest_of(data)
    if data.get("digest") != digest:
        raise InputError(
            "the artifact's digest does not match its content: it was changed or damaged",
            "Compile the policies again; an artifact is never edited.",
        )
    if data.get("api_version") not in API_VERSIONS:
        raise InputError(f"the artifact is for api-version {data.get('api_version')!r}, which is not known")
    artifact = Artifact(data, digest, data["api_version"])
    serial = data.get("serial", 1)
    if isinstance(serial, bool) or not isinstance(serial, int) or not 1 <= serial <= LARGEST_SERIAL:
        raise InputError(f"the artifact's serial {serial!r} is not a whole number from 1 to {LARGEST_SERIAL}")
    _check_content(data)
    return artifact


def load_file(path: str | Path) -> Artifact:
    """Read an artifact, and check it as ``load`` does. Raises InputError that names the file."""
    try:
        return load(Path(path).read_bytes())
    except OSError as error:
        hint = "Name a compiled policy, the output of: forewarn policy compile."
        raise InputError(f"{path}: {error.strerror}.", hint) from error
    except InputError as error:
        raise InputError(f"{path}: {error.message}", error.hint) from error


def with_source(raw: bytes, source: Mapping[str, Any] | None) -> bytes:
    """Return an artifact's bytes with ``source`` in it: where its policies came from. None takes it out.

    ``source``: ``{"repository": str|None, "ref": str|None, "commit": str|None, "paths": [str], "modified": bool}``;
    ``modified`` means that the checkout had changes that ``commit`` does not have. A user and a password in an http URL
    are left out: everybody on a VM can read its artifact. The digest stays as it was. Raises InputError for an invalid
    artifact or source.
    """
    data = {key: value for key, value in load(raw).data.items() if key != "source"}
    if source is not None:
        data["source"] = source
        load(data)
        if source["repository"] is not None:
            data["source"] = {**source, "repository": re.sub(_USER_INFO, r"\1", source["repository"])}
    return encode(data)


def with_serial(raw: bytes, serial: int) -> bytes:
    """Return an artifact's bytes with a serial, from 1 to ``LARGEST_SERIAL``. The digest stays as it was.

    Raises InputError for an invalid artifact or serial.
    """
    data = {**load(raw).data, "serial": serial}
    load(data)
    return encode(data)


def encode(data: Mapping[str, Any]) -> bytes:
    """Return an artifact's JSON as its file has it."""
    return (json.dumps(data, indent=1, sort_keys=True) + "\n").encode("ascii")


def _decode(source: bytes | str) -> Mapping[str, Any]:
    if len(source) > MAX_BYTES:
        raise InputError(f"the artifact is larger than {MAX_BYTES} bytes")
    try:
        data = json.loads(source)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"the artifact is not JSON: {error}",
            "A policy file has to be compiled first: forewarn policy compile POLICY -o policy.json",
        ) from error
    if not isinstance(data, dict):
        raise InputError("the artifact is not a JSON object")
    return data


def _check_content(data: Mapping[str, Any]) -> None:
    try:
        check_source(data)
        check_policies(data)
        for policy in data["policies"]:
            Program(policy)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError) as error:
        raise InputError(
            f"the artifact is damaged ({type(error).__name__}: {error})", "Compile the policies again."
        ) from error
