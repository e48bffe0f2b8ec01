#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Usage: build.sh DIRECTORY. Builds the documentation site into it: the pages of what git would commit, and those that
# antsibull-docs writes of the collection, and the schemas that editors ask for. Any warning, such as a link that leads nowhere, is an error.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
repository=$(cd "$here/../../.." && pwd)
work=$repository/.cache/site
mkdir -p "$1"
site=$(cd "$1" && pwd)
export PATH="$repository/.venv/bin:$PATH"

# One run at a time: another would take the copy away.
mkdir -p "$work"
exec 9>"$work/lock"
flock 9

"$repository/tests/tools/copy-tree.sh" "$work/tree"
"$repository/.venv/bin/python" "$repository/tests/tools/link_collection.py" "$repository/.cache/collections"
mkdir -m 755 "$work/tree/collection"
ANSIBLE_COLLECTIONS_PATH=$repository/.cache/collections antsibull-docs --config-file "$here/antsibull-docs.cfg" \
  collection --use-current --squash-hierarchy --fail-on-error --dest-dir "$work/tree/collection" forewarn.azure

cd "$work"
# All of it anew: Sphinx would not repeat the warnings about pages that have not changed since.
sphinx-build --quiet --fresh-env --fail-on-warning --keep-going --conf-dir "$here" --doctree-dir doctrees -b html \
  tree "$site"
cp "$site/README.html" "$site/index.html"
"$repository/.venv/bin/python" "$here/schemas.py" "$site"
