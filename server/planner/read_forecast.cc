// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/planner/read_forecast.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "codecs/choose/compression_cost.h"

namespace quire {
namespace {

// CPU time that an answer takes a server besides decoding, of which a call and
// an item of a batch are without their bytes (loadtest/plan_check.py).
constexpr double kCallSeconds = 33e-6;
constexpr double kBatchItemSeconds = 4e-6;
constexpr double kSentByteSeconds = 0.55e-9;
constexpr double kDriveReadSeconds = 12e-6;
constexpr double kDriveByteSeconds = 0.6e-9;
// Of a decoded byte that goes into the cache: memory that is first touched.
constexpr double kCachedByteSeconds = 0.3e-9;
// Ranges of a batch whose blocks a server awaits at a time, of the 4,096 that
// it has under way (service/calls/batch_call.cc).
constexpr uint32_t kBatchInFlight = 3'400;

class Forecast {
 public:
  Forecast(const ArchiveShape& archive, const ReadingServer& server)
      : archive_(archive),
        server_(server),
        block_bytes_(std::min<double>(archive.block_size_bytes,
                                      std::max(archive.text_bytes, 1.0))),
        read_bytes_(static_cast<double>(server.read_size_bytes)),
        // A range at any place; they lie side by side.
        touched_blocks_(1 + (read_bytes_ - 1) / block_bytes_),
        rates_(RatesOf(
            server.drive,
            static_cast<uint64_t>(touched_blocks_ * block_bytes_ *
                                  archive.stored_share) +
                1,
            static_cast<uint64_t>(archive.text_bytes * archive.stored_share),
            server.in_flight, kBatchInFlight)) {}

  ReadForecast Make() const {
    const double missed =
        std::clamp(1 - archive_.cache_bytes / archive_.text_bytes, 0.0, 1.0);
    // Of those blocks that a range of a batch touches, those that no other
    // which is under way has touched before.
    const double blocks = std::max(archive_.text_bytes / block_bytes_, 1.0);
    const double touched = kBatchInFlight * touched_blocks_;
    const double fresh = blocks / touched * -std::expm1(-touched / blocks);
    const double stored_share = archive_.stored_share;
    const double cores = server_.core_count;
    const double from_drive = rates_.sequential_bytes_per_second / stored_share;
    const double block_bytes = touched_blocks_ * block_bytes_;
    return {
        .random = SolveClosedNetwork(
            Stations(
                kCallSeconds + missed * (kDriveReadSeconds +
                                         block_bytes * (BlockByteSeconds() +
                                                        kCachedByteSeconds)),
                missed, rates_.per_second),
            server_.in_flight),
        // A modelled drive's rate is of ranges, with those merged that overlap.
        // So few reads are left that their own cost does not count.
        .batch = SolveClosedNetwork(
            Stations(
                kBatchItemSeconds + fresh * block_bytes * BlockByteSeconds(),
                server_.drive.kind == PlannedDrive::Kind::kObjectStore ? fresh
                                                                       : 1,
                rates_.batch_per_second),
            kBatchInFlight),
        .full_bytes_per_second = PathBytesPerSecond(
            server_.network_bytes_per_second,
            cores / (BlockByteSeconds() + kSentByteSeconds), from_drive),
        .full_stored_bytes_per_second = PathBytesPerSecond(
            server_.network_bytes_per_second / stored_share,
            cores / (stored_share * (kDriveByteSeconds + kSentByteSeconds)),
            from_drive)};
  }

 private:
  // To read and to decode a byte of a block's text.
  double BlockByteSeconds() const {
    return 1 / archive_.decode_bytes_per_second +
           kDriveByteSeconds * archive_.stored_share;
  }

  // Of a range: the processor's work besides its bytes on the way out, and the
  // share of ranges that are read from the drive, which reads so many a second.
  std::vector<Station> Stations(double work_seconds, double read_share,
                                double drive_per_second) const {
    const double drive = read_share / drive_per_second;
    return {{.name = "processors",
             .demand_seconds = work_seconds + read_bytes_ * kSentByteSeconds,
             .server_count = server_.core_count},
            {.name = "drive",
             .demand_seconds = drive,
             .delay_seconds =
                 std::max(0.0, read_share * rates_.lone_seconds - drive)},
            {.name = "network",
             .demand_seconds = read_bytes_ / server_.network_bytes_per_second}};
  }

  const ArchiveShape& archive_;
  const ReadingServer& server_;
  const double block_bytes_;
  const double read_bytes_;
  const double touched_blocks_;
  const DriveRates rates_;
};

}  // namespace

ReadForecast ForecastReads(const ArchiveShape& archive,
                           const ReadingServer& server) {
  return Forecast(archive, server).Make();
}

}  // namespace quire
