# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CEL expressions: syntax, types, and the typed form.

"The language definition" is doc/langdef.md in github.com/google/cel-spec. Optional values are its proposal 246; the
other extensions are those of cel-go (ext/README.md).
"""
