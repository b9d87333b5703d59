// SPDX-License-Identifier: GPL-3.0-or-later
//
// Prints results of the scheduler on modelled hard disks, as tables; in virtual
// time, so equal on every machine. With an extent in bytes, prints live traffic
// on that much of one disk: the reference of loadtest/bench/live_disk.py.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

#include "server/storage/model/hard_disk_model.h"
#include "server/storage/scheduler/elevator_scheduler.h"
#include "server/storage/simulation/scheduler_simulation.h"

namespace quire {
namespace {

constexpr uint64_t kSmallExtent = uint64_t{13} << 29;  // 6.5 GiB
constexpr uint64_t kExtentMin = 1 << 20;

struct Disk {
  std::string name;
  HardDiskOptions options;
  uint64_t extent_size_bytes = 0;
};

SimulationResult Run(const Disk& disk,
                     const std::vector<SimulatedClients>& clients) {
  auto options = disk.options.priorities
                     ? ElevatorScheduler::Options::WithPriorities()
                     : ElevatorScheduler::Options();
  options.pending_requests_max = 1 << 20;
  ElevatorScheduler scheduler(options);
  HardDiskModel drive(disk.options);
  return Simulate(scheduler, drive, /*drive_depth=*/32, clients, /*seed=*/1);
}

void Print(const std::string& what, const SimulatedTimes& times,
           double random) {
  std::printf("| %s | %.0f | %.2f | %.0f | %.0f | %.0f | %.2f |\n",
              what.c_str(), times.per_second, times.per_second / random,
              times.p50_ms, times.p99_ms, times.longest_ms,
              times.longest_ms / std::max(times.mean_ms, 1e-9));
}

SimulatedClients Batch(const Disk& disk, uint64_t count) {
  return {.fetch_class = FetchClass::kBatch,
          .request_count = count,
          .outstanding = count,
          .extent_size_bytes = disk.extent_size_bytes};
}

SimulatedClients Live(const Disk& disk, uint64_t count, uint64_t outstanding) {
  return {.request_count = count,
          .outstanding = outstanding,
          .extent_size_bytes = disk.extent_size_bytes};
}

void PrintBatches(const Disk& disk, double random) {
  Print("BATCH of 10,000", Run(disk, {Batch(disk, 10'000)}).clients[0], random);
  const SimulationResult large = Run(disk, {Batch(disk, 100'000)});
  const double streaming_ms =
      HardDiskModel(disk.options)
          .SequentialMs(std::min(disk.extent_size_bytes, kSmallExtent));
  Print(
      disk.extent_size_bytes == kSmallExtent
          ? "BATCH of 100,000 (" +
                std::to_string(std::lround(streaming_ms / 10 / large.seconds)) +
                " % of streaming)"
          : "BATCH of 100,000",
      large.clients[0], random);
}

void PrintLive(const Disk& disk, double random,
               const std::vector<int>& open_percents) {
  for (const uint64_t outstanding :
       std::initializer_list<uint64_t>{16, 64, 256, 1'024, 4'096}) {
    const uint64_t count = std::max<uint64_t>(20'000, 8 * outstanding);
    Print("live, " + std::to_string(outstanding) + " outstanding",
          Run(disk, {Live(disk, count, outstanding)}).clients[0], random);
  }
  const double capacity =
      Run(disk, {Live(disk, 20'000, 256)}).clients[0].per_second;
  for (const int percent : open_percents) {
    SimulatedClients open = Live(disk, 30'000, 0);
    open.per_second = percent / 100.0 * capacity;
    Print("open loop, " + std::to_string(percent) + " % of 256 outstanding",
          Run(disk, {open}).clients[0], random);
  }
}

void PrintDuringABatch(const Disk& disk, double random, const std::string& who,
                       uint64_t readers, SchedulerTime think) {
  SimulatedClients reader = Live(disk, 1'000'000, readers);
  reader.decides = false;
  reader.think = think;
  const SimulationResult both = Run(disk, {Batch(disk, 10'000), reader});
  Print("BATCH of 10,000 with " + who, both.clients[0], random);
  Print(who, both.clients[1], random);
}

// The same reads of a file in shuffled pieces, in the order of the file and of
// the pieces.
void PrintInPieces(const Disk& disk, double random) {
  for (const bool places_known : {false, true}) {
    const std::string how =
        places_known ? ", by place on the disk" : ", by offset in the file";
    for (SimulatedClients clients :
         {Batch(disk, 10'000), Live(disk, 20'000, 256)}) {
      clients.piece_size_bytes = 4 << 20;
      clients.places_known = places_known;
      const std::string what = clients.fetch_class == FetchClass::kBatch
                                   ? "BATCH of 10,000"
                                   : "live, 256 outstanding";
      Print(absl::StrCat(what, " in pieces of 4 MiB", how),
            Run(disk, {clients}).clients[0], random);
    }
  }
}

void PrintDuringABatchWithPriorities(const Disk& disk, double random) {
  Disk prior = disk;
  prior.options.priorities = true;
  for (const int think_ms : {0, 100, 1000}) {
    PrintDuringABatch(prior, random,
                      "a reader, " + std::to_string(think_ms) +
                          " ms between reads, with drive priority",
                      1, std::chrono::milliseconds(think_ms));
  }
  PrintDuringABatch(prior, random, "1,000 readers, with drive priority", 1'000,
                    SchedulerTime(0));
}

// Requests per second of RANDOM.
double PrintHead(const Disk& disk) {
  std::printf(
      "\n%s\n\n| load | requests/s | over RANDOM | p50 ms | p99 ms | "
      "longest ms | longest/mean |\n|---|---|---|---|---|---|---|\n",
      disk.name.c_str());
  const SimulatedTimes random = Run(disk, {Live(disk, 5'000, 1)}).clients[0];
  Print("RANDOM", random, random.per_second);
  return random.per_second;
}

void PrintDisk(const Disk& disk) {
  const double random_per_second = PrintHead(disk);
  PrintBatches(disk, random_per_second);
  PrintLive(disk, random_per_second, {50, 80, 90, 100, 120});
  for (const int think_ms : {0, 100, 1000}) {
    PrintDuringABatch(
        disk, random_per_second,
        "a reader, " + std::to_string(think_ms) + " ms between reads", 1,
        std::chrono::milliseconds(think_ms));
  }
  PrintDuringABatch(disk, random_per_second, "1,000 readers", 1'000,
                    SchedulerTime(0));
  PrintDuringABatchWithPriorities(disk, random_per_second);
  PrintInPieces(disk, random_per_second);
}

}  // namespace
}  // namespace quire

int main(int argc, char** argv) {
  quire::HardDiskOptions good;
  if (argc > 1) {
    const quire::Disk disk{std::string(argv[1]) + " bytes, good firmware", good,
                           std::strtoull(argv[1], nullptr, 10)};
    if (disk.extent_size_bytes < quire::kExtentMin) {
      std::fprintf(stderr, "usage: disk_figures [EXTENT_BYTES]\n");
      return 1;
    }
    quire::PrintLive(disk, quire::PrintHead(disk), {50, 80, 95, 120});
    return 0;
  }
  quire::HardDiskOptions weak;
  weak.guard_ms = 1.0;
  const uint64_t whole = quire::HardDiskModel(good).capacity_size_bytes();
  for (const auto& [name, options] :
       {std::pair{"good firmware", good}, std::pair{"weak firmware", weak}}) {
    quire::PrintDisk(
        {std::string("6.5 GiB, ") + name, options, quire::kSmallExtent});
    quire::PrintDisk({std::string("5 TB, ") + name, options, whole});
  }
  return 0;
}
