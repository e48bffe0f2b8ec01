#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Usage: ansible-test.sh [--core VERSION] ARGUMENT…
# Runs `ansible-test ARGUMENT…` on this checkout, without a container engine: that of .venv, or of another ansible-core, see
# ansible-core.sh. Where that one cannot be had, it says so and is content.
#
# The checkout need not lie below ansible_collections/forewarn/azure: a copy in .cache does.
set -euo pipefail

tools=$(cd "$(dirname "$0")" && pwd)
repository=$(cd "$tools/../.." && pwd)
pyenv=${PYENV_ROOT:-$HOME/.pyenv}

if [ "$1" = --core ]; then
  status=0
  bin=$("$tools/ansible-core.sh" "$2") || status=$?
  if [ "$status" = 3 ]; then exit 0; fi # it has said why
  if [ "$status" != 0 ]; then exit 1; fi
  work=$repository/.cache/ansible-test-$2
  shift 2
else
  bin=$repository/.venv/bin
  work=$repository/.cache/ansible-test
fi
tree=$work/ansible_collections/forewarn/azure

# One run at a time: another would take the copy away.
mkdir -p "$work"
exec 9>"$work/lock"
flock 9

# The real path has to end like this, and git has to know the files: so a copy, and a repository of its own.
"$tools/copy-tree.sh" "$tree"
git -C "$tree" init --quiet --initial-branch=main
git -C "$tree" add --all
git -C "$tree" -c user.name=ci -c user.email=ci@localhost commit --quiet --message=tree

# Interpreters kept by pyenv come by their real directories: its shims of versions that are not active fail when they
# are called, which ansible-test takes for a broken Python rather than for a missing one.
interpreters=
for directory in "$pyenv"/versions/3.*/bin; do
  if [ -d "$directory" ]; then interpreters=$interpreters:$directory; fi
done
export PATH=$bin$interpreters:/usr/local/bin:/usr/bin:/bin

# Its virtual environments take pip from a script that ansible-test would download; one from ensurepip does as well,
# and is looked for in this cache first (ansible/ansible#77304).
export HOME=$work/home
cache=$HOME/.ansible/test/cache
mkdir -p "$cache"
versions=$("$bin/python" -c '
import pathlib, re
import ansible_test._internal.python_requirements as requirements
print(*sorted(set(re.findall(r"\bpip=.([\d.]+)", pathlib.Path(requirements.__file__).read_text()))))')
for version in $versions; do
  cat >"$cache/get_pip_${version//./_}.py" <<PYTHON
import subprocess, sys
subprocess.check_call([sys.executable, "-m", "ensurepip", "--default-pip"], stdout=subprocess.DEVNULL)
subprocess.check_call([sys.executable, "-m", "pip", "install", "--quiet", "pip==$version"])
PYTHON
done
export PIP_DISABLE_PIP_VERSION_CHECK=1

skipped=()
# It wants packages of module_utils without a docstring; 2.17 gave that up. Galaxy takes no entry that ignores it.
if [ "$1" = sanity ] && [[ $work == *-2.16 ]]; then skipped=(--skip-test empty-init); fi

cd "$tree"
exec "$bin/ansible-test" "$1" --venv --color no "${@:2}" "${skipped[@]}"
