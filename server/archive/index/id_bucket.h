// SPDX-License-Identifier: GPL-3.0-or-later
//
// The strings of one bucket of an IdTable as they lie in memory, for those who
// build the table and search it.
#ifndef QUIRE_SERVER_ARCHIVE_INDEX_ID_BUCKET_H_
#define QUIRE_SERVER_ARCHIVE_INDEX_ID_BUCKET_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"
#include "server/archive/index/id_coding.h"
#include "server/archive/index/packed_vector.h"

namespace quire {

// Strings in a bucket, but for the last one.
inline constexpr size_t kIdBucketSize = 64;

// An id that is read, with space behind it. Movable. Thread-compatible.
class IdBuffer {
 public:
  absl::string_view view() const { return {bytes_.data(), size_}; }

  // Keeps the first bytes of the id; where `space` bytes may be written, up to
  // what becomes its end. REQUIRES: kept_size <= view().size().
  char* Cut(size_t kept_size, size_t space) {
    if (bytes_.size() < kept_size + space) {
      bytes_.resize(std::max(2 * bytes_.size(), kept_size + space));
    }
    size_ = kept_size;
    return bytes_.data() + kept_size;
  }

  void EndAt(const char* end) {
    size_ = static_cast<size_t>(end - bytes_.data());
  }

 private:
  std::string bytes_;
  size_t size_ = 0;
};

// A view of sorted strings, the first of which, the head, is whole.
//
// The head is a byte of flags and its text; the body, for all other strings,
// how many bytes each shares with the one before (as many as possible), then
// how many bytes of text of its own each has, all these sizes in 1, 2 or 4
// bytes as the flags say, and then the texts. All texts are FSST codes, or
// none. Trusted: Append() wrote it. Borrows all. Thread-safe.
class IdBucket {
 public:
  // `coding` may be null if no bucket has codes.
  // REQUIRES: 0 < count; kIdCodesPadding bytes behind head and body.
  IdBucket(const IdCoding* coding, ByteView head, const uint8_t* body,
           size_t count);

  // Index of the first string behind the head that, compared with `key`, is
  // above `order_max` (-1 or 0); the bucket's size if there is none. `order`
  // becomes how that one compares.
  // REQUIRES: the head is not above it, and shares `shared` bytes with `key`.
  size_t FirstAbove(absl::string_view key, size_t shared, int order_max,
                    int* order) const;

  // Whether a string is equal to the one before. REQUIRES: 0 < index < size.
  bool IsRepeat(size_t index) const { return text_sizes_[index] == 0; }

  // The string at `index`. Returns where its own text ends.
  // REQUIRES: index < size.
  size_t Read(size_t index, IdBuffer& id) const;

  // Makes the string at `index` of the one before it, whose own text ends at
  // `texts_begin`; returns where its own ends. REQUIRES: 0 < index < size.
  size_t ReadNext(size_t index, size_t texts_begin, IdBuffer& id) const;

  // Writes a bucket behind what is there. `shared_sizes` and `texts` are those
  // of all strings; that of the head is not looked at. `are_codes` says what
  // the texts are.
  static void Append(std::span<const uint32_t> shared_sizes,
                     std::span<const ByteView> texts, bool are_codes,
                     std::string& heads, std::string& bodies);

 private:
  // Integers of 1, 2 or 4 bytes for the strings behind the head, by index.
  class Sizes {
   public:
    Sizes(const uint8_t* sizes, size_t width)
        : sizes_(sizes - width), width_(width) {}

    uint32_t operator[](size_t index) const;
    // Of strings `begin` to below `end`.
    size_t Sum(size_t begin, size_t end) const;
    // The first from `begin` on that is at most `size`; `end` if there is none.
    size_t NextUpTo(size_t size, size_t begin, size_t end) const;

   private:
    // Where that of the head would be.
    const uint8_t* sizes_;
    size_t width_;
  };

  // Replaces what is behind `offset` by all of a text, and fills `out` with the
  // front of one.
  void Decode(ByteView text, size_t offset, IdBuffer& id) const;
  void DecodeFront(ByteView text, MutableByteView out) const;

  // Null if the texts are kept as they are.
  const IdCoding* coding_;
  ByteView head_;
  size_t count_;
  Sizes shared_sizes_;
  Sizes text_sizes_;
  const uint8_t* texts_;
};

// All buckets of a table, each of kIdBucketSize strings but the last.
// Movable. Thread-safe.
struct IdBuckets {
  // REQUIRES: the bucket exists; `size` is the number of strings in all.
  IdBucket At(uint64_t bucket, uint64_t size) const;
  // How the first string of a bucket compares. It must have, up to `place`, the
  // codes that `key` would have: IdCoding::Compare() says when, and sets it.
  IdOrder CompareHead(uint64_t bucket, absl::string_view key,
                      IdPlace& place) const;
  uint64_t MemoryBytes() const;

  // With its flags.
  ByteView Head(uint64_t bucket) const;

  // Null where all texts are kept as they are.
  std::unique_ptr<const IdCoding> coding;
  // Heads lie apart, so that bisecting over them touches little memory. Where
  // one ends the next begins, and behind the last of each is the padding.
  std::string heads;
  std::string bodies;
  // One more than there are.
  PackedVector head_begins;
  PackedVector body_begins;
  // Of the longest string.
  uint64_t id_size_bytes_max = 0;
};

// Loads the section of ids on disk, as IdTable::Parse() does. Trains a symbol
// table on a sample of the ids, where there are enough of them, and keeps as
// codes the buckets that are smaller so. Deterministic. REQUIRES: 0 < count.
// Errors: DataLoss  not `count` sorted ids of `id_size_bytes` in all.
absl::StatusOr<IdBuckets> LoadIdBuckets(ByteView section, uint64_t count,
                                        uint64_t id_size_bytes,
                                        std::vector<bool>* repeats);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_INDEX_ID_BUCKET_H_
