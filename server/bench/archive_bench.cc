// SPDX-License-Identifier: GPL-3.0-or-later
//
// How fast the blocks of a real archive come out of storage, without gRPC, and
// how fast they can be decoded at all: the two that loadtest/device_bench.py
// compares with what the disk can do. Nothing is cached but by the kernel, and
// with --direct-io not even there.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/status_macros.h"
#include "server/archive/archive.h"
#include "server/bench/bench_requests.h"
#include "server/bench/decode_loop.h"
#include "server/bench/storage_loop.h"
#include "server/storage/block_store.h"

namespace quire {
namespace {

// What a scan asks for at once.
constexpr uint64_t kScanStepSizeBytes = 1 << 20;

struct Arguments {
  std::string archive;
  std::string what = "storage";
  std::string mode = "random";
  std::string range_size = "16KiB";
  bool direct_io = false;
  uint32_t in_flight = 64;
  uint32_t device_depth = 32;
  double seconds = 3;
  uint32_t rounds = 1;
  uint64_t seed = 1;

  bool is_scan() const { return mode == "scan"; }
};

// Of all threads, user and system.
double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec +
                                    usage.ru_stime.tv_usec);
}

// What is compared, and what a turn of either needs.
struct Bench {
  const Arguments& arguments;
  std::shared_ptr<const Archive> archive;
  std::unique_ptr<BenchRequests> requests;
  std::optional<StoredBlocks> stored;
  std::unique_ptr<BlockStore> store;
};

absl::StatusOr<Bench> Open(const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(
      std::shared_ptr<const Archive> archive,
      Archive::Open(
          arguments.archive,
          {.direct_io = arguments.direct_io ? DirectIo::kOn : DirectIo::kOff}));
  QUIRE_ASSIGN_OR_RETURN(const uint64_t range_size_bytes,
                         ParseByteSize(arguments.range_size));
  if (archive->info().size_bytes == 0 || range_size_bytes == 0) {
    return absl::InvalidArgumentError("there is nothing to read");
  }
  Bench bench{.arguments = arguments,
              .archive = archive,
              .requests = std::make_unique<BenchRequests>(
                  archive, arguments.is_scan(),
                  arguments.is_scan() ? kScanStepSizeBytes : range_size_bytes,
                  arguments.seed),
              .stored = std::nullopt,
              .store = nullptr};
  if (arguments.mode == "documents") {
    bench.requests->DrawDocuments();
  }
  if (arguments.what != "storage") {
    QUIRE_ASSIGN_OR_RETURN(bench.stored, StoredBlocks::Load(*archive));
  }
  if (arguments.what != "decode") {
    BlockStoreOptions options;
    options.cache_size_bytes = 0;
    options.device_depth = arguments.device_depth;
    options.direct_io = arguments.direct_io;
    QUIRE_ASSIGN_OR_RETURN(bench.store, BlockStore::Create(options));
  }
  return bench;
}

absl::StatusOr<BenchCounts> TakeTurn(Bench& bench, bool is_storage) {
  const Arguments& arguments = bench.arguments;
  const BenchClock::time_point end =
      BenchClock::now() + std::chrono::duration_cast<BenchClock::duration>(
                              std::chrono::duration<double>(arguments.seconds));
  return is_storage
             ? ReadFromStore(bench.archive, *bench.requests,
                             arguments.is_scan() ? FetchClass::kScan
                                                 : FetchClass::kInteractive,
                             arguments.in_flight, end, *bench.store)
             : DecodeFromMemory(*bench.archive, *bench.stored, *bench.requests,
                                end);
}

absl::Status TakeAndPrintTurn(Bench& bench, bool is_storage) {
  const BlockStoreStats before =
      is_storage ? bench.store->Stats() : BlockStoreStats();
  const double cpu_before = CpuSeconds();
  const BenchClock::time_point start = BenchClock::now();
  QUIRE_ASSIGN_OR_RETURN(const BenchCounts counts, TakeTurn(bench, is_storage));
  const double seconds =
      std::chrono::duration<double>(BenchClock::now() - start).count();
  const double cpu_seconds = CpuSeconds() - cpu_before;
  const BlockStoreStats after =
      is_storage ? bench.store->Stats() : BlockStoreStats();
  absl::PrintF(
      "{\"what\": \"%s\", \"requests\": %d, \"blocks\": %d, \"text_bytes\": "
      "%d, \"seconds\": %.6f, \"cpu_seconds\": %.6f, \"device_reads\": %d, "
      "\"device_read_bytes\": %d}\n",
      is_storage ? "storage" : "decode", counts.requests, counts.blocks,
      counts.text_size_bytes, seconds, cpu_seconds,
      after.device_reads - before.device_reads,
      after.device_read_bytes - before.device_read_bytes);
  return absl::OkStatus();
}

absl::Status Run(const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(Bench bench, Open(arguments));
  for (uint32_t round = 0; round < arguments.rounds; ++round) {
    // Each is first as often as last.
    for (const bool is_storage : {round % 2 != 0, round % 2 == 0}) {
      if (is_storage ? bench.store != nullptr : bench.stored.has_value()) {
        QUIRE_RETURN_IF_ERROR(TakeAndPrintTurn(bench, is_storage));
      }
    }
  }
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  CLI::App app(
      "Reads an archive's blocks and prints how many came, a line of JSON for "
      "each turn.",
      "archive_bench");
  Arguments arguments;
  app.add_option("ARCHIVE", arguments.archive)->required();
  app.add_option("--what", arguments.what,
                 "storage (read and decode), decode (out of memory), or both "
                 "in turns")
      ->check(CLI::IsMember({"storage", "decode", "both"}))
      ->capture_default_str();
  app.add_option("--mode", arguments.mode,
                 "random (unaligned ranges), documents (whole, at random) or "
                 "scan (all, in order)")
      ->check(CLI::IsMember({"random", "documents", "scan"}))
      ->capture_default_str();
  app.add_option("--range-size", arguments.range_size)->capture_default_str();
  app.add_flag("--direct-io", arguments.direct_io, "past the page cache");
  app.add_option("--in-flight", arguments.in_flight, "requests")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  app.add_option("--device-depth", arguments.device_depth)
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--seconds", arguments.seconds, "of a turn")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--rounds", arguments.rounds, "turns of each")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  app.add_option("--seed", arguments.seed)->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (const absl::Status status = Run(arguments); !status.ok()) {
    std::cerr << "archive_bench: " << status << "\n";
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace quire

int main(int argc, char** argv) {
  try {
    return quire::Main(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "archive_bench: " << error.what() << "\n";
    return 1;
  }
}
