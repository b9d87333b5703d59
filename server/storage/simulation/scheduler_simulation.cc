// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/simulation/scheduler_simulation.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <queue>
#include <random>
#include <unordered_map>
#include <utility>

#include "codecs/base/check.h"

namespace quire {
namespace {

class Simulation {
 public:
  Simulation(Scheduler& scheduler, DriveModel& drive, uint32_t drive_depth,
             const std::vector<SimulatedClients>& clients, uint64_t seed)
      : scheduler_(scheduler),
        drive_(drive),
        drive_depth_(drive_depth),
        clients_(clients),
        random_(seed),
        begun_(clients.size()),
        waits_(clients.size()) {}

  SimulationResult Run() {
    for (size_t i = 0; i < clients_.size(); ++i) {
      Scatter(clients_[i]);
      if (clients_[i].per_second > 0) {
        Plan(i, Draw(clients_[i].per_second));
        continue;
      }
      for (uint64_t k = 0; k < clients_[i].outstanding; ++k) {
        Plan(i, SchedulerTime(0));
      }
    }
    while (true) {
      Arrive();
      Dispatch();
      if (Decided()) {
        return Finish();
      }
      Step();
    }
  }

 private:
  struct Arrival {
    SchedulerTime at{0};
    // Ties go to the first planned.
    uint64_t order = 0;
    size_t client = 0;

    bool operator>(const Arrival& other) const {
      return std::pair(at, order) > std::pair(other.at, other.order);
    }
  };

  struct Request {
    size_t client = 0;
    SchedulerTime arrived{0};
  };

  // A read, until the drive has completed it.
  struct InDrive {
    ScheduledRead read;
    uint32_t commands_left = 0;
  };

  // Size of the paper's requests, rounded up.
  static constexpr uint64_t kSizeBytesMax = 1 << 16;

  SchedulerTime Draw(double per_second) {
    const double uniform =
        (static_cast<double>(random_() >> 11) + 0.5) / 9007199254740992.0;
    return SchedulerTime(
        static_cast<int64_t>(-std::log(uniform) / per_second * 1e9));
  }

  void Plan(size_t client, SchedulerTime at) {
    if (begun_[client] < clients_[client].request_count) {
      ++begun_[client];
      arrivals_.push({at, order_++, client});
    }
  }

  void Arrive() {
    while (!arrivals_.empty() && arrivals_.top().at <= now_) {
      const Arrival arrival = arrivals_.top();
      arrivals_.pop();
      const SimulatedClients& client = clients_[arrival.client];
      if (client.per_second > 0) {
        Plan(arrival.client, arrival.at + Draw(client.per_second));
      }
      const uint64_t blocks = random_() % 4 == 0 ? 2 : 1;
      const uint64_t offset =
          random_() % (client.extent_size_bytes -
                       std::max<uint64_t>(kSizeBytesMax, client.size_bytes));
      const uint64_t drawn_size_bytes = blocks * (8192 + random_() % 8192);
      ScheduledRequest request{
          .id = next_id_,
          .address = {.fd = FileOf(arrival.client),
                      .offset = FileOffset{offset}},
          .size_bytes = client.size_bytes != 0
                            ? client.size_bytes
                            : static_cast<uint32_t>(drawn_size_bytes),
          .fetch_class = client.fetch_class};
      if (client.piece_size_bytes > 0 && client.places_known) {
        request.address.physical = PlaceOf(client, offset);
        request.contiguous_end = FileOffset{PieceEnd(client, offset)};
      }
      QUIRE_CHECK(scheduler_.Push(now_, request).ok(),
                  "the queue must hold every request, and keep none for ever");
      requests_.emplace(next_id_++, Request{arrival.client, arrival.at});
      pending_max_ = std::max(pending_max_, requests_.size());
    }
  }

  void Dispatch() {
    const auto in_drive = static_cast<uint32_t>(drive_.size());
    const std::vector<ScheduledRead> reads = scheduler_.Dispatch(
        now_, {.reads_max = drive_depth_ - std::min(drive_depth_, in_drive),
               .memory_size_bytes_max = UINT64_MAX});
    for (const ScheduledRead& read : reads) {
      Submit(read);
      ++read_count_;
      read_bytes_ += read.size_bytes;
    }
  }

  // Fixes the positions of a file's pieces.
  void Scatter(const SimulatedClients& client) {
    std::vector<uint64_t>& places = places_.emplace_back();
    if (client.piece_size_bytes > 0) {
      places.resize(client.extent_size_bytes / client.piece_size_bytes + 1);
      std::iota(places.begin(), places.end(), 0);
      std::shuffle(places.begin(), places.end(), random_);
    }
  }

  uint64_t PlaceOf(const SimulatedClients& client, uint64_t offset) const {
    const uint64_t size_bytes = client.piece_size_bytes;
    const auto index = static_cast<size_t>(&client - clients_.data());
    return places_[index][offset / size_bytes] * size_bytes +
           offset % size_bytes;
  }

  static uint64_t PieceEnd(const SimulatedClients& client, uint64_t offset) {
    return offset - offset % client.piece_size_bytes + client.piece_size_bytes;
  }

  // Clients without pieces read one file.
  int FileOf(size_t client) const {
    return clients_[client].piece_size_bytes == 0
               ? 0
               : static_cast<int>(client) + 1;
  }

  // Submits a command for each piece that the read touches, as the kernel
  // would.
  void Submit(const ScheduledRead& read) {
    InDrive in_drive{.read = read};
    uint64_t offset = read.address.offset.value;
    const uint64_t end = offset + read.size_bytes;
    while (offset < end) {
      uint64_t address = offset;
      uint64_t stop = end;
      if (read.address.fd > 0) {
        const SimulatedClients& client =
            clients_[static_cast<size_t>(read.address.fd) - 1];
        address = PlaceOf(client, offset);
        stop = std::min(end, PieceEnd(client, offset));
      }
      drive_.Submit(now_, {.id = next_command_id_,
                           .address = address,
                           .size_bytes = static_cast<uint32_t>(stop - offset),
                           .urgent = read.urgent});
      commands_.emplace(next_command_id_++, read.id);
      ++in_drive.commands_left;
      offset = stop;
    }
    reads_.emplace(read.id, in_drive);
  }

  // Advances to the next end of a read or arrival of a request.
  void Step() {
    const std::optional<DriveTime> end = drive_.NextEnd();
    QUIRE_CHECK(end.has_value() || !arrivals_.empty(),
                "the queue must hold every request, and keep none for ever");
    now_ = !end.has_value()    ? arrivals_.top().at
           : arrivals_.empty() ? *end
                               : std::min(*end, arrivals_.top().at);
    for (const uint64_t command_id : drive_.Advance(now_)) {
      const auto command = commands_.find(command_id);
      const uint64_t read_id = command->second;
      commands_.erase(command);
      const auto it = reads_.find(read_id);
      if (--it->second.commands_left > 0) {
        continue;
      }
      for (const uint64_t id : it->second.read.request_ids) {
        Serve(id);
      }
      reads_.erase(it);
      scheduler_.Complete(now_, read_id);
    }
  }

  void Serve(uint64_t id) {
    const auto it = requests_.find(id);
    const auto [client, arrived] = it->second;
    requests_.erase(it);
    waits_[client].push_back(
        std::chrono::duration<double, std::milli>(now_ - arrived).count());
    if (clients_[client].per_second == 0) {
      Plan(client, now_ + clients_[client].think);
    }
  }

  bool Decided() const {
    for (size_t i = 0; i < clients_.size(); ++i) {
      if (clients_[i].decides && waits_[i].size() < clients_[i].request_count) {
        return false;
      }
    }
    return true;
  }

  SimulationResult Finish() {
    SimulationResult result;
    result.seconds = std::chrono::duration<double>(now_).count();
    result.reads = read_count_;
    result.read_bytes = read_bytes_;
    result.pending_max = pending_max_;
    for (std::vector<double>& waits : waits_) {
      SimulatedTimes times;
      times.count = waits.size();
      if (!waits.empty()) {
        std::sort(waits.begin(), waits.end());
        const auto count = static_cast<double>(waits.size());
        times.per_second = count / result.seconds;
        for (const double wait : waits) {
          times.mean_ms += wait / count;
        }
        times.p50_ms = waits[waits.size() / 2];
        times.p99_ms = waits[waits.size() * 99 / 100];
        times.longest_ms = waits.back();
      }
      result.clients.push_back(times);
    }
    return result;
  }

  Scheduler& scheduler_;
  DriveModel& drive_;
  const uint32_t drive_depth_;
  const std::vector<SimulatedClients>& clients_;
  std::mt19937_64 random_;
  SchedulerTime now_{0};
  uint64_t order_ = 0;
  uint64_t next_id_ = 1;
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> arrivals_;
  // By client: requests planned, and the waits of those served.
  std::vector<uint64_t> begun_;
  std::vector<std::vector<double>> waits_;
  std::unordered_map<uint64_t, Request> requests_;
  std::unordered_map<uint64_t, InDrive> reads_;
  // Reads by command in the drive.
  std::unordered_map<uint64_t, uint64_t> commands_;
  uint64_t next_command_id_ = 1;
  // By client and piece: its position.
  std::vector<std::vector<uint64_t>> places_;
  uint64_t read_count_ = 0;
  uint64_t read_bytes_ = 0;
  size_t pending_max_ = 0;
};

}  // namespace

SimulationResult Simulate(Scheduler& scheduler, DriveModel& drive,
                          uint32_t drive_depth,
                          const std::vector<SimulatedClients>& clients,
                          uint64_t seed) {
  return Simulation(scheduler, drive, drive_depth, clients, seed).Run();
}

}  // namespace quire
