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
// Inside: the suffix array of the text; where in it the suffixes begin that
// start with each two bytes; and of every eighth suffix its first eight bytes,
// so that the first steps of a search read an array of integers rather than
// jump about in suffix array and text. About five bytes per byte of text.
//
// Immutable after Build(), hence thread-safe.
class SuffixIndex {
 public:
  struct Match {
    // Where in the text; 0 if there is no match.
    uint32_t offset = 0;
    // In bytes; 0 if the pattern's first byte does not occur in the text.
    uint32_t length = 0;
  };

  // Takes about 0.1 s for each MiB of text. `text` must outlive the index; it
  // may be empty.
  // Errors: InvalidArgument  text.size() > kDictionarySizeBytesMax.
  static absl::StatusOr<std::unique_ptr<const SuffixIndex>> Build(
      ByteView text);

  // The longest prefix of `pattern` that is a substring of the text. Of several
  // such places it is that of the suffix that comes first in order, which makes
  // the result a function of text and prefix: what follows in the pattern does
  // not matter, and equal prefixes give equal matches (which helps whatever
  // compresses the offsets).
  Match LongestMatch(ByteView pattern) const;

  // What Build() of a text of that size needs at most, besides the text.
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
  // Starts of all suffixes, in their order (unsigned bytes; a suffix that is a
  // prefix of another comes before it).
  std::unique_ptr<int32_t[]> suffixes_;
  // bucket_begin_[b0 << 8 | b1] is the rank of the first suffix that starts
  // with b0 b1, or of the first after where it would be. The suffix of one byte
  // counts as being followed by 00.
  std::vector<uint32_t> bucket_begin_;
  // Of each kKeyStride-th suffix the first eight bytes, as one big-endian
  // number, filled up with 00 at the text's end.
  std::unique_ptr<uint64_t[]> keys_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_SUFFIX_INDEX_H_
