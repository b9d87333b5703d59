// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_RLZ_SUFFIX_INDEX_H_
#define QUIRE_CODECS_RLZ_SUFFIX_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"

namespace quire {

// Finds the longest prefix of a pattern that occurs in a text ("Access Time
// Tradeoffs in Archive Compression", section 2, "Factoring the Collection").
//
// Contains the suffix array of the text; for each two bytes, the rank of the
// first suffix that starts with them; and the first eight bytes of every eighth
// suffix, so that the first steps of a search read an array of integers instead
// of random positions of suffix array and text. Takes about five bytes per byte
// of text.
//
// Immutable after Build(), hence thread-safe.
class SuffixIndex {
 public:
  struct Match {
    // Offset in the text; 0 if there is no match.
    uint32_t offset = 0;
    // In bytes; 0 if the pattern's first byte does not occur in the text.
    uint32_t length = 0;
  };

  // Takes about 0.1 s per MiB of text. `text` must outlive the index; it may be
  // empty.
  // Errors: InvalidArgument  text.size() > kDictionarySizeBytesMax.
  static absl::StatusOr<std::unique_ptr<const SuffixIndex>> Build(
      ByteView text);

  // Returns the longest prefix of `pattern` that is a substring of the text. Of
  // several occurrences, takes that of the suffix that sorts first. The result
  // is therefore a function of text and prefix alone: equal prefixes give equal
  // matches, which helps to compress the offsets.
  Match LongestMatch(ByteView pattern) const;

  // Upper bound on the memory of Build() for a text of that size, without the
  // text.
  static size_t MemoryBytesFor(size_t text_size);

  size_t MemoryBytes() const { return MemoryBytesFor(text_.size()); }

 private:
  // An interval of the suffix array, by rank; empty if begin == end.
  struct Ranks {
    uint32_t begin = 0;
    uint32_t end = 0;
  };

  explicit SuffixIndex(ByteView text) : text_(text) {}

  void FillBuckets();
  void FillKeys();

  Match LongestMatchInBucket(ByteView pattern, Ranks bucket) const;
  Ranks NarrowByKeys(ByteView pattern, Ranks bucket) const;
  uint32_t FirstRankWithPrefix(ByteView prefix, uint32_t lowest,
                               uint32_t known) const;

  ByteView Suffix(uint32_t rank) const {
    return text_.subspan(static_cast<size_t>(suffixes_[rank]));
  }

  const ByteView text_;
  // Starts of all suffixes in sorted order (unsigned bytes; a suffix that is a
  // prefix of another comes before it).
  std::unique_ptr<int32_t[]> suffixes_;
  // bucket_begin_[b0 << 8 | b1] is the rank of the first suffix that starts
  // with b0 b1, or of its successor if there is none. The suffix of one byte
  // counts as followed by 00.
  std::vector<uint32_t> bucket_begin_;
  // The first eight bytes of every kKeyStride-th suffix, as one big-endian
  // number, padded with 00 at the text's end.
  std::unique_ptr<uint64_t[]> keys_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_SUFFIX_INDEX_H_
