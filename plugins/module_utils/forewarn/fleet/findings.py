# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The findings of ``forewarn policy verify``, as warnings of a task; computed once for the same policies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..errors import ForewarnError
from ..policy.artifact import Artifact
from .cache import Cache

_SHOWN = 10


def warnings(artifact: Artifact, params: Mapping[str, Any], cache: Cache) -> list[str]:
    """Return warnings about policies that compile, with these parameters."""

    def proven() -> bytes:
        return json.dumps(_verify(artifact, params)).encode()

    from ..analysis.proof import AnalysisError  # not at the top: most runs find a kept result

    try:
        found: list[str] = cache.once("verified", [artifact.digest, dict(params)], proven, json.loads)
    except (AnalysisError, ForewarnError) as error:  # not kept: the reason may be this machine
        return [f"The policies could not be verified: {error}"]
    return found


def _verify(artifact: Artifact, params: Mapping[str, Any]) -> list[str]:
    from ..analysis.verify.verify import verify

    findings = [
        f"{finding.source}:{finding.line}:{finding.column}: {finding.severity} {finding.code}: {finding.message}"
        for finding in verify(artifact, params).findings
        if finding.severity != "note" and finding.suppressed is None
    ]
    more = [f"and {len(findings) - _SHOWN} more: see forewarn policy verify"] if len(findings) > _SHOWN else []
    return findings[:_SHOWN] + more
