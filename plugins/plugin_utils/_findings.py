# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``forewarn policy verify`` finds in policies, as the warnings of a task; proven once for the same policies."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible import constants as C  # noqa: N812 - its usual name

from ..module_utils.forewarn import __file__ as package_file
from ..module_utils.forewarn import __version__
from ..module_utils.forewarn.errors import ForewarnError
from ..module_utils.forewarn.policy.artifact import Artifact
from . import _policies

KEPT = 32  # sets of findings, the ones used last
_SHOWN = 10


def warnings(artifact: Artifact, params: Mapping[str, Any]) -> list[str]:
    """Return what speaks against policies that compile, with these parameters; nothing if all is well."""
    directory = _policies._home() / "verified"
    key = _key(artifact, params)
    kept = directory / f"{key}.json"
    found = _kept(kept)
    if found is None:
        # Hosts of one run have processes of their own: one of them proves, the others wait.
        with _policies._locked(Path(C.DEFAULT_LOCAL_TMP) / f"forewarn-verify-{key}.lock"):
            found = _kept(kept)
            if found is None:
                found = _verify(artifact, params)
                _keep(kept, found)
    return found


def _verify(artifact: Artifact, params: Mapping[str, Any]) -> list[str]:
    # Not at the top: most runs find the answer of an earlier one.
    from ..module_utils.forewarn.analysis.counterexamples import AnalysisError
    from ..module_utils.forewarn.analysis.symbolic.reading import read
    from ..module_utils.forewarn.analysis.verify import verify

    try:
        report = verify(read(artifact, params))
    except (AnalysisError, ForewarnError) as error:
        return [f"The policies could not be verified: {error}"]
    told = [
        f"{finding.source}:{finding.line}:{finding.column}: {finding.severity} {finding.code}: {finding.message}"
        for finding in report.findings
        if finding.severity != "note" and finding.suppressed is None
    ]
    more = [f"and {len(told) - _SHOWN} more: see forewarn policy verify"] if len(told) > _SHOWN else []
    return told[:_SHOWN] + more


def _kept(path: Path) -> list[str] | None:
    try:
        found: list[str] = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return found


def _keep(path: Path, found: list[str]) -> None:
    """Keep findings; what cannot be kept is proven again."""
    part = path.with_suffix(f".{os.getpid()}")
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, exist_ok=True)
        part.write_text(json.dumps(found), encoding="utf-8")
        part.replace(path)
        known = sorted(path.parent.glob("*.json"), key=lambda file: file.stat().st_mtime, reverse=True)
        for old in known[KEPT:]:
            old.unlink(missing_ok=True)


def _key(artifact: Artifact, params: Mapping[str, Any]) -> str:
    """Return a text that changes when the policies do, their parameters, or what proves."""
    package = Path(package_file).parent
    states = []
    for room in ("analysis", "compiler", "policy"):
        found = [(str(path.relative_to(package)), path.stat()) for path in (package / room).rglob("*.py")]
        states += sorted((name, state.st_mtime_ns, state.st_size) for name, state in found)
    return hashlib.sha256(json.dumps([__version__, states, artifact.digest, dict(params)]).encode()).hexdigest()
