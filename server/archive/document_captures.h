// SPDX-License-Identifier: GPL-3.0-or-later
//
// The captures of an archive by document, for programs that read it whole.
#ifndef QUIRE_SERVER_ARCHIVE_DOCUMENT_CAPTURES_H_
#define QUIRE_SERVER_ARCHIVE_DOCUMENT_CAPTURES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/positions.h"
#include "server/archive/archive.h"
#include "server/archive/format/archive_description.h"

namespace quire {

// Holds the captures of one segment: some 24 bytes, the key and the digest of
// each. Documents are best asked for in order. Thread-compatible.
class DocumentCaptures {
 public:
  // `archive` must outlive it.
  explicit DocumentCaptures(const Archive& archive) : archive_(archive) {}

  // Returns the capture that a document is; nothing for others. Valid until the
  // next call, and as long as `id`, which is that of the document. Blocks.
  // REQUIRES: the document exists. Errors: DataLoss; others of files.
  absl::StatusOr<std::optional<NewCapture>> Find(DocumentOrdinal ordinal,
                                                 absl::string_view id);

 private:
  struct Entry {
    // In the segment.
    uint32_t ordinal = 0;
    uint32_t status = 0;
    // Of its key in text_, which digest and URL follow.
    uint64_t offset = 0;
    uint32_t key_size_bytes = 0;
    uint16_t digest_size_bytes = 0;
    uint16_t url_size_bytes = 0;
    // Nothing: the URL is stated.
    std::optional<uint16_t> id_skip_bytes = {};
  };

  absl::Status Load(uint32_t segment_index);

  const Archive& archive_;
  // Of the loaded segment; its documents are from `begin_` on, below `end_`.
  uint64_t begin_ = 0;
  uint64_t end_ = 0;
  std::string text_;
  // By ordinal.
  std::vector<Entry> entries_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_DOCUMENT_CAPTURES_H_
