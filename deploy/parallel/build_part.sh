#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds one part of an archive, unless an earlier run has: the step that every scheduler
# repeats, for each list and after each failure.
#
# usage: build_part.sh LIKE LIST OUT
#   LIKE  the archive that quired dictionary wrote
#   LIST  a file with the inputs of the part, one path per line; its name is the part's
#         number, such as lists/0007
#   OUT   directory for the parts; this one will be OUT/0007.quire
# QUIRE_PART_OPTIONS has more options of quired build, such as --threads 4.
set -eu
like=$1 list=$2 out=$3
name=$(basename "$list")
part=$out/$name.quire
if [ -e "$part/MANIFEST" ]; then
  echo "$part: is there already"
  exit
fi
mapfile -t inputs < "$list"
# Room for 100 segments in each part: up to 6.4 TB of text, with the default
# --segment-size of 64 GiB.
# Several words, unquoted:
# shellcheck disable=SC2086
exec quired build --quiet ${QUIRE_PART_OPTIONS:-} --like "$like" \
  --first-segment $((100 * 10#$name)) -o "$part" "${inputs[@]}"
