# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The policies that a runner decides by, as its modules see them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from ..events import Document
from ..policy.decision import Decision, Facts


class Policies(Protocol):
    """What the runner needs of ``policy.engine.PolicySet``."""

    @property
    def time_dependent(self) -> bool:
        """Whether decisions may change without a new document."""

    @property
    def digest(self) -> str:
        """The digest of the artifact."""

    @property
    def api_version(self) -> str:
        """The api-version that they are compiled for."""

    @property
    def recovers_started(self) -> bool:
        """Whether a rule recovers after events that were not prepared."""

    def decide(self, document: Document, facts: Facts) -> Sequence[Decision]:
        """Return a decision for each event of the document, in its order."""

    def every_hook(self) -> Iterable[Mapping[str, Any]]:
        """Return every hook that any rule has."""
