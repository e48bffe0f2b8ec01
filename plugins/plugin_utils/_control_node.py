# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What several plugins need from Ansible: the options of a task, and where the control node keeps results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible import constants as C  # noqa: N812 - its usual name
from ansible.errors import AnsibleActionFail
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ..module_utils.forewarn.compiler.cel.inference import plain_json
from ..module_utils.forewarn.errors import InputError
from ..module_utils.forewarn.fleet.cache import Cache


def options_of(args: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a task by its argument spec, with defaults, as JSON values. Raises AnsibleActionFail."""
    try:
        given = plain_json(dict(args), "the options")
    except InputError as error:
        raise AnsibleActionFail(str(error)) from error
    validation = ArgumentSpecValidator(arguments).validate(given)
    if validation.error_messages:
        raise AnsibleActionFail("; ".join(validation.error_messages))
    options: dict[str, Any] = validation.validated_parameters
    return options


def cache() -> Cache:
    """Return the results of this run and of earlier ones."""
    return Cache(Path(C.ANSIBLE_HOME) / "forewarn", Path(C.DEFAULT_LOCAL_TMP))


def find_file(path: str, playbook_directory: Path) -> Path:
    """Return a path on the control node: relative to the playbook, otherwise to the working directory.

    Raises InputError if there is nothing.
    """
    wanted = Path(path).expanduser()
    for found in (playbook_directory / wanted, wanted):
        if found.exists():
            return found.resolve()
    places = "" if wanted.is_absolute() else f" in {playbook_directory.resolve()} and in {Path.cwd()}"
    raise InputError(f"There is no {wanted}{places}, on the control node.")
