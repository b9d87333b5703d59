# SPDX-License-Identifier: Apache-2.0
# How every target of the project is made: one warning policy, one sanitizer
# switch, one place for the compiler cache and the precompiled headers.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()
# CHECKs are never compiled out; assert() is only for what tests exercise.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O3 -g1")
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O3 -g1")
set(CMAKE_CXX_FLAGS_SANITIZE "-O1 -g1 -fno-omit-frame-pointer")
set(CMAKE_C_FLAGS_SANITIZE "-O1 -g1 -fno-omit-frame-pointer")

find_program(QUIRE_CCACHE ccache)
if(QUIRE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
    "${CMAKE_COMMAND};-E;env;CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime;CCACHE_BASEDIR=${CMAKE_SOURCE_DIR};CCACHE_NOHASHDIR=1;${QUIRE_CCACHE}")
endif()

set(QUIRE_WARNINGS -Wall -Wextra -Wconversion -Wshadow -Wnon-virtual-dtor -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  list(APPEND QUIRE_WARNINGS -Wthread-safety)
else()
  # g++ 12 sees overlaps in std::string's own code that are not there (GCC bug
  # 105651).
  list(APPEND QUIRE_WARNINGS -Wno-restrict)
endif()
if(QUIRE_SANITIZE)
  add_compile_options(-fsanitize=${QUIRE_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${QUIRE_SANITIZE})
endif()
if(QUIRE_FUZZ)
  # Coverage feedback for all of our code; only the targets link the driver.
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# Third-party headers come in as system headers: their warnings are not ours.
function(quire_options target)
  target_compile_options(${target} PRIVATE ${QUIRE_WARNINGS})
  target_include_directories(${target} PUBLIC "${CMAKE_SOURCE_DIR}")
endfunction()

# quire_library(NAME [PCH] SOURCES a.cc ... DEPS lib ...)
# One library per folder. PCH precompiles the gRPC and protobuf headers.
function(quire_library name)
  cmake_parse_arguments(ARG "PCH" "" "SOURCES;DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  quire_options(${name})
  target_link_libraries(${name} PUBLIC ${ARG_DEPS})
  if(ARG_PCH)
    target_precompile_headers(${name} PRIVATE <grpcpp/grpcpp.h>)
    target_compile_options(${name} PRIVATE
      $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess> $<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>)
  endif()
endfunction()

# quire_binary(NAME SOURCES a.cc ... DEPS lib ...)
# A program for users: bin/NAME below the build folder.
function(quire_binary name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  quire_options(${name})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
endfunction()

# Ends what hangs, not what is slow: most tests take a second, the longest a minute
# on two cores, and many times that beside other work.
set(quire_test_seconds_max 900)

# quire_test(NAME SOURCES a_test.cc ... DEPS lib ... [LABELS l ...])
# A GoogleTest binary, run as one ctest test of the same name; with the label tsan
# it is run under ThreadSanitizer, too (tsan_suppressions.cc). A test finds
# files of the repository below QUIRE_SOURCE_DIR and binaries below
# QUIRE_BINARY_DIR (both environment variables).
function(quire_test name)
  if(NOT QUIRE_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LABELS" ${ARGN})
  if("tsan" IN_LIST ARG_LABELS)
    list(APPEND ARG_SOURCES "${CMAKE_SOURCE_DIR}/deploy/cmake/tsan_suppressions.cc")
  endif()
  add_executable(${name} ${ARG_SOURCES})
  quire_options(${name})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gtest GTest::gmock GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${quire_test_seconds_max}
    ENVIRONMENT "QUIRE_SOURCE_DIR=${CMAKE_SOURCE_DIR};QUIRE_BINARY_DIR=${CMAKE_BINARY_DIR}")
endfunction()

# quire_script_test(NAME COMMAND ... [LABELS l ...])
function(quire_script_test name)
  if(NOT QUIRE_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "COMMAND;LABELS" ${ARGN})
  add_test(NAME ${name} COMMAND ${ARG_COMMAND})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${quire_test_seconds_max}
    ENVIRONMENT "QUIRE_SOURCE_DIR=${CMAKE_SOURCE_DIR};QUIRE_BINARY_DIR=${CMAKE_BINARY_DIR}")
endfunction()

# quire_fuzz(NAME SOURCES a_fuzz.cc ... DEPS lib ...)
# The binary is fuzz/NAME below the build folder; deploy/test.sh runs all of them.
function(quire_fuzz name)
  if(NOT QUIRE_FUZZ)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  quire_options(${name})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/fuzz")
endfunction()

# quire_benchmark(NAME SOURCES a_benchmark.cc ... DEPS lib ...)
# Registered with ctest in a mode that runs everything once, so it cannot rot.
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
    set_tests_properties(${name}_smoke PROPERTIES LABELS "smoke" TIMEOUT ${quire_test_seconds_max})
  endif()
endfunction()
