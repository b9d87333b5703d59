#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds an archive in parts on this machine, by GNU parallel, or xargs where that is
# missing. Run it again after a failure, with the same arguments: parts that are there
# stay.
#
# usage: build_all.sh INPUTS PARTS JOBS OUT
#   INPUTS  a file with the inputs, one path per line
#   PARTS   how many parts to build, JOBS of them at a time
#   OUT     directory for lists, parts and OUT/all.quire
set -eu
inputs=$1 parts=$2 jobs=$3 out=$4
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$out/parts"
if [ ! -e "$out/like.quire" ]; then
  mapfile -t paths < "$inputs"
  quired dictionary --quiet -o "$out/like.quire" "${paths[@]}"
fi
if [ ! -e "$out/lists" ]; then
  mkdir -p "$out/lists.new"
  # Whole lines; about as many bytes of paths in each list.
  split -d -a 4 -e -n "l/$parts" "$inputs" "$out/lists.new/"
  mv "$out/lists.new" "$out/lists"
fi
threads=$(( ($(nproc) + jobs - 1) / jobs ))
export QUIRE_PART_OPTIONS="--threads $threads"
if command -v parallel > /dev/null; then
  parallel --jobs "$jobs" --halt soon,fail=1 \
    "$here/build_part.sh" "$out/like.quire" {} "$out/parts" ::: "$out"/lists/*
else
  printf '%s\0' "$out"/lists/* |
    xargs -0 -P "$jobs" -I{} "$here/build_part.sh" "$out/like.quire" {} "$out/parts"
fi
exec quired join --quiet --force -o "$out/all.quire" "$out"/parts/*.quire
