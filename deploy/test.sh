#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds everything and runs all tests; what continuous integration calls.
# Under 25 minutes on two cores with nothing cached.
#
# usage: deploy/test.sh [STAGE...]      without any: all but tidy, in this order:
#   bootstrap  install what Debian must provide
#   tree       formatting, shell syntax, layers, licences, names, stages
#   release    build with g++, all warnings fatal, optimised
#   ctest      unit, property and end-to-end tests of that build
#   asan       build with clang, AddressSanitizer, UndefinedBehaviorSanitizer
#              and thread-safety analysis; all tests but those that measure
#   fuzz       each fuzz target of that build for FUZZ_SECONDS (default 5)
#   tsan       the suites with threads (label `tsan`) under ThreadSanitizer
#   tidy       (only when named: slow) clang-tidy on the codecs, the archive
#              format and storage; on all sources with TIDY_FILES=. (half an
#              hour), or on those that match
#
# JOBS sets how many things run at once (default: one for each core).
set -euo pipefail
cd "$(dirname "$0")/.."

jobs=${JOBS:-$(nproc)}
fuzz_seconds=${FUZZ_SECONDS:-5}
all_stages=(bootstrap tree release ctest asan fuzz tsan)
named_stages=("${all_stages[@]}" tidy)

# Nothing here reads standard input, and a test that does gets its end at once.
exec </dev/null
# The first fault ends a sanitized test, with a readable stack.
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
symbolizer=$(command -v llvm-symbolizer-14 || true)
if [[ -n "$symbolizer" ]]; then
  export ASAN_SYMBOLIZER_PATH=$symbolizer TSAN_SYMBOLIZER_PATH=$symbolizer
fi

sources() { /usr/bin/python3 deploy/checks/source_tree.py "$@"; }

# configure_and_build PRESET [CMAKE OPTION...]
configure_and_build() {
  cmake --preset "$@"
  cmake --build "build/$1" -j "$jobs"
}

run_ctest() {
  ctest --test-dir "$1" -j "$jobs" --output-on-failure --no-tests=error "${@:2}"
}

stage_bootstrap() { deploy/bootstrap.sh all; }

stage_tree() {
  sources .cc .h .c .proto | xargs -d '\n' clang-format-14 --dry-run -Werror
  local script
  while read -r script; do
    bash -n "$script"
  done < <(sources .sh; echo .ci/run)
  if command -v shellcheck >/dev/null; then
    { sources .sh; echo .ci/run; } | xargs -d '\n' shellcheck
  fi
  for check in layers spdx names stages; do
    "deploy/checks/${check}_test.py"
  done
}

stage_release() { configure_and_build release; }

stage_ctest() { run_ctest build/release; }

# One build for both stages: the fuzz targets are built with the sanitizers and
# the coverage feedback that the tests merely carry along.
stage_asan() {
  configure_and_build fuzz -DQUIRE_TESTS=ON
  run_ctest build/fuzz -LE 'tree|measured|smoke'
}

stage_fuzz() {
  local targets=(build/fuzz/fuzz/*_fuzz) target
  [[ -x "${targets[0]}" ]] || {
    echo "no fuzz targets in build/fuzz/fuzz; run the stage asan first" >&2
    return 1
  }
  for target in "${targets[@]}"; do
    fuzz_one "$target"
  done
}

# Starts from the target's seeds, if it has any beside its source; a corpus that
# grew in an earlier run goes on growing below build/.
fuzz_one() {
  local name corpus seeds log=build/fuzz/fuzz.log
  name=$(basename "$1")
  corpus=build/fuzz/corpus/$name
  mkdir -p "$corpus"
  mapfile -t seeds < <(find codecs server client -type d -path "*/${name}_seeds")
  if ! "$1" -max_total_time="$fuzz_seconds" -timeout=20 -rss_limit_mb=2048 \
    -print_final_stats=1 -artifact_prefix="build/fuzz/$name-" \
    "$corpus" "${seeds[@]}" >"$log" 2>&1; then
    tail -n 60 "$log" >&2
    return 1
  fi
  printf '%-32s %s\n' "$name" "$(sed -n 's/^Done \(.*\)/\1/p' "$log")"
}

# Only what has the label is built: a test's target has the test's name.
stage_tsan() {
  cmake --preset tsan
  local targets
  mapfile -t targets < <(ctest --test-dir build/tsan -N -L tsan |
    sed -n 's/^ *Test *#[0-9]*: //p')
  cmake --build build/tsan -j "$jobs" --target "${targets[@]}"
  run_ctest build/tsan -L tsan
}

# Without TIDY_FILES: what parses untrusted bytes and what juggles threads, for a
# source that takes in gRPC's headers costs fifteen seconds, and these do not.
tidy_sources() {
  if [[ -n "${TIDY_FILES:-}" ]]; then
    sources .cc | grep -E "$TIDY_FILES"
  else
    sources .cc | grep -E '^(codecs|server/archive|server/storage)/' |
      grep -vE '_(test|testing|fuzz|benchmark|test_[a-z]*)[.]cc$'
  fi
}

# The compile commands of `dev`, without precompiled headers, of which
# clang-tidy would need its own; generated headers are all that is built.
stage_tidy() {
  cmake --preset dev -B build/tidy -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON
  local headers
  mapfile -t headers < <(ninja -C build/tidy -t targets all |
    sed -n 's/^\(generated\/.*\.pb\.h\): .*/\1/p')
  ninja -C build/tidy "${headers[@]}"
  tidy_sources |
    xargs -d '\n' -n 1 -P "$jobs" clang-tidy-14 --quiet -p build/tidy
}

summary=()
started=$SECONDS
# Sets `status`. The stage is a subshell, so that -e ends only the stage; and
# nothing here may stand in a condition, where bash would ignore -e inside.
run_stage() {
  local begun=$SECONDS
  printf '\n=== %s\n' "$1"
  set +e
  (
    set -e
    "stage_$1"
  )
  status=$?
  set -e
  local took=$((SECONDS - begun)) verdict=passed
  ((status == 0)) || verdict=FAILED
  summary+=("$(printf '%-10s %-7s %3d:%02d' "$1" "$verdict" $((took / 60)) $((took % 60)))")
}

print_summary() {
  local took=$((SECONDS - started))
  printf '\n=== summary\n'
  printf '%s\n' "${summary[@]}"
  printf '%-10s %-7s %3d:%02d\n' all "$1" $((took / 60)) $((took % 60))
}

stages=("$@")
((${#stages[@]})) || stages=("${all_stages[@]}")
for stage in "${stages[@]}"; do
  if [[ " ${named_stages[*]} " != *" $stage "* ]]; then
    echo "no stage '$stage'; there are: ${named_stages[*]}" >&2
    exit 2
  fi
done
for stage in "${stages[@]}"; do
  run_stage "$stage"
  if ((status != 0)); then
    print_summary FAILED
    echo "deploy/test.sh: stage $stage failed; again with: deploy/test.sh $stage" >&2
    exit 1
  fi
done
print_summary passed
