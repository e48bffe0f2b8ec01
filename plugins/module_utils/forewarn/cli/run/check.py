# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn run --check-config``: whether a runner could start like this, and what its hooks lack."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from ...errors import InputError
from ...runner.hooks.needs import Needs, examine
from ...system.paths import credentials_directory
from ..doctor.system import Machine
from ..output.console import Console, attributes, one_line, write_json
from . import config
from .group import check_credential, doubtful_limits
from .setup import Setup, read

if TYPE_CHECKING:
    from ...runner.policy_source.settings import SourceSettings


def check(given: Mapping[str, Any]) -> int:
    """Write what was found; return 0, or 1 if hooks lack something, or 2 if a runner would not start."""
    error = None
    setup = None
    needs = Needs()
    try:
        setup = read(given, os.environ)
        if setup.loaded.problem is not None:
            raise InputError(setup.loaded.problem)
        if not (setup.args.dry_run or setup.args.once):  # these run no hooks
            promised = frozenset(given["credential"])
            directory = credentials_directory(os.environ)
            check_credential(setup.group, directory, promised)
            _check_source_credential(setup.source, directory, promised)
            needs = examine(setup.policies.hooks_by_rule(), directory, promised, Machine().unit_problem)
        needs.refuse_untrusted()
    except InputError as found:
        error = found
    if given["json"]:
        write_json("check-config", _report(given, setup, needs, error))
    elif error is not None:
        Console(sys.stderr).error(error.message, error.hint)
    elif setup is not None:
        _show(Console(sys.stdout), setup, needs)
    return 2 if error is not None else 1 if needs.missing() else 0


def _check_source_credential(source: SourceSettings | None, directory: str | None, promised: Collection[str]) -> None:
    """Raise InputError if the policy source needs a credential that the runner would not have."""
    if source is not None and source.sas is not None and source.sas.credential not in promised:
        source.sas.path(directory)


def _report(given: Mapping[str, Any], setup: Setup | None, needs: Needs, error: InputError | None) -> dict[str, Any]:
    artifact = None if setup is None else setup.policies.artifact
    digest = config.digest_of(given["config"]) if given["config"] is not None and setup is None else None
    return {
        "version": 1,
        "usable": error is None,
        "error": None if error is None else str(error),
        "config": digest if setup is None else setup.config,
        "policy": None if artifact is None else artifact.digest,
        "serial": None if artifact is None else artifact.serial,
        "policies": [] if setup is None else list(setup.policies.names),
        "api_version": None if artifact is None else artifact.api_version,
        "source": None if artifact is None else artifact.source,
        "hooks": [attributes(need, "kind name policy rule problem") for need in needs.hooks],
        "credentials": [attributes(need, "name policy rule problem") for need in needs.credentials],
        "missing": list(needs.missing()),
        "warnings": [] if setup is None else doubtful_limits(setup.policies),
    }


def _show(console: Console, setup: Setup, needs: Needs) -> None:
    for text in (*needs.missing(), *doubtful_limits(setup.policies)):
        console.warning(text)
    names, hooks = setup.policies.names, len(needs.hooks)
    if not needs.missing():
        policies = f"{len(names)} {'policy' if len(names) == 1 else 'policies'} ({', '.join(names)})"
        said = f"usable: {policies}, {setup.policies.digest}"
        console.line(
            one_line(said + (f"; {hooks} {'hook has' if hooks == 1 else 'hooks have'} what they need" if hooks else ""))
        )
