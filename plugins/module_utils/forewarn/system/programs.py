# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How hooks find programs, and what every one of them is given."""

import sys

if sys.platform == "win32":
    from .windows.programs import (
        BASE_ENVIRONMENT,
        HOME_VARIABLE,
        SEARCH_PATH,
        TARGET,
        find,
        is_name,
        problem,
        python,
    )
else:
    from .posix.programs import (
        BASE_ENVIRONMENT,
        HOME_VARIABLE,
        SEARCH_PATH,
        TARGET,
        find,
        is_name,
        problem,
        python,
    )

__all__ = ["BASE_ENVIRONMENT", "HOME_VARIABLE", "SEARCH_PATH", "TARGET", "find", "is_name", "problem", "python"]
