#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Builds the collection from what git would commit, and puts the tarball through Galaxy's importer.
# The importer gets an attrs of its own in .cache: it pins one older than our other tools take. All else is that of .venv.
set -euo pipefail

tools=$(cd "$(dirname "$0")" && pwd)
repository=$(cd "$tools/../.." && pwd)
bin=$repository/.venv/bin
work=$repository/.cache/galaxy-importer

if ! [ -e "$work/library/.installed" ]; then
  rm -rf "$work/library"
  "$bin/python" -m pip install -qq --disable-pip-version-check --no-compile --no-deps --target "$work/library" \
    "galaxy-importer>=0.4.30" "attrs>=21.4,<24" "ansible-builder>=3,<4" "markdown>=3.3.4,<4" "nh3>=0.3.6,<4"
  touch "$work/library/.installed"
fi

"$tools/copy-tree.sh" "$work/tree"
"$bin/ansible-galaxy" collection build --force --output-path "$work" "$work/tree" >/dev/null
version=$(sed -n 's/^version: //p' "$repository/galaxy.yml")

cd "$work"
# The importer calls ansible-doc by name. What that finds, or that it crashed, it only mentions. It would also call
# ansible-lint, with the profile and fewer rules than `make lint-ansible-lint`.
PATH=$bin:$PATH PYTHONPATH=$work/library GALAXY_IMPORTER_RUN_ANSIBLE_LINT=false \
  "$bin/python" -m galaxy_importer.main "forewarn-azure-$version.tar.gz" 2>&1 | tee import.log |
  grep -v '^Loading '
if grep -E '^(ERROR|WARNING):' import.log >/dev/null; then exit 1; fi
