#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the wheel of the Python package, and prints its path. Needs protoc and
# setuptools (Debian: protobuf-compiler, python3-setuptools, python3-wheel,
# python3-pip); downloads nothing. Equal sources give equal wheels.
#
# usage: client/python/build_wheel.sh DIRECTORY
set -euo pipefail
if (($# != 1)) || [[ "$1" == -* ]]; then
  echo "usage: client/python/build_wheel.sh DIRECTORY" >&2
  exit 2
fi
mkdir -p "$1"
/usr/bin/python3 -m pip wheel --quiet --disable-pip-version-check --no-deps \
  --no-build-isolation --no-index --wheel-dir "$1" "$(dirname "$0")"
ls "$(cd "$1" && pwd)"/quire_archive-*.whl
