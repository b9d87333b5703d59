// SPDX-License-Identifier: GPL-3.0-or-later
//
// Files that are kept byte for byte next to the documents that are read from
// them.
#ifndef QUIRE_SERVER_INGEST_SOURCES_DEPOSIT_SOURCE_H_
#define QUIRE_SERVER_INGEST_SOURCES_DEPOSIT_SOURCE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

#include "server/archive/deposits/deposit_draft.h"

namespace quire {

// A file whose documents follow each other, and whose text is that of its
// documents. Immutable, thread-safe.
class DepositSource {
 public:
  struct Options {
    // Name of the file in the archive.
    std::string path;
    // Size of the text of its documents.
    uint64_t text_size_bytes = 0;
    // Keep the file also if much of it must be stored as it is.
    bool keeps_all = false;
    // At least 1.
    uint32_t threads = 1;
    // May be null.
    const std::atomic<bool>* cancel = nullptr;
  };

  // Numbers of independently compressed members.
  struct Counts {
    uint64_t reproduced_count = 0;
    // Those that no known encoder makes.
    uint64_t foreign_count = 0;
    // Those whose text is over kDepositMemberTextSizeMax.
    uint64_t large_count = 0;
  };

  struct Result {
    // Null: the file is not kept.
    std::shared_ptr<DepositDraft> draft = nullptr;
    // Why it is not kept; for people.
    std::string refusal = {};
    Counts counts = {};
    // It is a file that an archive keeps.
    bool is_carried = false;
    // Checksum64() of the text; unset if it is that of an archive.
    std::optional<uint64_t> text_checksum = std::nullopt;
  };

  virtual ~DepositSource() = default;

  // Reads the file and finds out how it is made of its text. Blocks.
  // Errors: Cancelled, Unavailable; DataLoss  an archive is damaged.
  virtual absl::StatusOr<Result> Draft(const Options& options) const = 0;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_DEPOSIT_SOURCE_H_
