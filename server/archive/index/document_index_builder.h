// SPDX-License-Identifier: GPL-3.0-or-later
//
// Collects the documents of a segment while it is written, and makes its index
// sections.
#ifndef QUIRE_SERVER_ARCHIVE_INDEX_DOCUMENT_INDEX_BUILDER_H_
#define QUIRE_SERVER_ARCHIVE_INDEX_DOCUMENT_INDEX_BUILDER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "server/archive/format/archive_description.h"
#include "server/archive/format/segment_format.h"

namespace quire {

// A column of strings with few different values.
class StringColumnBuilder {
 public:
  // Sets the value of document `index`, which increases with each call. Skipped
  // documents have the empty string.
  void Set(uint64_t index, absl::string_view value);
  // Errors: InvalidArgument  the value is too long.
  static absl::Status Check(absl::string_view value, absl::string_view what);

  bool empty() const { return strings_.empty(); }

  // Returns the column (FORMAT.md, "String columns").
  std::string Build(uint64_t count) &&;

 private:
  // In order of first appearance, numbered from 1.
  std::vector<std::string> strings_;
  absl::flat_hash_map<std::string, uint64_t> numbers_;
  std::vector<uint64_t> values_;
};

// Holds about 30 bytes plus the id for each document until the segment ends.
// Thread-compatible.
class DocumentIndexBuilder {
 public:
  // Errors: InvalidArgument  over a limit of the format.
  absl::Status Add(const NewDocument& document);

  uint64_t count() const { return sizes_.size(); }

  // Total size of all documents added.
  uint64_t size_bytes() const { return size_bytes_; }

  // Emits each section, uncompressed, in order of type; stops at the first
  // error. Omits sections without information. Sets `id_size_bytes` to the
  // total length of the ids. The builder is unusable afterwards.
  using Emit = std::function<absl::Status(SectionType, std::string)>;
  absl::Status Build(const Emit& emit, uint64_t& id_size_bytes);

 private:
  absl::string_view Keep(absl::string_view id);
  // Ordinals in order of (id, ordinal); empty if that is ordinal order.
  std::vector<uint32_t> SortedOrdinals() const;
  std::string BuildCaptureTimes();

  // Chunks, so that ids never move.
  std::vector<std::unique_ptr<char[]>> chunks_;
  size_t chunk_used_ = 0;
  std::vector<absl::string_view> ids_;
  std::vector<uint64_t> sizes_;
  uint64_t size_bytes_ = 0;
  // Empty, or up to the last document with a time; absent times are
  // kNoCaptureTime.
  std::vector<int64_t> capture_times_;
  StringColumnBuilder media_types_;
  StringColumnBuilder record_types_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_INDEX_DOCUMENT_INDEX_BUILDER_H_
