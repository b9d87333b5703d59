// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_REDACTION_REMOVED_DOCUMENTS_H_
#define QUIRE_SERVER_REDACTION_REMOVED_DOCUMENTS_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/filter/filter.h"
#include "server/archive/archive.h"
#include "server/archive/deposited_files.h"
#include "server/redaction/inflated_block.h"
#include "server/redaction/segment_redaction.h"
#include "server/redaction/window_table.h"

namespace quire {

// Documents to remove from an archive, and their text. They have the same
// ordinals and offsets in the archive without them. Memory: 24 bytes for each,
// and while they are found the ids that several documents have. Immutable.
class RemovedDocuments {
 public:
  // Those that `items` name, all of an id or one of them
  // (codecs/base/document_item.h), and those that match `where`, which may be
  // null. There is an item or a filter. Reads fields, after `check` as in
  // VisitMatches() (filtered_documents.h).
  // Errors: NotFound  there is no such document, names up to ten; or none
  //                   matches the filter.
  //         Others as VisitMatches(), with "--where: " for faults of the
  //         filter.
  static absl::StatusOr<RemovedDocuments> Find(
      const Archive& archive, std::span<const std::string> items,
      const Filter* where = nullptr,
      const std::function<absl::Status()>& check = {});

  // In order.
  const std::vector<uint64_t>& ordinals() const { return ordinals_; }

  // Their text in the logical space: in order, not empty, not adjacent.
  const std::vector<TextInterval>& ranges() const { return ranges_; }

  // True if one of them is in the range. One without text is in all ranges that
  // it touches.
  bool HasDocumentIn(LogicalRange range) const;

  // The other parts of the logical space, likewise.
  std::vector<TextInterval> KeptRanges(const Archive& archive) const;

  uint64_t size_bytes() const { return size_bytes_; }

  // Number of those that items name, and of those that match the filter. A
  // document can count in both.
  uint64_t named_count() const { return named_count_; }

  uint64_t matched_count() const { return matched_count_; }

  // Ids of which other documents stay.
  uint64_t renumbered_id_count() const { return renumbered_id_count_; }

  // An item that names another document after the removal; empty if there is
  // none, or if Find() would fail then, as it does with a filter, which matches
  // no removed document.
  const std::string& reused_item() const { return reused_item_; }

  // Returns items that name them, in order, with a number if their id has
  // several documents. Memory: the items, and numbers for each such id.
  absl::StatusOr<std::vector<std::string>> Items(const Archive& archive) const;

  // Those with ordinals from `begin` to `end` - 1.
  std::span<const uint64_t> OrdinalsIn(uint64_t begin, uint64_t end) const;

  // Plans their removal from a segment of the archive, which may be the one
  // before or after the removal.
  SegmentRedaction PlanFor(const Archive& archive,
                           uint32_t segment_index) const;

 private:
  RemovedDocuments() = default;

  // Add documents, in any order. Errors: as Find().
  absl::Status AddNamed(const Archive& archive,
                        std::span<const std::string> items);
  absl::Status AddMatches(const Archive& archive, const Filter& where,
                          const std::function<absl::Status()>& check);
  // Sets the rest from `ordinals_`, which have no order.
  absl::Status Complete(const Archive& archive);

  std::vector<uint64_t> ordinals_;
  std::vector<TextInterval> ranges_;
  // Of those without text, ascending.
  std::vector<uint64_t> empty_offsets_;
  uint64_t size_bytes_ = 0;
  uint64_t named_count_ = 0;
  uint64_t matched_count_ = 0;
  uint64_t renumbered_id_count_ = 0;
  std::string reused_item_;
};

// True if the archive holds bytes of a deposited file other than its text.
bool HasDepositPages(const Archive& archive, const DepositedFile& file);

// Adds the text of the documents, with their members inflated, their ids and
// the strings of their fields. `archive` is the one before the removal. Errors:
// as AddLogicalText(), also of fields.
absl::Status AddRemovedText(const Archive& archive,
                            const RemovedDocuments& removed,
                            const OnTextRead& on_read, TextSink& sink);

}  // namespace quire

#endif  // QUIRE_SERVER_REDACTION_REMOVED_DOCUMENTS_H_
