# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What differs between operating systems: a module for each subject, with an implementation for POSIX and for Windows.

All others ask these modules, and never which system it is: tests/tools/suite/portability.py checks that.
"""
