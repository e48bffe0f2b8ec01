#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Usage: build.sh [DIRECTORY]. Builds the documentation site in .cache/site/html, and copies it into the directory: the pages of
# what git would commit, those that antsibull-docs writes of the collection, and the schemas that editors ask for. Any warning,
# such as a link that leads nowhere, is an error. A site that was built of the same files by the same programs is not built again.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
repository=$(cd "$here/../../../.." && pwd)
work=$repository/.cache/site
site=$work/html
if [ $# -gt 0 ]; then
  mkdir -p "$1"
  target=$(cd "$1" && pwd)
fi
export PATH="$repository/.venv/bin:$PATH"

# One run at a time: another would take the copy away.
mkdir -p "$work"
exec 9>"$work/lock"
flock 9

"$repository/tests/tools/copy-tree.sh" "$work/tree"
digest=$({
  cd "$work/tree" && find . -path ./tests -prune -o -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum
  cd "$here" && find . -type f ! -name '*.pyc' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum
  cd "$repository" && ls -d .venv/lib/python*/site-packages/*.dist-info
} | sha256sum)

if [ "$(cat "$work/digest" 2>/dev/null)" != "$digest" ]; then
  rm -rf "$work/digest" "$site"
  "$repository/.venv/bin/python" "$repository/tests/tools/sites/link_collection.py" "$repository/.cache/collections"
  mkdir -m 755 "$work/tree/collection"
  ANSIBLE_COLLECTIONS_PATH=$repository/.cache/collections antsibull-docs --config-file "$here/antsibull-docs.cfg" \
    collection --use-current --squash-hierarchy --fail-on-error --dest-dir "$work/tree/collection" forewarn.azure

  cd "$work"
  # All of it anew: Sphinx would not repeat the warnings about pages that have not changed since.
  sphinx-build --quiet --fresh-env --fail-on-warning --keep-going --conf-dir "$here" --doctree-dir doctrees -b html \
    tree "$site"
  cp "$site/README.html" "$site/index.html"
  "$repository/.venv/bin/python" "$here/schemas.py" "$site"
  echo "$digest" >"$work/digest"
fi
if [ $# -gt 0 ] && [ "$target" != "$site" ]; then cp -R "$site/." "$target"; fi
