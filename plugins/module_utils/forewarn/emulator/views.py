# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a VM is shown, and the DocumentIncarnation of each api-version."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..events import API_VERSIONS
from .documents import array
from .lifecycle import ListedEvent
from .spec import VmSpec

FIRST_INCARNATION = 1


@dataclass
class View:
    """The events that one VM is shown, in ``listing``. The array of an api-version may lack some of them.

    An api-version's number rises with every change of its array, and only then (SE-10).
    """

    vm: VmSpec
    listing: tuple[ListedEvent, ...] = ()
    incarnations: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start over, as when the service is switched off."""
        self.listing = ()
        self.incarnations = dict.fromkeys(API_VERSIONS, FIRST_INCARNATION)

    def show(self, listing: tuple[ListedEvent, ...], step: int) -> None:
        """Replace the listing; the numbers of the api-versions whose arrays change rise by ``step``."""
        before = {event.event_id: event for event in self.listing}
        after = {event.event_id: event for event in listing}
        self.listing = listing
        changed = [key for key in {**before, **after} if before.get(key) != after.get(key)]
        gone = [before[key] for key in changed if key in before]
        come = [after[key] for key in changed if key in after]
        for version in API_VERSIONS:
            if array(gone, version) != array(come, version):
                self.incarnations[version] += step
