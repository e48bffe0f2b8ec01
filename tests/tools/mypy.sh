#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Type-checks the package, the tests, and the plugins beside the package. PYTHON names an interpreter with mypy.
set -euo pipefail

tools=$(cd "$(dirname "$0")" && pwd)
cd "$tools/../.."
python=${PYTHON:-.venv/bin/python}

"$python" -m mypy --package forewarn
"$python" -m mypy tests

# Plugins import the package by its name within Ansible, which a checkout has only by links.
"$python" tests/tools/link_collection.py .cache/collections
packages=()
for directory in plugins/*/; do
  kind=$(basename "$directory")
  if [ "$kind" != module_utils ] && compgen -G "$directory*.py" >/dev/null; then
    packages+=(--package "ansible_collections.forewarn.azure.plugins.$kind")
  fi
done
if [ ${#packages[@]} -gt 0 ]; then MYPYPATH=.cache/collections "$python" -m mypy --config-file pyproject.toml "${packages[@]}"; fi
