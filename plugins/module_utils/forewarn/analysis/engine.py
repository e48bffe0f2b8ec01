# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runner's own decisions, about events that an analysis made."""

from __future__ import annotations

import json

from ..errors import InputError
from ..policy.artifact import Artifact
from ..policy.decision import HOLD, Decision, Verdict
from ..policy.engine import PolicySet
from .artifacts import Json
from .witness import Witness


class Engine:
    """Decides single events by the policies of an artifact. ``given`` are JSON values of parameters for all events."""

    def __init__(self, artifact: Artifact, given: Json) -> None:
        self._artifact, self._given = artifact, given
        self._declared = {entry["name"] for entry in artifact.params}
        self._policies: dict[str, PolicySet | InputError] = {}

    def policies(self, witness: Witness) -> PolicySet | InputError:
        """Return the policies with the parameters of an event, or why they refuse these."""
        every = {**self._given, **witness.params}
        given = {name: value for name, value in every.items() if name in self._declared}
        key = json.dumps(given, sort_keys=True)
        if key not in self._policies:
            try:
                self._policies[key] = PolicySet(self._artifact, given)
            except InputError as error:
                self._policies[key] = error
        return self._policies[key]

    def decide(self, witness: Witness) -> Decision:
        """Return the decision about an event; with parameters that policies refuse, nothing is approved."""
        policies = self.policies(witness)
        if isinstance(policies, PolicySet):
            return policies.decide(witness.document, witness.facts)[0]
        reason = f"the policies do not run with these parameters: {policies.message}"
        names = [data["name"] for data in self._artifact.data["policies"]]
        verdicts = tuple(Verdict(name, HOLD, None, reason, "") for name in names)
        return Decision(witness.document.events[0], HOLD, names[0], None, reason, verdicts=verdicts)
