// SPDX-License-Identifier: Apache-2.0
//
// Stored forms of a block's factors, of "Access Time Tradeoffs in Archive
// Compression"; the paper's codecs differ in them.
#ifndef QUIRE_CODECS_RLZ_PAPER_FACTOR_FORM_H_
#define QUIRE_CODECS_RLZ_PAPER_FACTOR_FORM_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/rlz/factor.h"
#include "codecs/rlz/paper/deflated_streams.h"
#include "codecs/zlib/zlib_stream.h"

namespace quire {

// A form never begins with a byte 00 (see paper_codec.cc).
// Thread-compatible; keeps its memory between calls.
class FactorForm {
 public:
  virtual ~FactorForm() = default;

  // Encodes `factors`, whose text is `raw`. The view is valid until the next
  // call.
  // REQUIRES: factors.size() > 0.
  // Errors: Internal  from zlib.
  virtual absl::StatusOr<ByteView> Write(ByteView raw,
                                         const FactorList& factors) = 0;

  // Decodes bytes [offset, offset + out.size()) of a block of `raw_size` bytes
  // of text. `stored` is untrusted. A call for the whole block checks that all
  // of `stored` is used.
  // REQUIRES: offset + out.size() <= raw_size <= kBlockSizeBytesMax.
  // Errors: DataLoss  malformed.
  virtual absl::Status Read(ByteView stored, ByteView dictionary,
                            size_t raw_size, size_t offset,
                            MutableByteView out) = 0;
};

// RLZ-UV and RLZ-PV, section 4: offsets of a fixed width, 32 bits or as few as
// the dictionary needs, and lengths as variable-length integers.
//
//   factor count n   varint, at least 1
//   offsets          n integers of w bits each, from the lowest bit of the
//                    first byte on; 0 to 7 bits of 0 fill the last byte
//   lengths          n varints, to the end
//
// Nothing is unpacked in advance: a factor is addressed by its number.
class FixedForm final : public FactorForm {
 public:
  // REQUIRES: 8 <= offset_bits <= 32; 2^offset_bits is not less than the
  //           dictionary's size. (A literal takes 8 bits.)
  explicit FixedForm(unsigned offset_bits) : offset_bits_(offset_bits) {}

  absl::StatusOr<ByteView> Write(ByteView raw,
                                 const FactorList& factors) override;
  absl::Status Read(ByteView stored, ByteView dictionary, size_t raw_size,
                    size_t offset, MutableByteView out) override;

 private:
  const unsigned offset_bits_;
  std::string stored_;
};

// Returns the width of RLZ-PV's offsets: the smallest that holds all offsets in
// the dictionary and a literal.
unsigned PackedOffsetBits(size_t dictionary_size);

// RLZ-ZZ, section 4: each of the two integers of all factors in a stream of its
// own.
//
//   factor count     varint, at least 1
//   size in bytes of the offset stream as stored    varint
//   offset stream    raw DEFLATE of 32-bit little-endian integers
//   length stream    raw DEFLATE of varints, to the end
//
// In the paper lengths are 32-bit integers, too. Nearly all take one byte as a
// varint, and what zlib makes of these is a quarter smaller: 1.73 % against
// 2.35 % of a web crawl in 64 KiB blocks with a 16 MiB dictionary.
class ZzForm final : public FactorForm {
 public:
  // `zlib_level` is 1 to 9.
  explicit ZzForm(int zlib_level) : deflate_(zlib_level) {}

  absl::StatusOr<ByteView> Write(ByteView raw,
                                 const FactorList& factors) override;
  absl::Status Read(ByteView stored, ByteView dictionary, size_t raw_size,
                    size_t offset, MutableByteView out) override;

 private:
  DeflateStream deflate_;
  std::string length_bytes_;
  std::vector<uint8_t> offset_stream_;
  std::vector<uint8_t> length_stream_;
  std::vector<uint8_t> stored_;

  DeflatedStream offsets_{"offset"};
  DeflatedStream lengths_{"length"};
};

// RLZ-ZZZ, section 5, "Three Streams": factors too short to be worth an offset
// are literals, and these have a stream of their own.
//
//   size in bytes of the tokens        varint, at least 1
//   size of the token stream as stored    varint
//   size of the offset stream as stored   varint
//   token stream     raw DEFLATE of varints: see TokenKind::kFactorsAndRuns
//   offset stream    raw DEFLATE of little-endian integers, each of as many
//                    bytes as the dictionary's last position has; nothing at
//                    all if there are none
//   literal stream   raw DEFLATE of bytes, to the end; nothing if there are
//                    none
//
// Runs of literals share their token, and offsets have no bytes that are always
// 0: fewer symbols to decode, and a repeated offset is a match for zlib.
class ZzzForm final : public FactorForm {
 public:
  // `zlib_level` is 1 to 9.
  ZzzForm(int zlib_level, size_t dictionary_size);

  absl::StatusOr<ByteView> Write(ByteView raw,
                                 const FactorList& factors) override;
  absl::Status Read(ByteView stored, ByteView dictionary, size_t raw_size,
                    size_t offset, MutableByteView out) override;

 private:
  void Collect(ByteView raw, const FactorList& factors);
  void AddLiterals(ByteView literals);

  const size_t offset_size_;
  DeflateStream deflate_;
  // Tokens, offsets, literals; then as streams.
  std::array<std::string, 3> bytes_;
  std::array<std::vector<uint8_t>, 3> streams_;
  std::vector<uint8_t> stored_;

  DeflatedStream tokens_{"token"};
  DeflatedStream offsets_{"offset"};
  DeflatedStream literals_{"literal"};
};

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_PAPER_FACTOR_FORM_H_
