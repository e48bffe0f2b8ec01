#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Builds the collection from what git would commit, and puts the tarball through Galaxy's importer.
# The importer gets an environment of its own in .cache: it pins an attrs older than our other tools take.
set -euo pipefail

tools=$(cd "$(dirname "$0")" && pwd)
repository=$(cd "$tools/../.." && pwd)
bin=$repository/.venv/bin
work=$repository/.cache/galaxy-importer

if ! [ -e "$work/venv/.installed" ]; then
  rm -rf "$work/venv"
  "$bin/python" -m venv "$work/venv"
  "$work/venv/bin/pip" install -qq "galaxy-importer>=0.4.30"
  touch "$work/venv/.installed"
fi

"$tools/copy-tree.sh" "$work/tree"
"$bin/ansible-galaxy" collection build --force --output-path "$work" "$work/tree" >/dev/null
version=$(sed -n 's/^version: //p' "$repository/galaxy.yml")

cd "$work"
# The importer calls ansible-doc and ansible-lint by name. What these find, or that they crashed, it only mentions.
PATH=$work/venv/bin:$PATH venv/bin/python -m galaxy_importer.main "forewarn-azure-$version.tar.gz" 2>&1 | tee import.log |
  grep -v '^Loading '
if grep -E '^(ERROR|WARNING):' import.log >/dev/null; then exit 1; fi
