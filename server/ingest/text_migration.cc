// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/text_migration.h"

#include <algorithm>
#include <utility>

#include "codecs/base/checksum.h"
#include "codecs/base/status_macros.h"
#include "codecs/reorder/super_features.h"
#include "server/archive/format/layout_section.h"

namespace quire {

void TextMigration::Add(ByteView chunk) {
  chunks_.push_back({size_bytes_, Checksum64(chunk)});
  size_bytes_ += chunk.size();
  clusters_.Add(SuperFeaturesOf(chunk));
}

size_t TextMigration::ChunkFrom(uint64_t offset) const {
  return static_cast<size_t>(
      std::ranges::lower_bound(chunks_, offset, {}, &Chunk::offset) -
      chunks_.begin());
}

size_t TextMigration::ChunkAt(uint64_t offset) const {
  return ChunkFrom(offset + 1) - 1;
}

std::vector<bool> TextMigration::JoinedChunks(
    const std::vector<StoredRun>& runs) const {
  std::vector<bool> is_joined(chunks_.size(), false);
  for (size_t i = 1; i < chunks_.size(); ++i) {
    is_joined[i] = EndOf(i) - chunks_[i].offset < kRunPairSizeBytesMin ||
                   chunks_[i].offset < kRunPairSizeBytesMin;
  }
  for (const StoredRun& run : runs) {
    const uint64_t end = run.stored_offset + run.size_bytes;
    const auto join = [&](uint64_t from, uint64_t to) {
      for (size_t i = ChunkFrom(from);
           i < chunks_.size() && chunks_[i].offset < to; ++i) {
        is_joined[i] = true;
      }
    };
    join(run.stored_offset + 1,
         std::min(end, run.stored_offset + kRunPairSizeBytesMin));
    join(std::max(run.stored_offset + 1,
                  end - std::min(end, kRunPairSizeBytesMin - 1)),
         end);
  }
  return is_joined;
}

absl::Status TextMigration::Move(
    const Spool& text, std::vector<StoredRun>& runs,
    const std::function<absl::Status(ByteView)>& write) {
  clusters_.EndAdding();
  std::vector<uint64_t> new_offsets(chunks_.size());
  std::vector<uint8_t> chunk;
  uint64_t written_bytes = 0;
  for (const uint32_t i : clusters_.Order(JoinedChunks(runs))) {
    chunk.resize(EndOf(i) - chunks_[i].offset);
    QUIRE_RETURN_IF_ERROR(text.ReadAt(chunks_[i].offset, chunk));
    if (Checksum64(chunk) != chunks_[i].checksum) {
      return absl::DataLossError(
          "the text to be stored is not what was written to its file; check "
          "the "
          "device, and build the archive again");
    }
    QUIRE_RETURN_IF_ERROR(write(chunk));
    new_offsets[i] = written_bytes;
    written_bytes += chunk.size();
  }
  RunList moved;
  for (const StoredRun& run : runs) {
    uint64_t offset = run.stored_offset;
    const uint64_t end = offset + run.size_bytes;
    for (size_t i = ChunkAt(offset); offset < end; ++i) {
      const uint64_t size = std::min(end, EndOf(i)) - offset;
      moved.Append(size, new_offsets[i] + (offset - chunks_[i].offset));
      offset += size;
    }
  }
  runs = std::move(moved).Take();
  return absl::OkStatus();
}

}  // namespace quire
