// SPDX-License-Identifier: Apache-2.0
//
// The source of an archive, to check answers against.
#ifndef QUIRE_LOADTEST_REQUESTS_SOURCE_TEXT_H_
#define QUIRE_LOADTEST_REQUESTS_SOURCE_TEXT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"

namespace quire {

struct SourceRow {
  // Offset of the document's first byte in the text.
  uint64_t offset = 0;
  uint64_t size_bytes = 0;
  std::string id;
};

// The documents of an archive, concatenated in its order, and their offsets.
// The file stays on disk and is read with pread: it may be larger than memory.
// Thread-safe.
class SourceText {
 public:
  // `index_path` names a file of lines "OFFSET<tab>SIZE<tab>ID", one for each
  // document in the order of the archive; empty: the documents are not known.
  // Blocks while it reads the index.
  // Errors: NotFound         a file cannot be opened.
  //         InvalidArgument  a line of the index is malformed, or reaches past
  //                          the end of the text; names the line.
  static absl::StatusOr<std::unique_ptr<SourceText>> Open(
      const std::string& text_path, const std::string& index_path);

  ~SourceText();
  SourceText(const SourceText&) = delete;
  SourceText& operator=(const SourceText&) = delete;

  uint64_t size_bytes() const { return size_bytes_; }

  const std::vector<SourceRow>& documents() const { return documents_; }

  // Fills `out` with the text from `offset` on. Blocks on the disk.
  // Errors: OutOfRange   the text ends earlier.
  //         Unavailable  the text can no longer be read.
  absl::Status Read(uint64_t offset, MutableByteView out) const;

  // Returns true if the text has exactly `bytes` at `offset`. Blocks on the
  // disk.
  // Errors: Unavailable  the text can no longer be read.
  absl::StatusOr<bool> Matches(uint64_t offset, absl::string_view bytes) const;

 private:
  SourceText(std::string path, int fd, uint64_t size_bytes)
      : path_(std::move(path)), fd_(fd), size_bytes_(size_bytes) {}

  absl::Status ReadIndex(const std::string& index_path);

  const std::string path_;
  const int fd_;
  const uint64_t size_bytes_;
  std::vector<SourceRow> documents_;
};

}  // namespace quire

#endif  // QUIRE_LOADTEST_REQUESTS_SOURCE_TEXT_H_
