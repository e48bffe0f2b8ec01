#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Type-checks the package, the tests, the demo, and the plugins beside the package: all four, whatever the first says.
set -uo pipefail

cd "$(dirname "$0")/../.." || exit
python=.venv/bin/python
status=0

# A control node may have an older Python than the command, and mypy knows no older one than that.
"$python" -m mypy --python-version 3.10 --package forewarn || status=1
mkdir -p .cache
sed 's/system.windows/system.posix/; s/doctor.windows/doctor.linux/' pyproject.toml >.cache/mypy-windows.toml
"$python" -m mypy --config-file .cache/mypy-windows.toml --cache-dir .cache/mypy-windows --platform win32 --python-version 3.10 --package forewarn || status=1
"$python" -m mypy tests || status=1
"$python" -m mypy demo || status=1

# Plugins import the package by its name within Ansible, which a checkout has only by links.
"$python" tests/tools/sites/link_collection.py .cache/collections || exit
packages=()
for directory in plugins/*/; do
  kind=$(basename "$directory")
  if [ "$kind" != module_utils ] && compgen -G "$directory*.py" >/dev/null; then
    packages+=(--package "ansible_collections.forewarn.azure.plugins.$kind")
  fi
done
if [ ${#packages[@]} -gt 0 ]; then
  MYPYPATH=.cache/collections "$python" -m mypy --config-file pyproject.toml --python-version 3.10 "${packages[@]}" || status=1
fi
exit "$status"
