# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command ``forewarn`` on a VM that looks, and tries again, twenty times as often: for tests that would only wait.

How long it gives others to answer, to end or to agree is as always; FRESH_SECONDS in its environment is how old a
document may be on which an approval rests. Run by its path, with the Python of the VM: the
first argument is the directory of the package, the others are those of the command.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from forewarn.runner.state.accepted_policy import SignedPolicy

TIMES = 20.0


def hurry() -> None:
    """Shorten the pauses of this process, before the modules that use them are imported."""
    import forewarn.runner.skip_openssl  # noqa: F401 - first of all, as the command does
    from forewarn.cli.run import setup as run_setup
    from forewarn.imds import limiter, retry, transport
    from forewarn.runner.groups import store_tasks
    from forewarn.runner.hooks import run as hook_run
    from forewarn.runner.journal import writer
    from forewarn.runner.policy_source import source as policy_source
    from forewarn.runner.sink import sink

    read = run_setup.read

    def read_quickly(
        given: Mapping[str, Any], environ: Mapping[str, str], offer: SignedPolicy | None = None
    ) -> run_setup.Setup:
        setup = read(given, environ, offer)
        source = setup.source and setup.source._replace(interval=setup.source.interval / TIMES)
        return setup._replace(interval=setup.interval / TIMES, source=source)

    run_setup.read = read_quickly
    limiter.Limiter.capacity *= TIMES
    limiter.Limiter.refill_per_second *= TIMES
    transport.Transport.fresh_seconds = float(os.environ.get("FRESH_SECONDS", transport.FRESH_SECONDS))
    retry.FIRST_DELAY_SECONDS /= TIMES
    retry.LONGEST_DELAY_SECONDS /= TIMES
    hook_run.PREPARE_PAUSES = (hook_run.PREPARE_PAUSES[0] / TIMES, *hook_run.PREPARE_PAUSES[1:])
    hook_run.RECOVER_PAUSES = (hook_run.RECOVER_PAUSES[0] / TIMES, *hook_run.RECOVER_PAUSES[1:])
    store_tasks.WAITING_SECONDS /= TIMES
    store_tasks.QUEUE_SECONDS /= TIMES
    writer.RETRY_SECONDS /= TIMES
    sink.LINGER_SECONDS /= TIMES
    policy_source.FIRST_SECONDS /= TIMES


def _begin() -> int:
    here = str(Path(__file__).parent)
    sys.path[:] = [sys.argv.pop(1), *(place for place in sys.path if place != here)]
    hurry()
    from forewarn.cli.main import main

    return main()


if __name__ == "__main__":
    sys.exit(_begin())
