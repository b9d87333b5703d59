// SPDX-License-Identifier: GPL-3.0-or-later
//
// How fast a server would read an archive: what a call costs its processors,
// its drive and its network, put into the queueing network of server_model.h.
#ifndef QUIRE_SERVER_PLANNER_READ_FORECAST_H_
#define QUIRE_SERVER_PLANNER_READ_FORECAST_H_

#include <cstdint>

#include "server/planner/drive_plan.h"
#include "server/planner/server_model.h"

namespace quire {

// The smallest cache that a server has.
inline constexpr double kCacheBytesLeast = 8.0 * (1 << 20);

struct ArchiveShape {
  double text_bytes = 0;
  uint32_t block_size_bytes = 0;
  // Of its blocks, over text_bytes; more than 0.
  double stored_share = 1;
  // Of text, on one core.
  double decode_bytes_per_second = 0;
  // Of the server's cache, in text.
  double cache_bytes = kCacheBytesLeast;
};

struct ReadingServer {
  PlannedDrive drive;
  double network_bytes_per_second = 0;
  uint32_t core_count = 1;
  uint64_t read_size_bytes = 0;
  uint32_t in_flight = 1;
};

struct ReadForecast {
  // Single calls at random places, `in_flight` at a time.
  Throughput random;
  // One batch of many ranges at random places, those of one block that are
  // under way together read and decoded once.
  Throughput batch;
  // Of text, everything in order: in identity and in stored blocks.
  double full_bytes_per_second = 0;
  double full_stored_bytes_per_second = 0;
};

// REQUIRES: sizes and rates are finite and more than 0.
ReadForecast ForecastReads(const ArchiveShape& archive,
                           const ReadingServer& server);

}  // namespace quire

#endif  // QUIRE_SERVER_PLANNER_READ_FORECAST_H_
