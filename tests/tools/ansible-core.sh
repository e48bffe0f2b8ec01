#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Usage: ansible-core.sh VERSION [--bare]
# Prints the directory of the commands of an ansible-core of ansible-cores.txt: .venv/bin, if it has that version, or an
# environment of its own in .cache, with the libraries that the collection's plugins use, unless it may be bare of them. Where
# that cannot be made, it says why and ends with exit code 3, or with 1 if FOREWARN_REQUIRED names "versions".
set -euo pipefail

tools=$(cd "$(dirname "$0")" && pwd)
repository=$(cd "$tools/../.." && pwd)
version=$1

missing() {
  echo "ansible-core $version: $1" >&2
  if [[ " ${FOREWARN_REQUIRED-} " == *" versions "* ]]; then exit 1; fi
  exit 3
}

read -ra pythons <<<"$(sed -n "s/^${version//./\\.} //p" "$tools/ansible-cores.txt")"
if [ ${#pythons[@]} = 0 ]; then
  echo "ansible-core $version is not in $tools/ansible-cores.txt" >&2
  exit 1
fi

venv=$repository/.venv
if "$venv/bin/python" -c "import sys, ansible.release as r; sys.exit(not r.__version__.startswith('$version.'))" 2>/dev/null; then
  echo "$venv/bin"
  exit
fi

environment=$repository/.cache/ansible-core-$version
mkdir -p "$repository/.cache"
exec 9>"$environment.lock"
flock 9
install() {
  "$environment/bin/python" -m pip install -qq --disable-pip-version-check --no-compile "$@" >&2 ||
    missing "it could not be installed"
}
if ! [ -e "$environment/.core" ]; then
  found=
  for python in "${pythons[@]}"; do
    for candidate in "python$python" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$python".*/bin/python; do
      # pyenv's stand-ins are on the PATH also for versions that it will not start.
      if "$candidate" -c 'import ensurepip, venv' 2>/dev/null; then found=$candidate; break 2; fi
    done
  done
  if [ -z "$found" ]; then missing "it needs one of Python ${pythons[*]}, with venv, and there is none"; fi
  "$found" -m venv --clear "$environment"
  install "ansible-core==$version.*"
  touch "$environment/.core"
fi
# Installed again where they may be other ones now.
wanted=$(sha256sum "$repository/pyproject.toml" | cut -c1-16)
if [ "${2-}" != --bare ] && [ "$(cat "$environment/.installed" 2>/dev/null)" != "$wanted" ]; then
  mapfile -t libraries < <("$venv/bin/python" -c '
import sys, tomllib
print(*tomllib.load(open(sys.argv[1], "rb"))["project"]["dependencies"], sep="\n")' "$repository/pyproject.toml")
  install "ansible-core==$version.*" "${libraries[@]}"
  echo "$wanted" >"$environment/.installed"
fi
echo "$environment/bin"
