# SPDX-License-Identifier: Apache-2.0
# All foreign libraries, from Debian 12 (see deploy/bootstrap.sh).
find_package(Threads REQUIRED)
# The order matters: MODULE mode defines the protobuf targets that gRPC's own
# package file then finds.
find_package(Protobuf 3.21 MODULE REQUIRED)
find_package(absl CONFIG REQUIRED)
find_package(gRPC 1.51 CONFIG REQUIRED)
find_package(prometheus-cpp CONFIG REQUIRED)
find_package(OpenSSL 3 REQUIRED)
find_package(CURL 7.85 REQUIRED)
find_package(spdlog 1.10 CONFIG REQUIRED)
find_package(ZLIB REQUIRED)
find_package(LibLZMA REQUIRED)
find_package(LibArchive REQUIRED)
if(QUIRE_TESTS)
  find_package(GTest REQUIRED)
endif()
if(QUIRE_BENCHMARKS)
  find_package(benchmark REQUIRED)
endif()

include(QuireFindLibrary)
quire_find_codec_libraries()
quire_find_library(divsufsort64 divsufsort64 divsufsort64.h)
quire_find_library(uring uring liburing.h)
quire_find_library(systemd systemd systemd/sd-daemon.h)
quire_find_library(microhttpd microhttpd microhttpd.h)
if(QUIRE_TESTS)
  quire_find_library(brotlienc brotlienc brotli/encode.h)
endif()
quire_find_library(re2 re2 re2/re2.h)
# The static library: the shared one fills tables of codes that we do not use at each
# start of a program, which takes 12 ms.
quire_find_library(sdsl libsdsl.a sdsl/sd_vector.hpp)
target_link_libraries(quire::sdsl INTERFACE quire::divsufsort quire::divsufsort64)

find_path(QUIRE_CLI11_INCLUDE CLI/CLI.hpp REQUIRED)
add_library(quire::cli11 INTERFACE IMPORTED)
target_include_directories(quire::cli11 INTERFACE "${QUIRE_CLI11_INCLUDE}")

find_program(QUIRE_HELP2MAN help2man REQUIRED)

find_path(QUIRE_TOML_INCLUDE toml++/toml.h REQUIRED)
add_library(quire::toml INTERFACE IMPORTED)
target_include_directories(quire::toml INTERFACE "${QUIRE_TOML_INCLUDE}")

find_path(QUIRE_JSON_INCLUDE nlohmann/json.hpp REQUIRED)
add_library(quire::json INTERFACE IMPORTED)
target_include_directories(quire::json INTERFACE "${QUIRE_JSON_INCLUDE}")

# Debian's own Python, which has the modules that bootstrap.sh installs; another
# one may come first in PATH.
set(QUIRE_PYTHON /usr/bin/python3 CACHE FILEPATH "runs the script tests")
