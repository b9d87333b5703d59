// SPDX-License-Identifier: Apache-2.0
//
// A decoder of zstd frames (RFC 8878) for blocks of an archive. It knows the
// text's size, takes a dictionary of any size in place, overlaps cache misses,
// and can stop early.
//
// It complements libzstd: it decodes frames that encoders write and leaves all
// others, malformed ones among them, to libzstd, which decides what is valid.
#ifndef QUIRE_CODECS_ZSTD_DECODER_ZSTD_DECODER_H_
#define QUIRE_CODECS_ZSTD_DECODER_ZSTD_DECODER_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "codecs/base/bytes.h"
#include "codecs/zstd/decoder/huffman_literals.h"
#include "codecs/zstd/decoder/sequence_reader.h"

namespace quire {

// A decoder and its 150 KB of memory, reused from frame to frame.
// Thread-compatible.
class ZstdDecoder {
 public:
  // Decodes the first `size` bytes of a frame of exactly `raw_size` bytes of
  // text to the front of `output`. Matches may reach back into `dictionary`,
  // which is raw content.
  //
  // Returns false if it cannot tell: `stored` is malformed, or uses features
  // that this decoder lacks (checksums, dictionary numbers, inner blocks longer
  // than RFC 8878 allows); then `output` is unspecified. If true and size ==
  // raw_size, libzstd gives the same bytes; if `size` is less, the rest may be
  // damaged.
  //
  // Faster if `output` has kCopyExcess more bytes than `size`, which may be
  // overwritten. REQUIRES: size <= raw_size, size <= output.size() < 2^31.
  bool Decode(ByteView stored, ByteView dictionary, size_t raw_size,
              size_t size, MutableByteView output);

 private:
  // Progress of a frame.
  struct Frame;

  static bool ReadHeader(Frame& frame);
  bool DecodeBlock(Frame& frame);
  bool DecodeCompressed(ByteView block, Frame& frame);
  // Reads the literals section of `block` and advances `block` past it.
  bool ReadLiterals(const Frame& frame, ByteView& block);
  bool ReadPlainLiterals(const Frame& frame, ByteView& block);
  bool ReadCodedLiterals(const Frame& frame, ByteView& block);

  uint8_t* LiteralBuffer();

  HuffmanLiterals huffman_;
  SequenceReader sequences_;
  std::unique_ptr<uint8_t[]> literal_buffer_;
  // Literals of the block, in its stored form or in literal_buffer_, followed
  // by kCopyExcess readable bytes.
  ByteView literals_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_ZSTD_DECODER_ZSTD_DECODER_H_
