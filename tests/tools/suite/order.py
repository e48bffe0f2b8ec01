# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""In which order the files of tests begin: a long one that begins last keeps one worker busy and no other."""

from __future__ import annotations

import pytest

# Files of integration and of lab that take longest, by the reports of .ci/run. All others follow by their names.
LONGEST_FIRST = (
    "integration/windows/test_windows_crashes.py",
    "integration/groups/test_groups_simulated.py",
    "integration/faults/test_crashes.py",
    "integration/collection/test_role_build.py",
    "integration/proof/test_proof_false_claims.py",
    "integration/collection/test_ansible_module.py",
    "integration/collection/test_fleet_playbooks.py",
    "integration/project/test_release.py",
    "integration/collection/test_role_variables.py",
    "integration/collection/test_ansible_policies.py",
    "integration/project/test_demo.py",
    "integration/project/test_guides.py",
    "integration/project/test_site.py",
    "integration/pages/test_pages.py",
    "integration/collection/test_eda_source.py",
    "integration/groups/test_groups_stores.py",
    "integration/pages/test_pages_map.py",
    "integration/proof/test_proof_wild.py",
    "integration/proof/test_proof_mutations.py",
    "lab/groups/test_groups.py",
    "lab/role/test_role.py",
    "lab/role/test_role_hooks.py",
    "lab/role/test_role_mistakes.py",
    "lab/role/test_role_damage.py",
    "lab/role/test_group_role.py",
    "lab/role/test_role_cores.py",
    "lab/hooks/test_hook_rabbitmq.py",
    "lab/runner/test_runner.py",
    "lab/hooks/test_hook_slurm.py",
    "lab/hooks/test_hook_haproxy.py",
    "lab/hooks/test_hook_patroni.py",
    "lab/hooks/test_hook_pacemaker.py",
    "lab/hooks/test_hook_galera.py",
    "lab/hooks/test_hook_probe.py",
    "lab/hooks/test_hook_systemd.py",
)
_RANKS = {name: rank for rank, name in enumerate(LONGEST_FIRST)}


def keep_order(config: pytest.Config) -> None:
    """Let xdist hand out files in the order of their tests; otherwise those with many tests come first."""
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


def sort(items: list[pytest.Item]) -> None:
    """Put the tests of the longest files first. The order within a file stays."""
    items.sort(key=lambda item: _RANKS.get(item.nodeid.partition("::")[0].removeprefix("tests/"), len(_RANKS)))
