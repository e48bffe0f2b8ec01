#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Usage: ansible-test.sh [--core VERSION | --python VERSION] ARGUMENT…
# Runs `ansible-test ARGUMENT…` on this checkout, without a container engine: that of .venv, or of another ansible-core, see
# ansible-core.sh. Sanity tests run with the Python of .venv; with --python, those that another Python may change run with that.
# Where a version cannot be had, it says so and is content, unless FOREWARN_REQUIRED has "versions".
#
# The checkout need not lie below ansible_collections/forewarn/azure: a copy in .cache does.
set -euo pipefail

tools=$(cd "$(dirname "$0")" && pwd)
repository=$(cd "$tools/../.." && pwd)
pyenv=${PYENV_ROOT:-$HOME/.pyenv}

core=
python=
if [ "$1" = --python ]; then
  python=$2
  bin=$repository/.venv/bin
  work=$repository/.cache/ansible-test-$python
  shift 2
elif [ "$1" = --core ]; then
  core=$2
  status=0
  bin=$("$tools/ansible-core.sh" "$core" --bare) || status=$?
  if [ "$status" = 3 ]; then exit 0; fi # it has said why
  if [ "$status" != 0 ]; then exit 1; fi
  work=$repository/.cache/ansible-test-$core
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
if [ -n "$python" ] && ! command -v "python$python" >/dev/null; then
  echo "Python $python: this machine has none" >&2
  if [[ " ${FOREWARN_REQUIRED-} " == *" versions "* ]]; then exit 1; fi
  exit 0
fi

# Its virtual environments take pip from a script that ansible-test would download; the pip that comes with Python does as
# well, and a script is looked for in this cache first (ansible/ansible#77304). pip keeps what it downloads where it always does.
pip_cache=${PIP_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/pip}
export HOME=$work/home
cache=$HOME/.ansible/test/cache
mkdir -p "$cache" "$HOME/.cache" "$pip_cache"
ln -sfn "$pip_cache" "$HOME/.cache/pip"
versions=$("$bin/python" -c '
import pathlib, re
import ansible_test._internal.python_requirements as requirements
print(*sorted(set(re.findall(r"\bpip=.([\d.]+)", pathlib.Path(requirements.__file__).read_text()))))')
for version in $versions; do
  cat >"$cache/get_pip_${version//./_}.py" <<'PYTHON'
import ensurepip, glob, os, subprocess, sys, sysconfig, zipfile
places = [os.path.join(os.path.dirname(ensurepip.__file__), "_bundled"), "/usr/share/python-wheels"]  # the latter is Debian's
wheels = [wheel for place in places for wheel in glob.glob(os.path.join(place, "pip-*.whl"))]
if wheels:
    zipfile.ZipFile(wheels[0]).extractall(sysconfig.get_path("purelib"))
else:
    subprocess.check_call([sys.executable, "-m", "ensurepip", "--default-pip"], stdout=subprocess.DEVNULL)
PYTHON
done
export PIP_DISABLE_PIP_VERSION_CHECK=1

own=$("$bin/python" -c 'import sys; print("{}.{}".format(*sys.version_info))')
options=()
if [ "$1" = sanity ]; then options=(--python "${python:-$own}"); fi
if [ -n "$python" ]; then options+=(--test compile --test import); fi
if [ "$1" = sanity ] && [ -n "$core" ]; then
  # What .venv's ansible-core has said already: pylint takes most of the time, yamllint would read the same YAML with the
  # same settings. test_ansible_cores.py imports every plugin with this core.
  options+=(--skip-test pylint --skip-test yamllint --skip-test import)
  main=("$repository"/.venv/lib/python*/site-packages/ansible_test)
  other=("$bin"/../lib/python*/site-packages/ansible_test)
  for name in $("$repository/.venv/bin/python" "$tools/suite/same_sanity.py" "${main[0]}" "${other[0]}"); do
    options+=(--skip-test "$name")
  done
  # It wants packages of module_utils without a docstring; 2.17 gave that up. Galaxy takes no entry that ignores it.
  if [ "$core" = 2.16 ]; then options+=(--skip-test empty-init); fi
fi

cd "$tree"
exec "$bin/ansible-test" "$1" --color no "${@:2}" "${options[@]}"
