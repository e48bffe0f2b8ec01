# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a service does before it imports anything else: on Windows nothing."""


def keep_reloads() -> None:
    """Do nothing: a reload comes by the service manager, and waits until the service has registered for it."""
