# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The identity of this VM, from the answer of ``/metadata/instance``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..events import Vm

INSTANCE_API_VERSION = "2021-02-01"  # has all the fields below; the instance endpoint's versions are its own

_MAX_BYTES = 512 * 1024  # far more than any VM has; parsed, the values may take forty times as much memory


def parse_instance(body: bytes) -> Vm:
    """Return the identity; a missing or malformed field is None. Raises ValueError if it is not a JSON object."""
    if len(body) > _MAX_BYTES:
        raise ValueError(f"{len(body)} bytes, {_MAX_BYTES} are the limit")
    try:
        data = json.loads(body.decode("utf-8-sig"))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(data, dict):
        raise ValueError("not an object")
    compute = data.get("compute")
    if not isinstance(compute, dict):
        return Vm()
    return Vm(
        name=_text(compute, "name"),
        location=_text(compute, "location"),
        zone=_text(compute, "zone"),
        size=_text(compute, "vmSize"),
        scale_set=_text(compute, "vmScaleSetName"),
        fault_domain=_text(compute, "platformFaultDomain"),
        tags=_tags(compute.get("tagsList")),
    )


def _text(compute: Mapping[str, Any], name: str) -> str | None:
    """Return a text, or None if it is blank: a VM outside a zone has ``"zone": ""``."""
    value = compute.get(name)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    return value if isinstance(value, str) and value.strip() else None


def _tags(listed: object) -> dict[str, str] | None:
    if not isinstance(listed, list):
        return None
    pairs = [(tag.get("name"), tag.get("value")) for tag in listed if isinstance(tag, dict)]
    return {name: value for name, value in pairs if isinstance(name, str) and isinstance(value, str)}
