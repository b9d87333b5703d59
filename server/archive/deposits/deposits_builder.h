// SPDX-License-Identifier: GPL-3.0-or-later
//
// Collects the deposited files of a segment while it is written.
#ifndef QUIRE_SERVER_ARCHIVE_DEPOSITS_DEPOSITS_BUILDER_H_
#define QUIRE_SERVER_ARCHIVE_DEPOSITS_DEPOSITS_BUILDER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "server/archive/container/container_part.h"
#include "server/archive/deposits/deposit_directory.h"
#include "server/archive/deposits/deposit_draft.h"

namespace quire {

// Holds the sizes of the documents of one file. Thread-compatible.
class DepositsBuilder {
 public:
  // Counts the text of the next document. It is the next text of `draft`, which
  // may be null. The documents of a file follow each other; once another
  // follows, the parts of the file are appended to `data`.
  // Errors: those of reading the file; Internal.
  absl::Status AddText(const std::shared_ptr<DepositDraft>& draft,
                       uint64_t size_bytes, ContainerData& data);

  // Adds a file of a segment whose documents are added next, or the part of it
  // that this segment has. Its parts are in the container already.
  void AddStored(DepositPortion portion);

  bool empty() const { return portions_.empty() && draft_ == nullptr; }

  // Appends further parts to `data`, and returns the head of the sub-section.
  // The builder is unusable afterwards. REQUIRES: not empty. Errors: as
  // AddText().
  absl::StatusOr<std::string> Build(ContainerData& data);

 private:
  class Ends;

  // Ends the file of draft_.
  absl::Status EndDraft(ContainerData& data);
  // Appends a page of the first of `items`; returns their number. `offset` is
  // that of the first in the file.
  absl::StatusOr<size_t> AddPage(std::span<const DepositItem> items,
                                 uint64_t offset, Ends& ends,
                                 DepositPortion& portion, ContainerData& data);
  absl::Status AddLiterals(std::span<const DepositItem> items, uint64_t offset,
                           DepositPageEntry& page, ContainerData& data) const;

  uint64_t text_size_bytes_ = 0;
  std::vector<DepositPortion> portions_;
  // The current file, null without one, the start of its text, and the sizes of
  // its documents.
  std::shared_ptr<DepositDraft> draft_;
  uint64_t draft_text_offset_ = 0;
  std::vector<uint64_t> draft_sizes_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_DEPOSITS_DEPOSITS_BUILDER_H_
