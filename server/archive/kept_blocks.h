// SPDX-License-Identifier: GPL-3.0-or-later
//
// The blocks at the start of a segment file that a writer left unfinished.
#ifndef QUIRE_SERVER_ARCHIVE_KEPT_BLOCKS_H_
#define QUIRE_SERVER_ARCHIVE_KEPT_BLOCKS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/payload/inflated_count.h"
#include "server/archive/format/segment_format.h"

namespace quire {

struct KeptBlock {
  uint32_t payload_size_bytes = 0;
  // With codec auto: MemberOf() its payload.
  uint8_t member = 0;
  // The payload is the text itself.
  bool is_raw = false;
};

struct KeptBlocks {
  std::vector<KeptBlock> blocks;
  // Checksum of all of them (ExtendBlockChain()).
  uint64_t block_chain = 0;
  // The compressed members that they store as text.
  InflatedCount inflated;
  // Some of them have a recipe.
  bool has_recipes = false;
  // Offset in the file at which the last of them ends.
  uint64_t end = 0;
};

// Reads the segment that `header` describes in the directory, from its start to
// the first frame that is damaged or missing. Returns no blocks if the file is
// missing or has another header. Passes the number of bytes read to `on_read`
// periodically; an error from it ends the reading.
// Errors: those of `on_read`; DataLoss, Unavailable  the device refuses.
absl::StatusOr<KeptBlocks> ReadKeptBlocks(
    int directory_fd, const std::string& directory, const SegmentHeader& header,
    const std::function<absl::Status(uint64_t size_bytes)>& on_read);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_KEPT_BLOCKS_H_
