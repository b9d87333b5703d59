// SPDX-License-Identifier: GPL-3.0-or-later
//
// Prints what the scheduler makes of modelled hard disks, as a table for
// loadtest/RESULTS.md; in virtual time, so the same on every machine.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "server/storage/elevator_scheduler.h"
#include "server/storage/model/hard_disk_model.h"
#include "server/storage/scheduler_simulation.h"

namespace quire {
namespace {

constexpr uint64_t kSmallExtent = uint64_t{13} << 29;  // 6.5 GiB

struct Disk {
  std::string name;
  HardDiskOptions options;
  uint64_t extent_size_bytes = 0;
};

SimulationResult Run(const Disk& disk, uint32_t depth,
                     const std::vector<SimulatedClients>& clients) {
  ElevatorScheduler scheduler({.pending_requests_max = 1 << 20});
  HardDiskModel drive(disk.options);
  return Simulate(scheduler, drive, depth, clients, /*seed=*/1);
}

void Print(const char* what, const SimulatedTimes& times, double random) {
  std::printf("| %s | %.0f | %.2f | %.0f | %.0f | %.0f | %.2f |\n", what,
              times.per_second, times.per_second / random, times.p50_ms,
              times.p99_ms, times.longest_ms,
              times.longest_ms / std::max(times.mean_ms, 1e-9));
}

void PrintDisk(const Disk& disk) {
  std::printf(
      "\n%s\n\n| load | requests/s | over RANDOM | p50 ms | p99 ms | "
      "longest ms | longest/mean |\n|---|---|---|---|---|---|---|\n",
      disk.name.c_str());
  SimulatedClients one{.request_count = 5'000,
                       .outstanding = 1,
                       .extent_size_bytes = disk.extent_size_bytes};
  const SimulationResult random = Run(disk, 1, {one});
  const double rate = random.clients[0].per_second;
  Print("RANDOM", random.clients[0], rate);
  for (const uint64_t count : {uint64_t{10'000}, uint64_t{100'000}}) {
    const SimulatedClients batch{.fetch_class = FetchClass::kBatch,
                                 .request_count = count,
                                 .outstanding = count,
                                 .extent_size_bytes = disk.extent_size_bytes};
    const SimulationResult result = Run(disk, 32, {batch});
    Print(count == 10'000 ? "BATCH of 10,000" : "BATCH of 100,000",
          result.clients[0], rate);
    if (count == 100'000) {
      HardDiskModel drive(disk.options);
      std::printf("%llu reads of %llu MB, %.2f of streaming\n",
                  static_cast<unsigned long long>(result.reads),
                  static_cast<unsigned long long>(result.read_bytes / 1000000),
                  drive.SequentialMs(std::min<uint64_t>(disk.extent_size_bytes,
                                                        kSmallExtent)) /
                      1e3 / result.seconds);
    }
  }
  for (const uint64_t outstanding : {16, 64, 256, 1'024, 4'096}) {
    const SimulatedClients live{
        .request_count = std::max<uint64_t>(20'000, 8 * outstanding),
        .outstanding = outstanding,
        .extent_size_bytes = disk.extent_size_bytes};
    Print(("live, " + std::to_string(outstanding) + " outstanding").c_str(),
          Run(disk, 32, {live}).clients[0], rate);
  }
  double capacity = 0;
  for (const double share : {0.5, 0.8, 0.9, 1.0, 1.2}) {
    if (capacity == 0) {
      const SimulatedClients live{.request_count = 20'000,
                                  .outstanding = 256,
                                  .extent_size_bytes = disk.extent_size_bytes};
      capacity = Run(disk, 32, {live}).clients[0].per_second;
    }
    const SimulatedClients open{.request_count = 30'000,
                                .per_second = share * capacity,
                                .extent_size_bytes = disk.extent_size_bytes};
    Print(("open loop at " + std::to_string(static_cast<int>(share * 100)) +
           " % of 256 outstanding")
              .c_str(),
          Run(disk, 32, {open}).clients[0], rate);
  }
  const SimulatedClients batch{.fetch_class = FetchClass::kBatch,
                               .request_count = 10'000,
                               .outstanding = 10'000,
                               .extent_size_bytes = disk.extent_size_bytes};
  SimulatedClients reader = one;
  reader.decides = false;
  reader.request_count = 1'000'000;
  for (const int think_ms : {0, 100, 1000}) {
    reader.think = std::chrono::milliseconds(think_ms);
    const SimulationResult both = Run(disk, 32, {batch, reader});
    std::printf(
        "interactive reader, a read %d ms after the other, beside "
        "BATCH of 10,000:\n",
        think_ms);
    Print("the batch", both.clients[0], rate);
    Print("the reader", both.clients[1], rate);
  }
  reader.think = SchedulerTime(0);
  reader.outstanding = 1'000;
  const SimulationResult many = Run(disk, 32, {batch, reader});
  std::printf("1,000 interactive readers beside BATCH of 10,000:\n");
  Print("the batch", many.clients[0], rate);
  Print("the readers", many.clients[1], rate);
}

}  // namespace
}  // namespace quire

int main() {
  quire::HardDiskOptions good;
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
