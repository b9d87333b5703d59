#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The client's programs hold nothing of sdsl-lite, which is GPL: neither as a
# shared library nor, being a static one or all templates, as symbols of their
# own. Looks first for something that must be there, so that it cannot pass by
# not looking.
#
# usage: no_gpl_test.sh PROGRAM...
set -euo pipefail

fail() {
  echo "no_gpl_test: $*" >&2
  exit 1
}

[[ $# -gt 0 ]] || fail "usage: no_gpl_test.sh PROGRAM..."
for program in "$@"; do
  libraries=$(ldd "$program")
  symbols=$(nm -C "$program")
  grep -q libgrpc++ <<<"$libraries" || fail "ldd does not see gRPC in $program"
  grep -q "quire::Client::" <<<"$symbols" || fail "nm sees no symbols of $program"
  # The client decodes stored blocks, and codecs link libdivsufsort: that is MIT.
  if grep -i sdsl <<<"$libraries"; then
    fail "$program links the library above"
  fi
  if grep -m 5 -E "(^|[^a-z_])sdsl::" <<<"$symbols"; then
    fail "$program holds the symbols above"
  fi
done
echo "no_gpl_test: $# programs, nothing of sdsl"
