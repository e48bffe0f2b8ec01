# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the runner would find at its next start: its configuration, its policies and its program, as they are on disk.

A runner that works by what it loaded long ago looks well, and may not come back after a reboot.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...runner.hooks.needs import examine as examine_needs
from ...runner.state import dry_runs
from ...system.account import owns
from ..runner_state import text_of
from . import config as run_config
from .options import defaults
from .setup import read

_VERSION = re.compile(rb'^__version__ = "([^"]+)"', re.MULTILINE)


def examine(directory: str, fields: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what is on disk for the runner whose state directory and latest heartbeat these are.

    None if the heartbeat does not say where that is, or if another user's runner left it: it trusts other files. The
    values: ``config`` (path), ``digest`` (of its bytes), ``policy`` (digest), ``refused`` (why it is not that of the
    configuration), ``error`` (why a runner would not start), ``program`` (path), ``version``; each a text or None.
    """
    options = fields.get("options")
    try:
        ours = owns(directory)
    except OSError:
        return None
    if not isinstance(options, dict) or not ours:
        return None
    config = text_of(options, "config") or None
    program = text_of(fields, "program") or None
    found: dict[str, Any] = {
        "config": config,
        "digest": None if config is None else run_config.digest_of(config),
        "policy": None,
        "refused": None,
        "error": None,
        "program": program,
        "version": None if program is None else _version(Path(program)),
    }
    try:
        # Not this process's environment: the service has another.
        live = str(Path(directory).parent) if dry_runs.is_marked(directory) else directory
        setup = read({**defaults(), **options}, {"STATE_DIRECTORY": live})
        if not setup.args.dry_run:
            examine_needs(setup.policies.hooks_by_rule()).refuse_untrusted()
        found["policy"], found["refused"] = setup.policies.digest, setup.loaded.problem
    except InputError as error:
        found["error"] = str(error)
    return found


def problems(runner: Mapping[str, Any], found: Mapping[str, Any], *, running: bool) -> list[str]:
    """Return what is wrong with what is on disk, in sentences. ``runner`` is as ``status --json`` shows it."""
    error = found["error"]
    said = []
    if error is not None and running:
        refused = runner["reload_problem"]
        if not (refused and error.startswith(refused.rstrip("…"))):  # it has been said
            said.append(f"the runner would not start again: {error}")
    elif error is not None:
        said.append(f"the runner would not start: {error}")
    elif running and runner["config"] is not None and found["digest"] != runner["config"]:
        said.append(f"the configuration {found['config']} has changed since the runner loaded it: reload or restart it")
    elif running and runner["policy"] is not None and found["policy"] != runner["policy"]:
        said.append(f"the policies on disk have changed since the runner loaded them, to {found['policy']}: reload it")
    known = [text.rstrip("…") for text in (runner["policy_problem"], runner["reload_problem"]) if text]
    if found["refused"] is not None and not found["refused"].startswith(tuple(known)):
        said.append(f"the policies on disk would not be used: {found['refused']}")
    if found["program"] is not None and found["version"] is None:
        said.append(f"the runner would not start{' again' if running else ''}: its program {found['program']} is gone")
    elif running and found["version"] is not None and found["version"] != runner["version"]:
        said.append(
            f"forewarn {runner['version']} is running, and {found['program']} is now {found['version']}: restart it"
        )
    return said


def _version(program: Path) -> str | None:
    """Return the version of the package in a zip file or a directory, or None if it is not there."""
    name = "forewarn/__init__.py"
    try:
        if program.is_dir():
            content = program.joinpath(*name.split("/")).read_bytes()
        else:
            with zipfile.ZipFile(program) as bundle:
                content = bundle.read(name)
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        return None
    found = _VERSION.search(content)
    return None if found is None else found.group(1).decode("utf-8", "replace")
