#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds everything and runs all tests; called by continuous integration. Prints
# the time of each stage at the end, in minutes of wall clock and of CPU. The aim is
# 30 minutes on two cores with an empty compiler cache.
#
# usage: deploy/test.sh [STAGE...]      without any: all but the last, in this order:
#   bootstrap  install the required Debian packages
#   tree       formatting, shell syntax, layers, licences, names, stages
#   release    build with g++, all warnings fatal, optimised
#   ctest      unit, property and end-to-end tests of that build
#   asan       build with clang, AddressSanitizer, UndefinedBehaviorSanitizer
#              and thread-safety analysis; all tests except those that measure
#              (label `measured`), run mainly foreign code (`foreign`) or kill
#              hundreds of builds that other tests let end (`killed`)
#   fuzz       each fuzz target of that build for FUZZ_SECONDS (default 5)
#   tsan       the suites with threads (label `tsan`) under ThreadSanitizer
#   tidy       clang-tidy on the sources that changed since the merge base with
#              main, or on main in its last commits, at most 40 of them
#              (checks/changed_sources.py chooses and reports them);
#              since the commit TIDY_BASE if that is set; on all that match
#              TIDY_FILES if that is set (TIDY_FILES=. is the whole tree, 80
#              minutes of CPU)
#   ecosystem  tests of the release build that drive foreign programs at length
#              (label `ecosystem`), which download packages of other languages
#              or need Chromium (bootstrap.sh replay); ctest runs a shorter test
#              of each, which does not
#
# JOBS sets the number of parallel jobs (default: one per core).
set -euo pipefail
cd "$(dirname "$0")/.."

jobs=${JOBS:-$(nproc)}
fuzz_seconds=${FUZZ_SECONDS:-5}
default_stages=(bootstrap tree release ctest asan fuzz tsan tidy)
all_stages=("${default_stages[@]}" ecosystem)

# No stage reads standard input; a test that does gets end of file.
exec </dev/null
# The first error ends a test under sanitizers, with a readable stack.
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
  command -v shellcheck >/dev/null || {
    echo "shellcheck is not installed; deploy/bootstrap.sh installs it" >&2
    return 1
  }
  { sources .sh; echo .ci/run; } | xargs -d '\n' shellcheck
  for check in layers spdx names temporaries stages changed_sources mutation_run readme_figures; do
    "deploy/checks/${check}_test.py"
  done
}

stage_release() { configure_and_build release; }

stage_ctest() { run_ctest build/release -LE ecosystem; }

stage_ecosystem() { run_ctest build/release -L ecosystem; }

# One build for both stages: the fuzz targets are built with the sanitizers and
# the coverage feedback, which the tests do not use.
stage_asan() {
  configure_and_build fuzz -DQUIRE_TESTS=ON
  run_ctest build/fuzz -LE 'tree|measured|smoke|foreign|killed|ecosystem'
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

# Starts from the seeds next to the target's source, if any. The corpus below build/
# keeps growing over runs.
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

# Builds only tests with the label: a test's target has the test's name.
stage_tsan() {
  cmake --preset tsan
  local targets
  mapfile -t targets < <(ctest --test-dir build/tsan -N -L tsan |
    sed -n 's/^ *Test *#[0-9]*: //p')
  cmake --build build/tsan -j "$jobs" --target "${targets[@]}"
  run_ctest build/tsan -L tsan
}

# The compile commands of `dev`, without precompiled headers, of which clang-tidy
# would need its own. Builds only generated headers.
stage_tidy() {
  cmake --preset dev -B build/tidy -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON
  local headers files
  mapfile -t headers < <(ninja -C build/tidy -t targets all |
    sed -n 's/^\(generated\/.*\.pb\.h\): .*/\1/p')
  ninja -C build/tidy "${headers[@]}"
  files=$(tidy_sources)
  local not_shipped='_(test|benchmark)\.cc$|/testing/'
  { grep -Ev "$not_shipped" <<<"$files" || true; } | tidy
  # Tests and benchmarks multiply small constants, set variables before they start
  # threads, and may be slow. They run under the sanitizers, and the analyzer would
  # take two thirds of the time.
  { grep -E "$not_shipped" <<<"$files" || true; } |
    tidy --checks=-clang-analyzer-*,-performance-*,-concurrency-*,-bugprone-implicit-widening*
}

# tidy [CLANG-TIDY OPTION...]: runs it on the sources named on standard input, if there
# are any.
tidy() {
  { grep . || true; } | xargs -r -d '\n' -n 1 -P "$jobs" clang-tidy-14 --quiet -p build/tidy "$@"
}

tidy_sources() {
  if [[ -n "${TIDY_FILES:-}" ]]; then
    sources .cc | grep -E "$TIDY_FILES"
  else
    /usr/bin/python3 deploy/checks/changed_sources.py --base "${TIDY_BASE:-}" \
      --commands build/tidy/compile_commands.json
  fi
}

summary=()
started=$SECONDS

# cpu_of FILE: CPU seconds of all children of this shell, from the second line of
# the output of `times`, such as "1m2.345s 0m6.789s". A command substitution would be
# another shell, with its own children.
cpu_of() {
  awk 'NR == 2 { for (i = 1; i <= 2; i++) { split($i, t, /[ms]/); s += t[1] * 60 + t[2] }
                 printf "%d\n", s }' "$1"
}
times_file=$(mktemp)
trap 'rm -f "$times_file"' EXIT

# line NAME VERDICT WALL_SECONDS CPU_SECONDS
line() {
  printf '%-10s %-7s %3d:%02d %3d:%02d\n' "$1" "$2" $(($3 / 60)) $(($3 % 60)) \
    $(($4 / 60)) $(($4 % 60))
}

# Sets `status`. The stage is a subshell, so that -e ends only the stage. No command
# here may be in a condition, where bash would ignore -e inside.
run_stage() {
  local begun=$SECONDS cpu_before cpu_after
  times >"$times_file"
  cpu_before=$(cpu_of "$times_file")
  printf '\n=== %s\n' "$1"
  set +e
  (
    set -e
    "stage_$1"
  )
  status=$?
  set -e
  local verdict=passed
  ((status == 0)) || verdict=FAILED
  times >"$times_file"
  cpu_after=$(cpu_of "$times_file")
  summary+=("$(line "$1" "$verdict" $((SECONDS - begun)) $((cpu_after - cpu_before)))")
}

print_summary() {
  printf '\n=== summary (minutes of wall clock, of CPU)\n'
  printf '%s\n' "${summary[@]}"
  times >"$times_file"
  line all "$1" $((SECONDS - started)) "$(cpu_of "$times_file")"
}

stages=("$@")
((${#stages[@]})) || stages=("${default_stages[@]}")
for stage in "${stages[@]}"; do
  if [[ " ${all_stages[*]} " != *" $stage "* ]]; then
    echo "no stage '$stage'; there are: ${all_stages[*]}" >&2
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
