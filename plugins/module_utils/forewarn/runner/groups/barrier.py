# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The barrier of an event that names several VMs: it is closed when each of them has said that it is prepared.

Each VM writes its own statement only. A VM that finds that all are ready for the same content of the event closes the
barrier, and only then approves. Pure functions: no sockets, no clocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from .documents import dump, load, member, texts

SCHEMA = "barrier"
# States of a VM. ``READY``: it is prepared, or has nothing to prepare, and its policies approve.
READY, PREPARING, FAILED, HELD = "ready", "preparing", "failed", "held"
STATES = (READY, PREPARING, FAILED, HELD)
LONGEST_REASON = 200


class Statement(NamedTuple):
    """The state of one VM for an event's ``content`` (``event_record.content_of``). ``reason`` is for people."""

    content: str
    state: str
    reason: str = ""


class Closure(NamedTuple):
    """The VM ``by`` has found all VMs ready for this ``content``. It approves; if it is silent, others do."""

    content: str
    by: str


class Barrier(NamedTuple):
    """The document of one event. ``members`` has statements by the VM's name in lower case."""

    members: Mapping[str, Statement] = MappingProxyType({})
    closed: Closure | None = None

    def closed_for(self, content: str) -> Closure | None:
        """Return its closure for this content, or None."""
        return self.closed if self.closed is not None and self.closed.content == content else None

    def missing(self, content: str, names: Iterable[str]) -> list[str]:
        """Return those of the names whose VM has not said that it is ready for this content."""
        ready = {name for name, each in self.members.items() if (each.content, each.state) == (content, READY)}
        return [name for name in names if name.lower() not in ready]


def step(document: Barrier, me: str, own: Statement | None, names: Sequence[str]) -> Barrier:
    """Return the document with ``own``, the statement of the VM ``me`` about an event with these ``names``.

    ``own`` is None when the event has left this VM's list. An unchanged document need not be written.
    """
    me = me.lower()
    if own is None:
        others = {name: statement for name, statement in document.members.items() if name != me}
        # A VM that has seen it leave the list may recover: no other VM may start it now.
        return document if me not in document.members else Barrier(others)
    statement, closed = document.members.get(me), document.closed_for(own.content)
    if statement is not None and closed is not None:
        return document  # the approval is in flight: its basis must not change
    if statement is None or statement[:2] != own[:2]:  # another reason alone is not worth a write
        # If it was closed for an earlier content of the event, this VM no longer sees that.
        document = Barrier({**document.members, me: own._replace(reason=own.reason[:LONGEST_REASON])}, closed)
    if own.state == READY and closed is None and not document.missing(own.content, names):
        document = document._replace(closed=Closure(own.content, me))
    return document


def encode(document: Barrier, event_id: str) -> bytes | None:
    """Return the document as bytes, None to remove it when no VM has a statement."""
    if not document.members:
        return None
    closed = None if document.closed is None else document.closed._asdict()
    members = {name: statement._asdict() for name, statement in sorted(document.members.items())}
    return dump(SCHEMA, {"event": event_id, "members": members, "closed": closed})


def decode(content: bytes | None) -> Barrier:
    """Return the document that a store has. Raises SharedDocumentError for anything that ``encode`` does not write."""
    if content is None:
        return Barrier()
    data = load(SCHEMA, content)
    members = {name: Statement(*texts(each, Statement._fields)) for name, each in member(data, "members", dict).items()}
    closed = data.get("closed")
    return Barrier(members, None if closed is None else Closure(*texts(closed, Closure._fields)))
