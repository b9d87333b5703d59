// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_REDACTION_REMOVED_DOCUMENTS_H_
#define QUIRE_SERVER_REDACTION_REMOVED_DOCUMENTS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/archive/archive.h"
#include "server/redaction/inflated_block.h"
#include "server/redaction/segment_redaction.h"
#include "server/redaction/window_table.h"

namespace quire {

// Documents to remove from an archive, and their text. They have the same
// ordinals and offsets in the archive without them. Memory: 24 bytes for each.
// Immutable.
class RemovedDocuments {
 public:
  // The documents that `items` name, of which there is at least one: those of
  // an id, or one of them (codecs/base/document_item.h).
  // Errors: NotFound  there is no such document; names up to ten.
  static absl::StatusOr<RemovedDocuments> Find(
      const Archive& archive, std::span<const std::string> items);

  // In order.
  const std::vector<uint64_t>& ordinals() const { return ordinals_; }

  // Their text in the logical space: in order, not empty, not adjacent.
  const std::vector<TextInterval>& ranges() const { return ranges_; }

  // The other parts of the logical space, likewise.
  std::vector<TextInterval> KeptRanges(const Archive& archive) const;

  uint64_t size_bytes() const { return size_bytes_; }

  // Ids of which other documents stay.
  uint64_t renumbered_id_count() const { return renumbered_id_count_; }

  // An item that names another document after the removal; empty if there is
  // none, or if Find() would fail then.
  const std::string& reused_item() const { return reused_item_; }

  // Those with ordinals from `begin` to `end` - 1.
  std::span<const uint64_t> OrdinalsIn(uint64_t begin, uint64_t end) const;

  // Plans their removal from a segment of the archive, which may be the one
  // before or after the removal.
  SegmentRedaction PlanFor(const Archive& archive,
                           uint32_t segment_index) const;

 private:
  RemovedDocuments() = default;

  std::vector<uint64_t> ordinals_;
  std::vector<TextInterval> ranges_;
  uint64_t size_bytes_ = 0;
  uint64_t renumbered_id_count_ = 0;
  std::string reused_item_;
};

// Adds the text of the documents, with their members inflated, and their ids.
// `archive` is the one before the removal. Errors: as AddLogicalText().
absl::Status AddRemovedText(const Archive& archive,
                            const RemovedDocuments& removed,
                            const OnTextRead& on_read, TextSink& sink);

}  // namespace quire

#endif  // QUIRE_SERVER_REDACTION_REMOVED_DOCUMENTS_H_
