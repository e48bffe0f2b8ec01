# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kinds of hooks for particular programs, one module each, whose ``KIND`` declares the kind.

A kind is written with the standard library alone: it runs on a VM, in a process of its own (``process``).
"""

from __future__ import annotations

from importlib import import_module

from .common.declaration import HookKind

# In the order of the documentation. The module of a kind has its name.
NAMES = (
    *("probe", "haproxy", "systemd", "checkpoint", "patroni", "slurm", "rabbitmq", "galera", "pacemaker"),
    "service",
)


def find(name: str) -> HookKind | None:
    """Return a kind by its name, or None: a VM has only those that its policies use.

    Raises TypeError for a bad module.
    """
    if name not in NAMES:
        return None
    try:
        module = import_module("." + name, __name__)
    except ModuleNotFoundError as error:
        if error.name != f"{__name__}.{name}":
            raise
        return None
    kind = module.KIND
    if not isinstance(kind, HookKind):
        raise TypeError(f"{name}.KIND is not a HookKind")
    return kind


def available() -> tuple[HookKind, ...]:
    """Return the kinds that this installation has."""
    return tuple(kind for kind in map(find, NAMES) if kind is not None)
