// SPDX-License-Identifier: GPL-3.0-or-later
//
// The text of blocks as the dictionary may contain it: as it is, and with its
// compressed members inflated.
#ifndef QUIRE_SERVER_REDACTION_INFLATED_BLOCK_H_
#define QUIRE_SERVER_REDACTION_INFLATED_BLOCK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/base/positions.h"
#include "codecs/payload/payload_codec.h"
#include "codecs/payload/recipe.h"
#include "server/archive/archive.h"
#include "server/redaction/segment_redaction.h"
#include "server/redaction/window_table.h"

namespace quire {

// Members of a text that are only partly in an interval.
enum class PartialMembers {
  // The whole member counts.
  kWhole,
  // They are left out.
  kNone,
};

// Reads the blocks of an archive, and keeps the last one. Memory: a block with
// its members inflated, at most 8 MiB. Thread-compatible.
class InflatedBlock {
 public:
  explicit InflatedBlock(const Archive& archive);

  // Reads a block. Errors: DataLoss  it is damaged.
  absl::Status Read(BlockAddress block);

  // Returns the text of the block; valid until the next call of any function.
  absl::StatusOr<ByteView> Raw();

  // Valid until the next Read().
  const Payload& payload() const { return payload_; }

  // Looks for members in a block that has no recipe: the dictionary may hold
  // text of members that were left compressed.
  absl::Status SearchMembers();

  // Adds the text [begin, end) of the block, with its members inflated.
  void AddInflated(uint64_t begin, uint64_t end, PartialMembers partial,
                   TextSink& sink) const;

 private:
  const Archive& archive_;
  const std::unique_ptr<PayloadCodec::Scratch> scratch_;
  std::optional<BlockAddress> block_;
  std::vector<uint8_t> frame_;
  Payload payload_;
  std::vector<uint8_t> inflated_;
  Recipe recipe_;
  // The text itself, if there are members.
  std::optional<std::vector<uint8_t>> raw_;
  bool is_searched_ = false;
  std::optional<BlockInflater> inflater_;
};

// Called with the number of bytes of text that were read; an error ends the
// reading.
using OnTextRead = std::function<absl::Status(uint64_t size_bytes)>;

// True if blocks or the dictionary of the archive may have inflated members.
bool HasInflatedText(const Archive& archive);

// Adds ranges of the logical space, which are in order and not adjacent, each
// as a text: as it is, then with its members inflated if HasInflatedText().
// With kWhole members are also searched in blocks without a recipe.
// Errors: DataLoss  a block is damaged; those of `on_read`.
absl::Status AddLogicalText(const Archive& archive,
                            std::span<const TextInterval> ranges,
                            PartialMembers partial, const OnTextRead& on_read,
                            TextSink& sink);

// Consecutive blocks of a segment.
struct StoredPart {
  uint64_t first_block = 0;
  uint64_t end_block = 0;
  // Offset of the first one in the stored text of the segment.
  uint64_t begin = 0;
};

// Calls `work` for parts of the blocks of a segment, on threads 0 to
// `thread_count` - 1, including the calling one, which alone calls `on_read`.
// `work` calls the function that it is given with the text that it has read,
// and returns its errors. Returns the first error.
absl::Status ForEachPart(
    const Archive& archive, uint32_t segment_index, uint32_t thread_count,
    const OnTextRead& on_read,
    absl::FunctionRef<absl::Status(size_t thread, const StoredPart& part,
                                   const OnTextRead& on_part_read)>
        work);

// Adds the stored text of a segment that `plan` keeps, in parts, block by
// block, with its members inflated; if `with_raw`, then again as it is. Each
// thread has one of the sinks. A part has the beginning of the next one, so
// that no window is missing.
// Errors: as AddLogicalText().
absl::Status AddKeptText(const Archive& archive, uint32_t segment_index,
                         const SegmentRedaction& plan, bool with_raw,
                         const OnTextRead& on_read,
                         std::span<TextSink* const> sinks);

}  // namespace quire

#endif  // QUIRE_SERVER_REDACTION_INFLATED_BLOCK_H_
