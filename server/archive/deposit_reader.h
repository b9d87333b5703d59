// SPDX-License-Identifier: GPL-3.0-or-later
//
// Reads deposited files: what their bytes are made of, and the bytes.
#ifndef QUIRE_SERVER_ARCHIVE_DEPOSIT_READER_H_
#define QUIRE_SERVER_ARCHIVE_DEPOSIT_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/base/positions.h"
#include "codecs/deflate/deflate_encoder.h"
#include "server/archive/archive.h"
#include "server/archive/archive_part.h"
#include "server/archive/container/container_part.h"
#include "server/archive/deposited_files.h"
#include "server/archive/deposits/deposit_page.h"
#include "server/archive/segment_text.h"

namespace quire {

// Consecutive bytes of a deposited file that one item makes.
struct DepositStep {
  DepositItem item = {};
  // Start of the item in the file.
  uint64_t item_offset = 0;
  // The item's page; null for literals.
  std::shared_ptr<const DepositPage> page = {};
  // The wanted bytes: the size, and those of a member before them.
  uint64_t size_bytes = 0;
  uint64_t skipped_bytes = 0;
  // Text that is needed: all of a member. Empty for literals.
  LogicalRange text = {};
  // The bytes of a literal.
  PartBytes literal = {};
};

// Steps for consecutive bytes of a file.
struct DepositPlan {
  std::vector<DepositStep> steps;
  uint64_t size_bytes = 0;
  // Includes the text of all steps.
  LogicalRange text;
};

// Finds the steps. Thread-compatible; any thread may use it if `load` allows
// that.
class DepositPlanner {
 public:
  // Bounds on a plan. A plan has one step at least.
  struct Bounds {
    uint64_t size_bytes_max = UINT64_MAX;
    uint64_t text_size_bytes_max = UINT64_MAX;
  };

  // `archive`, of which `file` is one, must outlive it. REQUIRES: it is kept.
  DepositPlanner(const Archive& archive, const DepositedFile& file,
                 ArchivePartLoader load);

  // Plans bytes from `offset` of the file on. Unset if parts are not at hand,
  // which were asked for. REQUIRES: offset < the size of the file.
  // Errors: DataLoss; those of `load`.
  absl::StatusOr<std::optional<DepositPlan>> Plan(uint64_t offset,
                                                  const Bounds& bounds);

  // Calls `visit` with all items of the file, in order, and their headers.
  // REQUIRES: all parts are at hand. Errors: as Plan(), and those of `visit`.
  absl::Status VisitItems(
      absl::FunctionRef<absl::Status(const DepositItem&, const DepositPage&)>
          visit);

 private:
  // A page and its place.
  struct PlacedPage {
    uint32_t segment_index = 0;
    const DepositPageEntry* entry = nullptr;
    // Its first byte in the file.
    uint64_t offset = 0;
    // Its first byte of text, in the segment and in the logical space.
    uint64_t text_in_segment = 0;
    uint64_t text_offset = 0;
  };

  // REQUIRES: offset < the size of the file.
  PlacedPage PageAt(uint64_t offset) const;
  // Loads the page, unless it is the current one. False if it is not at hand.
  absl::StatusOr<bool> Load(const PlacedPage& page);
  // Returns the step at `offset`, of at most `size_bytes_max`.
  absl::StatusOr<std::optional<DepositStep>> StepAt(uint64_t offset,
                                                    uint64_t size_bytes_max);
  absl::StatusOr<std::optional<DepositStep>> LiteralStep(
      uint64_t literal_offset, uint64_t size_bytes);

  const Archive& archive_;
  const DepositedFile& file_;
  const ArchivePartLoader load_;

  // Parsed, and the start of each item in the file, in the logical space and
  // in the literals of the page.
  struct Start {
    uint64_t offset = 0;
    uint64_t text_offset = 0;
    uint64_t literal_offset = 0;
  };

  PlacedPage placed_;
  std::shared_ptr<const DepositPage> page_;
  std::vector<Start> starts_;
};

// Makes the bytes of steps. Thread-compatible.
class DepositMaker {
 public:
  // True if the step needs no text: an earlier step wanted another part of its
  // member. REQUIRES: all steps are those of one file.
  bool Holds(const DepositStep& step) const {
    return member_offset_ == step.item_offset &&
           member_.size() == step.item.size_bytes &&
           step.item.kind == DepositItem::Kind::kMember;
  }

  // `text` is that of step.text, or empty if Holds(). REQUIRES: out.size() ==
  // step.size_bytes.
  // Errors: DataLoss, Cancelled  as RecreateDepositMember().
  absl::Status Make(const DepositStep& step, ByteView text, MutableByteView out,
                    absl::FunctionRef<bool()> cancelled = DeflateLimits::Never);

 private:
  DeflateEncoder encoder_;
  // The last member of which only a part was wanted; empty without one.
  std::vector<uint8_t> member_;
  uint64_t member_offset_ = 0;
};

// Reads with blocking preads: for offline use. Thread-compatible.
class DepositReader {
 public:
  // As DepositPlanner.
  DepositReader(const Archive& archive, const DepositedFile& file);

  // Fills `out` with the bytes of the file from `offset` on.
  // REQUIRES: they are within the file. Errors: DataLoss.
  absl::Status Read(uint64_t offset, MutableByteView out);

  // Reads the whole file, and compares its digest. `on_read` is called for each
  // piece. Errors: DataLoss; those of `on_read`.
  absl::Status CheckDigest(
      absl::FunctionRef<absl::Status(uint64_t size_bytes)> on_read);

 private:
  absl::Status ReadText(LogicalOffset offset, MutableByteView out);

  const Archive& archive_;
  const DepositedFile& file_;
  DepositPlanner planner_;
  DepositMaker maker_;
  // Of the segment that was read last.
  uint32_t segment_index_ = 0;
  std::unique_ptr<SegmentText> segment_text_;
  std::vector<uint8_t> text_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_DEPOSIT_READER_H_
