# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What most modules of the collection support. A module that extends it names only where it differs."""

from __future__ import annotations


class ModuleDocFragment:
    """Attributes whose descriptions come from ``ansible.builtin.action_common_attributes``, to be named after this one.

    Of an entry that several have, the module's own comes first, then that of the fragment that it names first.
    """

    DOCUMENTATION = r"""
options: {}
attributes:
  check_mode:
    support: full
    details: Does the same, because it changes nothing.
  diff_mode:
    support: none
  platform:
    support: full
    platforms: posix
  action:
    support: full
  async:
    support: none
  bypass_host_loop:
    support: none
"""
