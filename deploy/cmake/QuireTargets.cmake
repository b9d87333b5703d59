# SPDX-License-Identifier: Apache-2.0
# Functions for every target of the project: one warning policy, one sanitizer
# switch, and the settings of the compiler cache and the precompiled headers.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()
# CHECKs are never compiled out; assert() is only for conditions that tests exercise.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O3 -g1")
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O3 -g1")
# Without debug information, which takes a tenth of the compile time of tests and a
# third of the objects: reports name functions, and UBSan's name lines.
set(CMAKE_CXX_FLAGS_SANITIZE "-O1 -fno-omit-frame-pointer")
set(CMAKE_C_FLAGS_SANITIZE "-O1 -fno-omit-frame-pointer")
if(QUIRE_SANITIZE MATCHES "thread")
  # tsan_suppressions.cc names inline functions, which only line tables show.
  string(APPEND CMAKE_CXX_FLAGS_SANITIZE " -gline-tables-only")
endif()

find_program(QUIRE_CCACHE ccache)
if(QUIRE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
    "${CMAKE_COMMAND};-E;env;CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime;CCACHE_BASEDIR=${CMAKE_SOURCE_DIR};CCACHE_NOHASHDIR=1;${QUIRE_CCACHE}")
endif()

set(QUIRE_WARNINGS -Wall -Wextra -Wconversion -Wshadow -Wnon-virtual-dtor -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  list(APPEND QUIRE_WARNINGS -Wthread-safety)
else()
  # g++ 12 warns of overlaps and sizes in std::string's code that do not exist
  # (GCC bugs 105651 and 105329).
  list(APPEND QUIRE_WARNINGS -Wno-restrict -Wno-stringop-overflow)
  if(QUIRE_UNITY)
    # It takes a source in a batch for a header.
    list(APPEND QUIRE_WARNINGS -Wno-subobject-linkage)
  endif()
endif()
# For all targets, as some imported ones require it: a precompiled header works only
# for sources that are compiled with the same macros.
add_compile_options(-pthread)
if(QUIRE_SANITIZE)
  add_compile_options(-fsanitize=${QUIRE_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${QUIRE_SANITIZE})
endif()
# ld takes three times as long: 0.48 s of CPU rather than 0.15 for a small test.
find_program(QUIRE_LLD ld.lld PATHS /usr/lib/llvm-14/bin NO_DEFAULT_PATH)
if(QUIRE_LLD)
  cmake_path(GET QUIRE_LLD PARENT_PATH quire_lld_directory)
  # g++ finds it only by -B.
  add_link_options(-fuse-ld=lld $<$<CXX_COMPILER_ID:GNU>:-B${quire_lld_directory}>)
endif()

# Levels of tests. deploy/test.sh without arguments builds the target default_level in the
# presets release and asan, and runs the tests with the label `default`: each test in one
# of the two builds, those of codecs in both. A test with one of these labels is not
# of the default level; the stages of `deploy/test.sh nightly` run all.
#   tree       checks of the sources: the stage tree runs them
#   nightly    takes long, or depends on foreign programs or their timing
#   smoke      benchmarks on small inputs
#   ecosystem  downloads packages, or drives foreign programs at length
set(quire_other_labels tree nightly smoke ecosystem)
# Tests with this label measure time, memory or sizes of real amounts of text, which
# sanitizers change or make ten times slower: they run in the release build only, from
# a program of their own.
set(quire_measured_label measured)

# quire_batched(RESULT TARGET source ...)
# Sets RESULT to sources that each include up to eight of the given ones, if QUIRE_UNITY:
# headers are parsed and templates are instantiated once in a batch, not in each source,
# which halves the steps of a build from nothing; but a change compiles a batch. Names in
# anonymous namespaces must differ within a directory. (CMake's UNITY_BUILD writes absolute
# paths, which the compiler cache does not find in another checkout.)
set(quire_batch_size 8)
function(quire_batched result target)
  if(NOT QUIRE_UNITY)
    set(${result} ${ARGN} PARENT_SCOPE)
    return()
  endif()
  file(RELATIVE_PATH directory "${CMAKE_SOURCE_DIR}" "${CMAKE_CURRENT_SOURCE_DIR}")
  set(batches)
  set(count 0)
  foreach(source IN LISTS ARGN)
    if(IS_ABSOLUTE "${source}")
      list(APPEND batches "${source}")
      continue()
    endif()
    math(EXPR number "${count} / ${quire_batch_size}")
    string(APPEND text_${number} "#include \"${directory}/${source}\"\n")
    math(EXPR count "${count} + 1")
  endforeach()
  foreach(number RANGE 0 ${count})
    if(DEFINED text_${number})
      set(batch "${CMAKE_BINARY_DIR}/batches/${target}_${number}.cc")
      file(CONFIGURE OUTPUT "${batch}" CONTENT "${text_${number}}" @ONLY)
      list(APPEND batches "${batch}")
    endif()
  endforeach()
  set(${result} ${batches} PARENT_SCOPE)
endfunction()

# Third-party headers are system headers, whose warnings are off.
function(quire_options target)
  target_compile_options(${target} PRIVATE ${QUIRE_WARNINGS})
  target_include_directories(${target} PUBLIC "${CMAKE_SOURCE_DIR}")
endfunction()

# Coverage feedback for fuzzing: libraries and fuzz targets. Only the latter link
# the driver.
function(quire_coverage target)
  if(QUIRE_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()

# For tests and command lines, which take longer to compile than to run. Optimising
# with sanitizers takes most of the time: -O0 compiles a test in 4.8 s of CPU instead
# of 12.4, and a subcommand (CLI11 is headers only) in 11 instead of 22. Without
# sanitizers -O1 takes 5.6 instead of 10.4 and 9 instead of 14.
function(quire_compile_quickly target)
  target_compile_options(${target} PRIVATE
    $<$<CONFIG:Sanitize>:-O0> $<$<CONFIG:RelWithDebInfo>:-O1>
    # At -O1 g++ warns of uninitialised variables that -O3 finds initialised, and
    # of overflows in concatenated strings (GCC bug 105329).
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized;-Wno-array-bounds>)
endfunction()

# For libraries that use gRPC: with sanitizers -O0 compiles a batch of the service in 5.5 s
# of CPU instead of 13.3, and a test waits for gRPC more than for our code.
function(quire_sanitize_quickly target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Sanitize>:-O0>)
endfunction()

# quire_precompiled(NAME KIND HEADERS h ... DEPS lib ...)
# A precompiled header that targets of one kind share: libraries (STATIC), libraries that
# use gRPC (GRPC), libraries for command lines (QUICK) or tests (EXECUTABLE). All of them must have the same
# compiler options: position-independent code, coverage, optimisation. gRPC's headers
# alone take 15 seconds.
function(quire_precompiled name kind)
  cmake_parse_arguments(ARG "" "" "HEADERS;DEPS" ${ARGN})
  set(source "${CMAKE_BINARY_DIR}/precompiled/${name}.cc")
  if(kind STREQUAL "EXECUTABLE")
    file(CONFIGURE OUTPUT "${source}" CONTENT "int main() {}\n")
    add_executable(${name} "${source}")
  else()
    file(CONFIGURE OUTPUT "${source}" CONTENT "\n")
    add_library(${name} STATIC "${source}")
  endif()
  quire_options(${name})
  if(NOT kind STREQUAL "EXECUTABLE")
    quire_coverage(${name})
  endif()
  if(kind STREQUAL "GRPC")
    quire_sanitize_quickly(${name})
  elseif(NOT kind STREQUAL "STATIC")
    quire_compile_quickly(${name})
  endif()
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
  quire_precompiled_options(${name})
endfunction()

# Settings that let the compiler cache handle precompiled headers.
function(quire_precompiled_options target)
  target_compile_options(${target} PRIVATE
    $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>
    $<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>)
endfunction()

function(quire_use_precompiled target from)
  target_precompile_headers(${target} REUSE_FROM ${from})
  quire_precompiled_options(${target})
endfunction()

# The five precompiled headers of the tree, and the common parts of all tests.
# REQUIRES: QuireDependencies.
macro(quire_define_precompiled)
  set(quire_common_headers <functional> <memory> <string> <vector>
    <absl/status/statusor.h> <absl/strings/str_cat.h>)
  quire_precompiled(quire_pch STATIC
    HEADERS ${quire_common_headers} DEPS absl::statusor absl::strings)
  quire_precompiled(quire_grpc_pch GRPC
    HEADERS ${quire_common_headers} <grpcpp/grpcpp.h>
    DEPS absl::statusor absl::strings gRPC::grpc++)
  # Halves the time of CLI11, which is headers only, in each source.
  quire_precompiled(quire_cli_pch QUICK
    HEADERS ${quire_common_headers} <CLI/CLI.hpp>
    DEPS absl::statusor absl::strings quire::cli11)
  if(QUIRE_TESTS)
    quire_precompiled(quire_test_pch EXECUTABLE
      HEADERS ${quire_common_headers} <gmock/gmock.h> <gtest/gtest.h>
      DEPS absl::statusor absl::strings GTest::gmock GTest::gtest)
    quire_precompiled(quire_grpc_test_pch EXECUTABLE
      HEADERS ${quire_common_headers} <gmock/gmock.h> <gtest/gtest.h> <grpcpp/grpcpp.h>
      DEPS absl::statusor absl::strings GTest::gmock GTest::gtest gRPC::grpc++)
    add_library(quire_test_main STATIC "${CMAKE_SOURCE_DIR}/deploy/cmake/test_main.cc")
    quire_options(quire_test_main)
    quire_compile_quickly(quire_test_main)
    target_link_libraries(quire_test_main PRIVATE GTest::gmock GTest::gtest)
    add_library(quire_fuzz_replay_main STATIC EXCLUDE_FROM_ALL
      "${CMAKE_SOURCE_DIR}/deploy/cmake/fuzz_replay_main.cc")
    quire_options(quire_fuzz_replay_main)
  endif()
endmacro()

# Sets `result` if libraries of this directory are batched. Builds without sanitizers compile
# the sources of codecs, archives, papers and testing/ one by one: in a large batch g++
# inlines less, which they would feel.
function(quire_batches_libraries result)
  file(RELATIVE_PATH directory "${CMAKE_SOURCE_DIR}" "${CMAKE_CURRENT_SOURCE_DIR}")
  if(QUIRE_SANITIZE OR NOT directory MATCHES "^(codecs|server/archive|loadtest/papers|testing)(/|$)")
    set(${result} ON PARENT_SCOPE)
  else()
    set(${result} OFF PARENT_SCOPE)
  endif()
endfunction()

# quire_library(NAME [GRPC] [COMMAND_LINE] [SEPARATE] SOURCES a.cc ... DEPS lib ...)
# One library per directory. GRPC: its sources include gRPC's headers. COMMAND_LINE:
# they include CLI11 and are compiled quickly. SEPARATE: they use the same names in
# anonymous namespaces.
function(quire_library name)
  cmake_parse_arguments(ARG "GRPC;COMMAND_LINE;SEPARATE" "" "SOURCES;DEPS" ${ARGN})
  quire_batches_libraries(is_batched)
  if((is_batched OR ARG_COMMAND_LINE) AND NOT ARG_SEPARATE)
    quire_batched(ARG_SOURCES ${name} ${ARG_SOURCES})
  endif()
  add_library(${name} STATIC ${ARG_SOURCES})
  quire_options(${name})
  target_link_libraries(${name} PUBLIC ${ARG_DEPS})
  quire_coverage(${name})
  if(ARG_COMMAND_LINE)
    quire_compile_quickly(${name})
    quire_use_precompiled(${name} quire_cli_pch)
  elseif(ARG_GRPC)
    quire_sanitize_quickly(${name})
    quire_use_precompiled(${name} quire_grpc_pch)
  else()
    quire_use_precompiled(${name} quire_pch)
  endif()
endfunction()

# quire_sources(TARGET a.cc ...)
# Adds the sources of a subdirectory to the library of the directory above.
function(quire_sources target)
  set(sources ${ARGN})
  quire_batches_libraries(is_batched)
  if(is_batched)
    get_filename_component(directory "${CMAKE_CURRENT_SOURCE_DIR}" NAME)
    quire_batched(sources ${target}_${directory} ${ARGN})
  endif()
  target_sources(${target} PRIVATE ${sources})
endfunction()

# quire_header_library(NAME DEPS lib ...)
# A directory with headers only, or a name for several libraries.
function(quire_header_library name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  add_library(${name} INTERFACE)
  target_include_directories(${name} INTERFACE "${CMAKE_SOURCE_DIR}")
  target_link_libraries(${name} INTERFACE ${ARG_DEPS})
endfunction()

# quire_binary(NAME [COMMAND_LINE] SOURCES a.cc ... DEPS lib ...)
# A program: bin/NAME below the build directory. COMMAND_LINE: compiled quickly.
function(quire_binary name)
  cmake_parse_arguments(ARG "COMMAND_LINE" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  quire_options(${name})
  if(ARG_COMMAND_LINE)
    quire_compile_quickly(${name})
  endif()
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
endfunction()

# Ends hanging tests, not slow ones: most tests take a second, the longest a minute
# on two cores, and many times that under other load. A single test of a program
# ends earlier (test_main.cc).
set(quire_test_seconds_max 900)

# quire_test(NAME [GRPC] [ALONE] SOURCES a_test.cc ... DEPS lib ... [LABELS l ...])
# GoogleTest sources, run as one ctest test NAME by a program that holds all tests of
# the directory; the target NAME builds that program. ALONE: in a separate program, as
# its sources replace functions such as operator new. Tests with the label tsan also run
# under ThreadSanitizer, whose build has no others. A test finds files of the repository
# below QUIRE_SOURCE_DIR and binaries below QUIRE_BINARY_DIR (both environment
# variables).
function(quire_test name)
  cmake_parse_arguments(ARG "GRPC;ALONE" "" "SOURCES;DEPS;LABELS" ${ARGN})
  if(NOT QUIRE_TESTS OR (QUIRE_SANITIZE AND quire_measured_label IN_LIST ARG_LABELS))
    return()
  endif()
  if(ARG_ALONE OR quire_measured_label IN_LIST ARG_LABELS)
    quire_add_level(${name} SUITE LABELS ${ARG_LABELS} RESULT ARG_LABELS TARGETS ${name})
    quire_test_program(${name} "${ARG_GRPC}" SOURCES ${ARG_SOURCES} DEPS ${ARG_DEPS})
    quire_add_test(${name} COMMAND ${name} LABELS ${ARG_LABELS})
    return()
  endif()
  get_property(sources DIRECTORY PROPERTY quire_test_sources)
  if(NOT sources)
    cmake_language(DEFER CALL quire_finish_test_program)
  endif()
  set_property(DIRECTORY APPEND PROPERTY quire_test_sources ${ARG_SOURCES})
  set_property(DIRECTORY APPEND PROPERTY quire_test_deps ${ARG_DEPS})
  if(ARG_GRPC)
    set_property(DIRECTORY PROPERTY quire_test_grpc ON)
  endif()
  quire_test_program_name(program)
  add_custom_target(${name} DEPENDS ${program})
  string(REPLACE ";" "," files "${ARG_SOURCES}")
  quire_add_level(${name} SUITE LABELS ${ARG_LABELS} RESULT ARG_LABELS TARGETS ${name})
  quire_add_test(${name} COMMAND ${program} --sources=${files} LABELS ${ARG_LABELS})
endfunction()

# Sets `result` to the program of this directory's tests, such as server_archive_tests.
function(quire_test_program_name result)
  file(RELATIVE_PATH directory "${CMAKE_SOURCE_DIR}" "${CMAKE_CURRENT_SOURCE_DIR}")
  string(REPLACE "/" "_" directory "${directory}")
  set(${result} "${directory}_tests" PARENT_SCOPE)
endfunction()

# Called at the end of a directory with tests.
function(quire_finish_test_program)
  quire_test_program_name(program)
  get_property(sources DIRECTORY PROPERTY quire_test_sources)
  get_property(deps DIRECTORY PROPERTY quire_test_deps)
  get_property(grpc DIRECTORY PROPERTY quire_test_grpc)
  quire_test_program(${program} "${grpc}" SOURCES ${sources} DEPS ${deps})
endfunction()

function(quire_test_program name grpc)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  if(QUIRE_SANITIZE MATCHES "thread")
    list(APPEND ARG_SOURCES "${CMAKE_SOURCE_DIR}/deploy/cmake/tsan_suppressions.cc")
  endif()
  list(REMOVE_DUPLICATES ARG_DEPS)
  quire_batched(sources ${name} ${ARG_SOURCES})
  add_executable(${name} ${sources})
  quire_options(${name})
  quire_compile_quickly(${name})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} quire_test_main GTest::gtest GTest::gmock)
  if(grpc)
    quire_use_precompiled(${name} quire_grpc_test_pch)
  else()
    quire_use_precompiled(${name} quire_test_pch)
  endif()
endfunction()

# quire_script_test(NAME COMMAND ... [LABELS l ...])
# A test that runs the programs from outside. The default level runs it on the release
# build, which takes half of the time of sanitizers.
function(quire_script_test name)
  if(NOT QUIRE_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "COMMAND;LABELS" ${ARGN})
  if(QUIRE_SANITIZE AND quire_measured_label IN_LIST ARG_LABELS)
    return()
  endif()
  string(REGEX MATCHALL "TARGET_FILE:[^>]+" targets "${ARG_COMMAND}")
  list(TRANSFORM targets REPLACE "TARGET_FILE:" "")
  quire_add_level(${name} LABELS ${ARG_LABELS} RESULT ARG_LABELS
    TARGETS quired quire quire-http quire-loadtest ${targets})
  quire_add_test(${name} COMMAND ${ARG_COMMAND} LABELS ${ARG_LABELS})
endfunction()

# quire_add_level(NAME [SUITE] [LABELS l ...] RESULT variable TARGETS target ...)
# Sets `variable` to the labels, with `suite` for a suite and `default` if this build runs
# the test in the default level, which then builds the targets.
function(quire_add_level name)
  cmake_parse_arguments(ARG "SUITE" "RESULT" "LABELS;TARGETS" ${ARGN})
  set(labels ${ARG_LABELS})
  if(ARG_SUITE)
    list(APPEND labels suite)
  endif()
  set(is_default ON)
  foreach(label IN LISTS quire_other_labels)
    if(label IN_LIST labels)
      set(is_default OFF)
    endif()
  endforeach()
  file(RELATIVE_PATH directory "${CMAKE_SOURCE_DIR}" "${CMAKE_CURRENT_SOURCE_DIR}")
  if(QUIRE_SANITIZE)
    if(NOT ARG_SUITE OR quire_measured_label IN_LIST labels)
      set(is_default OFF)
    endif()
  elseif(ARG_SUITE AND NOT quire_measured_label IN_LIST labels AND NOT directory MATCHES "^codecs(/|$)")
    set(is_default OFF)
  endif()
  if(is_default)
    list(APPEND labels default)
    set_property(GLOBAL APPEND PROPERTY quire_default_targets ${ARG_TARGETS})
  endif()
  set(${ARG_RESULT} ${labels} PARENT_SCOPE)
endfunction()

# Defines default_level. REQUIRES: all tests are defined.
function(quire_define_default_level)
  get_property(targets GLOBAL PROPERTY quire_default_targets)
  list(REMOVE_DUPLICATES targets)
  add_custom_target(default_level)
  if(targets)
    add_dependencies(default_level ${targets})
  endif()
endfunction()

# quire_add_test(NAME COMMAND ... [LABELS l ...])
function(quire_add_test name)
  cmake_parse_arguments(ARG "" "" "COMMAND;LABELS" ${ARGN})
  add_test(NAME ${name} COMMAND ${ARG_COMMAND})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${quire_test_seconds_max}
    ENVIRONMENT "QUIRE_SOURCE_DIR=${CMAKE_SOURCE_DIR};QUIRE_BINARY_DIR=${CMAKE_BINARY_DIR}")
endfunction()

# quire_fuzz(NAME SOURCES a_fuzz.cc ... DEPS lib ...)
# The binary is fuzz/NAME below the build directory, the target fuzz_targets builds all, and
# deploy/test.sh runs them. Without
# QUIRE_FUZZ, AddressSanitizer's build has a test NAME that runs the target on its corpus
# (checks/fuzz_corpora.py).
function(quire_fuzz name)
  if(NOT QUIRE_FUZZ AND NOT (QUIRE_TESTS AND QUIRE_SANITIZE MATCHES "address"))
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  quire_options(${name})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/fuzz")
  if(QUIRE_FUZZ)
    quire_coverage(${name})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    if(NOT TARGET fuzz_targets)
      add_custom_target(fuzz_targets)
    endif()
    add_dependencies(fuzz_targets ${name})
    return()
  endif()
  quire_compile_quickly(${name})
  quire_use_precompiled(${name} quire_test_pch)
  target_link_libraries(${name} PRIVATE quire_fuzz_replay_main GTest::gtest GTest::gmock)
  quire_add_level(${name} SUITE RESULT labels TARGETS ${name})
  quire_add_test(${name} LABELS ${labels} fuzz_replay
    COMMAND "${QUIRE_PYTHON}" "${CMAKE_SOURCE_DIR}/deploy/checks/fuzz_corpora.py" replay
      $<TARGET_FILE:${name}>)
endfunction()

# quire_benchmark(NAME SOURCES a_benchmark.cc ... DEPS lib ...)
# Registered with ctest in a mode that runs everything once on small inputs, which keeps it
# working.
function(quire_benchmark name)
  if(NOT QUIRE_BENCHMARKS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  quire_options(${name})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} benchmark::benchmark benchmark::benchmark_main)
  if(QUIRE_TESTS)
    add_test(NAME ${name}_smoke COMMAND ${name} --benchmark_min_time=0.001)
    set_tests_properties(${name}_smoke PROPERTIES LABELS "smoke" TIMEOUT ${quire_test_seconds_max}
      ENVIRONMENT "QUIRE_BENCHMARK_DOCUMENTS=5000;QUIRE_BENCHMARK_DICTIONARY=${PROJECT_SOURCE_DIR}/server/archive/FORMAT.md")
  endif()
endfunction()
