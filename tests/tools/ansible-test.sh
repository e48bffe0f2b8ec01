#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Usage: ansible-test.sh [--core VERSION] ARGUMENT…
# Runs `ansible-test ARGUMENT…` on this checkout, without a container engine: that of .venv, or of another ansible-core, 2.21
# say, which gets an environment of its own in .cache. Where no Python for that one is to be found, it says so and is content.
#
# The checkout need not lie below ansible_collections/forewarn/azure: a copy in .cache does.
set -euo pipefail

tools=$(cd "$(dirname "$0")" && pwd)
repository=$(cd "$tools/../.." && pwd)
pyenv=${PYENV_ROOT:-$HOME/.pyenv}

if [ "$1" = --core ]; then
  version=$2
  shift 2
  bin=$repository/.cache/ansible-core-$version/bin
  work=$repository/.cache/ansible-test-$version
  if ! [ -e "$bin/.installed" ]; then
    python=
    for candidate in python3.13 python3.12 "$pyenv"/versions/3.1[23].*/bin/python; do
      # pyenv's stand-ins are on the PATH also for versions that it will not start.
      if "$candidate" -c 'import ensurepip, venv' 2>/dev/null; then python=$candidate; break; fi
    done
    if [ -z "$python" ]; then
      echo "ansible-core $version needs Python 3.12 or 3.13, with venv, and there is none: not tested with it" >&2
      exit 0
    fi
    "$python" -m venv --clear "${bin%/bin}"
    "$bin/pip" install -qq --disable-pip-version-check "ansible-core==$version.*"
    touch "$bin/.installed"
  fi
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

cd "$tree"
exec "$bin/ansible-test" "$1" --venv --color no "${@:2}"
