// SPDX-License-Identifier: GPL-3.0-or-later
//
// The strings of one bucket of an IdTable in memory, for building and
// searching.
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

// Strings per bucket, except the last one.
inline constexpr size_t kIdBucketSize = 64;

// A buffer for reading an id, with free space at its end. Movable.
// Thread-compatible.
class IdBuffer {
 public:
  absl::string_view view() const { return {bytes_.data(), size_}; }

  // Keeps the first bytes of the id; returns where `space` bytes may be
  // written, up to its new end. REQUIRES: kept_size <= view().size().
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

// A view of sorted strings; the first, the head, is complete.
//
// The head is a byte of flags and its text. The body has, for all other
// strings, the number of bytes that each shares with the one before (as many as
// possible), then the number of bytes of its own text, then the texts. Sizes
// take 1, 2 or 4 bytes, as in the flags. Either all texts are FSST codes, or
// none. Trusted: written by Append(). Borrows all. Thread-safe.
class IdBucket {
 public:
  // `coding` may be null if no bucket has codes.
  // REQUIRES: 0 < count; kIdCodesPadding readable bytes after head and body.
  IdBucket(const IdCoding* coding, ByteView head, const uint8_t* body,
           size_t count);

  // Returns the index of the first string after the head that compares with
  // `key` above `order_max` (-1 or 0); the bucket's size if there is none. Sets
  // `order` to its result.
  // REQUIRES: the head is not above `order_max`, and shares `shared` bytes with
  // `key`.
  size_t FirstAbove(absl::string_view key, size_t shared, int order_max,
                    int* order) const;

  // True if a string equals the one before. REQUIRES: 0 < index < size.
  bool IsRepeat(size_t index) const { return text_sizes_[index] == 0; }

  // Reads the string at `index`. Returns the end of its own text.
  // REQUIRES: index < size.
  size_t Read(size_t index, IdBuffer& id) const;

  // Changes the string before `index`, whose own text ends at `texts_begin`,
  // into the one at `index`; returns the end of its own text. REQUIRES: 0 <
  // index < size.
  size_t ReadNext(size_t index, size_t texts_begin, IdBuffer& id) const;

  // Appends a bucket. `shared_sizes` and `texts` are those of all strings; the
  // shared size of the head is ignored. `are_codes` is true for FSST codes.
  static void Append(std::span<const uint32_t> shared_sizes,
                     std::span<const ByteView> texts, bool are_codes,
                     std::string& heads, std::string& bodies);

 private:
  // Integers of 1, 2 or 4 bytes for the strings after the head, by index.
  class Sizes {
   public:
    Sizes(const uint8_t* sizes, size_t width)
        : sizes_(sizes - width), width_(width) {}

    uint32_t operator[](size_t index) const;
    // Sum for the strings from `begin` to below `end`.
    size_t Sum(size_t begin, size_t end) const;
    // Returns the first from `begin` on that is at most `size`; `end` if there
    // is none.
    size_t NextUpTo(size_t size, size_t begin, size_t end) const;

   private:
    // Address of the head's size, if it had one.
    const uint8_t* sizes_;
    size_t width_;
  };

  // Replaces everything after `offset` by all of a text; or fills `out` with
  // the front of one.
  void Decode(ByteView text, size_t offset, IdBuffer& id) const;
  void DecodeFront(ByteView text, MutableByteView out) const;

  // Null if the texts are plain.
  const IdCoding* coding_;
  ByteView head_;
  size_t count_;
  Sizes shared_sizes_;
  Sizes text_sizes_;
  const uint8_t* texts_;
};

// All buckets of a table, each of kIdBucketSize strings except the last.
// Movable. Thread-safe.
struct IdBuckets {
  // REQUIRES: the bucket exists; `size` is the total number of strings.
  IdBucket At(uint64_t bucket, uint64_t size) const;
  // Compares the first string of a bucket. REQUIRES: up to `place` it has the
  // codes that `key` would have, see IdCoding::Compare(), which sets `place`.
  IdOrder CompareHead(uint64_t bucket, absl::string_view key,
                      IdPlace& place) const;
  uint64_t MemoryBytes() const;

  // Head with its flags.
  ByteView Head(uint64_t bucket) const;

  // Null if all texts are plain.
  std::unique_ptr<const IdCoding> coding;
  // Heads are stored together, so that bisection touches little memory. Each
  // begins at the end of the one before; padding follows the last.
  std::string heads;
  std::string bodies;
  // One more than the number of heads.
  PackedVector head_begins;
  PackedVector body_begins;
  // Size of the longest string.
  uint64_t id_size_bytes_max = 0;
};

// Loads the section of ids on disk, as IdTable::Parse() does. With enough ids
// it trains a symbol table on a sample and encodes the buckets that become
// smaller. Deterministic. REQUIRES: 0 < count.
// Errors: DataLoss  not `count` sorted ids of `id_size_bytes` in total.
absl::StatusOr<IdBuckets> LoadIdBuckets(ByteView section, uint64_t count,
                                        uint64_t id_size_bytes,
                                        std::vector<bool>* repeats);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_INDEX_ID_BUCKET_H_
