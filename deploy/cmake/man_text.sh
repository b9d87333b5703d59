#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# help2man runs this instead of $QUIRE_PROGRAM: prints its --help-all in the form
# that help2man divides into sections, with a subsection per subcommand.
# usage: QUIRE_PROGRAM=PATH man_text.sh --help|--version
set -eu
if [ "$1" = --version ]; then
  exec "$QUIRE_PROGRAM" --version
fi
"$QUIRE_PROGRAM" --help-all | awk -v program="$(basename "$QUIRE_PROGRAM")" '
  NR == 1 { next }
  /^Subcommands:$/ { section = $0; print "*Subcommands*"; next }
  /^Exit codes:$/ { section = $0; print "*Exit status*"; next }
  /^[A-Z][a-z]*:$/ { section = $0; sub(/Positionals/, "Options") }
  # -o,--output: help2man expects a blank.
  match($0, /^ +-[^ -],--/) { $0 = substr($0, 1, RLENGTH - 2) " " substr($0, RLENGTH - 1) }
  section == "Subcommands:" && /^[a-z]/ { print program " " $0 ":"; heading = 1; next }
  section == "Subcommands:" && /^  [A-Z][a-z]*:$/ { print ""; next }
  section == "Subcommands:" { if (!heading) sub(/^  /, ""); heading = 0 }
  section == "Examples:" && /^  # / { print "\n" substr($0, 5) "\n"; next }
  section == "Examples:" && /^  / { sub(/^  /, "  $ ") }
  { print }'
