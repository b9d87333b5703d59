#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds Quire and tests it; called by continuous integration. Prints the time of each stage,
# in minutes of wall clock and of CPU, and last the sum of all tests: "N passed, N failed".
#
# usage: deploy/test.sh [nightly | STAGE...]
#
# Without arguments, the default level: what a defect in a change would most probably break.
# 18 minutes on two fast cores with an empty compiler cache. Its stages, in this order:
#   bootstrap  install the required Debian packages
#   tree       formatting, shell syntax, layers, licences, names, stages
#   programs   build the programs and the tests of codecs with g++, optimised; run
#              the tests from outside and those that measure
#   checked    build all tests with clang, AddressSanitizer, UndefinedBehaviorSanitizer
#              and thread-safety analysis; run them and the fuzz corpora
#   races      the suites with threads (label `tsan`) of directories that changed,
#              under ThreadSanitizer
#   changes    clang-tidy on the sources that changed since the merge base with
#              main, or on main in its last commits, at most 40 of them
#              (checks/changed_sources.py chooses and reports them);
#              since the commit TIDY_BASE if that is set; on all that match
#              TIDY_FILES if that is set
#
# nightly: everything, in at most 100 minutes. Its stages are bootstrap, tree and:
#   release    build all with g++
#   ctest      all tests of that build but the label `ecosystem`
#   asan       build all with clang and the sanitizers, with coverage; all tests but
#              those that measure (label `measured`), run mainly foreign code
#              (`foreign`) or kill hundreds of builds that other tests let end (`killed`)
#   fuzz       build the fuzz targets with the sanitizers, with coverage; run each
#              for FUZZ_SECONDS (default 20)
#   tsan       the suites with threads (label `tsan`) under ThreadSanitizer; others
#              report races inside of Debian's gRPC, which is built without it
#   tidy       clang-tidy on all sources
#   ecosystem  tests of the release build that drive foreign programs at length
#              (label `ecosystem`), which download packages of other languages
#              or need Chromium (bootstrap.sh replay)
# By name only:
#   hour       the fuzz targets for an hour in all, and random inputs for an hour
#   mutations  bugs that tests must catch, one at a time (checks/mutation_run.py): hours
#
# JOBS sets the number of parallel jobs (default: one per core).
set -euo pipefail
cd "$(dirname "$0")/.."

jobs=${JOBS:-$(nproc)}
fuzz_seconds=${FUZZ_SECONDS:-20}
default_stages=(bootstrap tree programs checked races changes)
nightly_stages=(bootstrap tree release ctest asan fuzz tsan tidy ecosystem)
all_stages=("${default_stages[@]}" "${nightly_stages[@]:2}" hour mutations)
# Results of this run: NAME.xml of ctest, NAME.passed or NAME.failed of a stage.
records=build/records

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

# configure_and_build PRESET TARGET [CMAKE OPTION...]
configure_and_build() {
  cmake --preset "$1" "${@:3}"
  cmake --build "build/$1" -j "$jobs" --target "$2"
}

# run_ctest BUILD [CTEST OPTION...]: half of the tests wait for a server or a clock most of
# the time, so there are more of them than cores.
run_ctest() {
  ctest --test-dir "build/$1" -j $((jobs + 1)) --output-on-failure --no-tests=error \
    --output-junit "$PWD/$records/$stage.xml" "${@:2}"
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
  for check in layers spdx names temporaries stages changed_sources mutation_run readme_figures \
    test_times; do
    "deploy/checks/${check}_test.py"
  done
}

stage_programs() {
  configure_and_build release default_level
  run_ctest release -L '^default$'
}

stage_checked() {
  configure_and_build asan default_level
  run_ctest asan -L '^default$'
}

stage_release() { configure_and_build release all; }

# Tests try more in these stages, and other random trials in each run.
set_nightly() {
  export QUIRE_TEST_LEVEL=nightly QUIRE_TEST_SEED=${QUIRE_TEST_SEED:-$SRANDOM}
  echo "QUIRE_TEST_SEED=$QUIRE_TEST_SEED"
}

stage_ctest() {
  set_nightly
  run_ctest release -LE 'ecosystem|tree'
}

stage_ecosystem() {
  set_nightly
  run_ctest release -L ecosystem
}

# One build for both stages: the fuzz targets are built with the sanitizers and
# the coverage feedback, which the tests do not use.
stage_asan() {
  set_nightly
  configure_and_build fuzz all -DQUIRE_TESTS=ON
  run_ctest fuzz -LE 'tree|measured|smoke|foreign|killed|ecosystem'
}

# The options are those of the stage asan, so that one build serves both.
build_fuzz_targets() { configure_and_build fuzz fuzz_targets -DQUIRE_TESTS=ON; }

# fuzz_targets SECONDS: each target for as long, a core each.
fuzz_targets() {
  local targets=(build/fuzz/fuzz/*_fuzz)
  export -f fuzz_one
  printf '%s\n' "${targets[@]}" | xargs -d '\n' -I{} -P "$jobs" bash -c 'fuzz_one "$@"' fuzz_one {} "$1"
  echo "${#targets[@]} targets ended without a finding"
}

# fuzz_one TARGET SECONDS: starts from the corpus next to the target's source, if any
# (checks/fuzz_corpora.py). The corpus below build/ keeps growing over runs.
fuzz_one() {
  local name corpus log
  name=$(basename "$1")
  corpus=build/fuzz/corpus/$name
  log=build/fuzz/$name.log
  /usr/bin/python3 deploy/checks/fuzz_corpora.py unpack "$name" "$corpus"
  if ! "$1" -max_total_time="$2" -timeout=20 -rss_limit_mb=2048 \
    -print_final_stats=1 -artifact_prefix="build/fuzz/$name-" "$corpus" >"$log" 2>&1; then
    tail -n 60 "$log" >&2
    return 1
  fi
  printf '%-32s %s\n' "$name" "$(sed -n 's/^Done \(.*\)/\1/p' "$log")"
}

stage_fuzz() {
  build_fuzz_targets
  fuzz_targets "$fuzz_seconds"
}

stage_hour() {
  build_fuzz_targets
  cmake --build build/fuzz -j "$jobs" --target random_blocks_test
  local targets=(build/fuzz/fuzz/*_fuzz)
  fuzz_targets $((3600 * jobs / ${#targets[@]}))
  build/fuzz/server/ingest/random_blocks_test --minutes 60
}

stage_mutations() { deploy/checks/mutation_run.py; }

# build_and_test_tsan TEST...: a suite's target has the suite's name.
build_and_test_tsan() {
  cmake --build build/tsan -j "$jobs" --target "$@"
  run_ctest tsan -R "^($(IFS='|'; echo "$*"))\$"
}

stage_tsan() {
  set_nightly
  cmake --preset tsan
  local suites
  mapfile -t suites < <(ctest --test-dir build/tsan -N -L '^tsan$' |
    sed -n 's/^ *Test *#[0-9]*: //p')
  build_and_test_tsan "${suites[@]}"
}

stage_races() {
  cmake --preset tsan
  local suites
  mapfile -t suites < <(/usr/bin/python3 deploy/checks/changed_sources.py \
    --base "${TIDY_BASE:-}" --suites build/tsan)
  if ((${#suites[@]})); then
    build_and_test_tsan "${suites[@]}"
  fi
}

# The compile commands of `dev`, without precompiled headers, of which clang-tidy
# would need its own. Builds only generated headers.
configure_tidy() {
  cmake --preset dev -B build/tidy -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON
  local headers
  mapfile -t headers < <(ninja -C build/tidy -t targets all |
    sed -n 's/^\(generated\/.*\.pb\.h\): .*/\1/p')
  ninja -C build/tidy "${headers[@]}"
}

# tidy: runs clang-tidy on the sources named on standard input, a line each.
tidy() { /usr/bin/python3 deploy/checks/tidy_run.py --jobs "$jobs" build/tidy; }

stage_tidy() {
  configure_tidy
  sources .cc | tidy
}

stage_changes() {
  local files
  configure_tidy
  if [[ -n "${TIDY_FILES:-}" ]]; then
    files=$(sources .cc | grep -E "$TIDY_FILES")
  else
    files=$(/usr/bin/python3 deploy/checks/changed_sources.py --base "${TIDY_BASE:-}" \
      --commands build/tidy/compile_commands.json)
  fi
  tidy <<<"$files"
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
  stage=$1
  times >"$times_file"
  cpu_before=$(cpu_of "$times_file")
  printf '\n=== %s\n' "$stage"
  set +e
  (
    set -e
    "stage_$stage"
  )
  status=$?
  set -e
  local verdict=passed
  if ((status != 0)); then
    verdict=FAILED
    failed+=("$stage")
    touch "$records/$stage.failed"
  else
    touch "$records/$stage.passed"
  fi
  times >"$times_file"
  cpu_after=$(cpu_of "$times_file")
  summary+=("$(line "$stage" "$verdict" $((SECONDS - begun)) $((cpu_after - cpu_before)))")
}

print_summary() {
  local verdict=passed
  ((${#failed[@]} == 0)) || verdict=FAILED
  printf '\n=== summary (minutes of wall clock, of CPU)\n'
  printf '%s\n' "${summary[@]}"
  times >"$times_file"
  line all "$verdict" $((SECONDS - started)) "$(cpu_of "$times_file")"
  ((${#failed[@]} == 0)) ||
    echo "deploy/test.sh: failed: ${failed[*]}; again with: deploy/test.sh ${failed[*]}" >&2
  /usr/bin/python3 deploy/checks/test_times.py sums "$records" || true
}

stages=("$@")
# The default level ends at its first failed stage, nightly at its last stage.
go_on=
if ((${#stages[@]} == 0)); then
  stages=("${default_stages[@]}")
elif [[ "${stages[*]}" == nightly ]]; then
  stages=("${nightly_stages[@]}")
  go_on=yes
fi
for stage in "${stages[@]}"; do
  if [[ " ${all_stages[*]} " != *" $stage "* ]]; then
    echo "no stage '$stage'; there are: nightly ${all_stages[*]}" >&2
    exit 2
  fi
done
rm -rf "$records"
mkdir -p "$records"
failed=()
for stage in "${stages[@]}"; do
  run_stage "$stage"
  ((status == 0)) || [[ -n "$go_on" ]] || break
done
print_summary
((${#failed[@]} == 0))
