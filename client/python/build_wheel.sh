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
out=$(cd "$1" && pwd)
cd "$(dirname "$0")"
protos=../../proto
# setuptools writes next to the sources.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r pyproject.toml README.md quire_archive "$work"
find "$work" -name __pycache__ -prune -exec rm -rf {} +
protoc -I "$protos" --include_imports \
  --descriptor_set_out "$work/quire_archive/descriptors.binpb" \
  "$protos/quire/v1/archive.proto" "$protos/quire/v1/error_details.proto"
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-1577836800} /usr/bin/python3 -m pip wheel --quiet \
  --disable-pip-version-check --no-deps --no-build-isolation --no-index \
  --wheel-dir "$out" "$work"
ls "$out"/quire_archive-*.whl
