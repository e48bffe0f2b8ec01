#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Usage: copy-tree.sh DIRECTORY. Replaces the directory by a copy of what git would commit of this checkout: files that
# are tracked or new, none that is ignored. Prints nothing.
set -euo pipefail

repository=$(cd "$(dirname "$0")/../.." && pwd)
target=$1

rm -rf "$target"
mkdir -p "$target"
target=$(cd "$target" && pwd)
cd "$repository"
git ls-files -z --cached --others --exclude-standard |
  while IFS= read -r -d '' file; do
    if [ -e "$file" ]; then printf '%s\0' "$file"; fi # deleted but not yet committed: not there to be copied
  done |
  tar --null --files-from=- --create | tar --extract --directory="$target"
