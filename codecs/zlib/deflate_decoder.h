// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_ZLIB_DEFLATE_DECODER_H_
#define QUIRE_CODECS_ZLIB_DEFLATE_DECODER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/zlib/deflate_bits.h"
#include "codecs/zlib/text_match.h"
#include "codecs/zlib/zlib_stream.h"

namespace quire {

// Decompresses raw DEFLATE streams (RFC 1951) that are completely in memory,
// about twice as fast as zlib's inflate(), which must be able to stop at any
// byte of either side. Accepts exactly the streams that zlib accepts.
//
// Usage: Start(), then DecodeTo() as often as more text is needed, then
// Finish() if the stream must end there.
//
// Thread-compatible. Takes about 12 KiB; allocates nothing.
class DeflateDecoder {
 public:
  // Space after the wanted text, in bytes, with which all of it decodes at full
  // speed: the last bytes of the output buffer take twice the time.
  static constexpr size_t kFastLoopMargin = 320;

  // Starts on the stream at the front of `stored`. All of `output` may be
  // overwritten; no call writes past it. Matches may reach back into
  // `dictionary` (its last 32 KiB), as if it preceded the text; it may be
  // empty. With kFullFlush, `stored` is a piece of a stream that must not have
  // its final block. All three must outlive the later calls; `output` must not
  // be changed between them.
  void Start(ByteView stored, MutableByteView output, ByteView dictionary = {},
             DeflateEnding ending = DeflateEnding::kFinalBlock);

  // From now until the next Start(), appends each decoded match to `matches`,
  // in order, which makes decoding several times slower. `matches` must outlive
  // the later calls.
  void RecordMatches(std::vector<TextMatch>& matches) { matches_ = &matches; }

  // Decodes until at least the first `wanted` bytes of the output buffer are
  // text, or the stream ends. Returns the size of the text so far: less than
  // `wanted` only at the stream's end, otherwise possibly more.
  // REQUIRES: wanted <= output.size(), and all earlier calls have succeeded.
  // Errors: DataLoss  malformed or truncated.
  absl::StatusOr<size_t> DecodeTo(size_t wanted);

  // Number of bytes of `stored` used so far, counting a partly used byte as
  // whole; at the stream's end, its size. After an error, the number of bytes
  // read before it; at least all if the stream was truncated.
  size_t stored_size_so_far() const {
    return static_cast<size_t>(bits_.end - stored_begin_) - UnreadSize();
  }

  // Number of bytes of text decoded so far, also before an error.
  size_t text_size_so_far() const { return text_size_; }

  // End of the first block that is not stored, in bytes from the text's start;
  // 0 before it is reached.
  size_t first_block_end() const { return first_block_end_; }

  // OK if the stream has exactly `text_size` bytes of text and uses all of
  // `stored`.
  // REQUIRES: DecodeTo(text_size) has succeeded.
  // Errors: DataLoss  otherwise.
  absl::Status Finish(size_t text_size);

 private:
  enum class Block { kNone, kStored, kCoded };
  enum class Result { kOk, kEndOfBlock, kMalformed, kCut };

  absl::Status Run(size_t wanted);
  absl::Status ReadBlockHeader();
  absl::Status ReadStoredHeader();
  absl::Status ReadCodes();
  bool ReadCodeLengths(std::array<uint8_t, 320>& lengths, size_t count,
                       unsigned root_bits);
  void UseFixedCodes();
  void CopyStored(size_t wanted);
  // Decode symbols until the text has `wanted` bytes: the first up to
  // FastEnd(), without checking for the end of the output buffer, the second
  // all of it. In deflate_symbols.cc.
  Result DecodeFast(size_t wanted);
  Result DecodeCarefully(size_t wanted);
  Result DecodeFastLoop(size_t wanted);
  Result DecodeFastPlain(size_t wanted);
  Result DecodeFastBmi2(size_t wanted);
  size_t FastEnd() const;
  // Size of the stream after the last bit that was taken.
  size_t UnreadSize() const;
  bool CopyFromDictionary(size_t distance, size_t length, uint8_t* to) const;

  // Space for any code with these roots: the results of zlib's
  // examples/enough.c for 288 symbols, 11 bits and 32 symbols, 8 bits.
  static constexpr unsigned kLengthRootBits = 11;
  static constexpr unsigned kDistanceRootBits = 8;
  std::array<uint32_t, 2342> length_table_;
  std::array<uint32_t, 402> distance_table_;
  unsigned length_root_bits_ = 0;
  unsigned distance_root_bits_ = 0;
  bool has_fixed_codes_ = false;

  DeflateBits bits_;
  const uint8_t* stored_begin_ = nullptr;
  MutableByteView output_;
  ByteView dictionary_;
  std::vector<TextMatch>* matches_ = nullptr;
  size_t text_size_ = 0;
  size_t first_block_end_ = 0;
  Block block_ = Block::kNone;
  DeflateEnding ending_ = DeflateEnding::kFinalBlock;
  bool is_last_block_ = false;
  // The last block was an empty stored block.
  bool is_flushed_ = false;
  bool at_end_ = false;
  // The text of the stream is larger than the output buffer.
  bool overflowed_ = false;
  size_t stored_left_ = 0;
};

}  // namespace quire

#endif  // QUIRE_CODECS_ZLIB_DEFLATE_DECODER_H_
