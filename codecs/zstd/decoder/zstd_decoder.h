// SPDX-License-Identifier: Apache-2.0
//
// A decoder of zstd frames (RFC 8878) made for blocks of an archive: it knows
// the text's size, takes a dictionary of any size where it lies, waits for no
// part of it one at a time, and stops where it is told.
//
// It is no replacement of libzstd, but stands before it: it decodes the frames
// that encoders write, and leaves to libzstd all others, broken ones among them
// (so that libzstd has the last word on what is right).
#ifndef QUIRE_CODECS_ZSTD_DECODER_ZSTD_DECODER_H_
#define QUIRE_CODECS_ZSTD_DECODER_ZSTD_DECODER_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "codecs/base/bytes.h"
#include "codecs/zstd/decoder/huffman_literals.h"
#include "codecs/zstd/decoder/sequence_copy.h"
#include "codecs/zstd/decoder/sequence_reader.h"

namespace quire {

// A decoder and its memory, 150 KB, which it reuses from frame to frame.
// Thread-compatible.
class ZstdDecoder {
 public:
  // Decodes the first `size` bytes of a frame of exactly `raw_size` bytes of
  // text to the front of `output`. Matches may reach back into `dictionary`,
  // which is raw content.
  //
  // False if it cannot tell: `stored` is wrong, or uses what this decoder does
  // not know (checksums, dictionary numbers, inner blocks longer than RFC 8878
  // allows); then `output` has unspecified contents. If true, and size ==
  // raw_size, then libzstd agrees in every byte; if `size` is less, whatever
  // follows may be damaged.
  //
  // It is faster where `output` has kCopyExcess bytes more than `size`, which
  // may be overwritten. REQUIRES: size <= raw_size, size <= output.size() <
  // 2^31.
  bool Decode(ByteView stored, ByteView dictionary, size_t raw_size,
              size_t size, MutableByteView output);

 private:
  // How far a frame has come.
  struct Frame;

  static bool ReadHeader(Frame& frame);
  bool DecodeBlock(Frame& frame);
  bool DecodeCompressed(ByteView block, Frame& frame);
  // Reads the literals section of `block`, and moves `block` behind it.
  bool ReadLiterals(const Frame& frame, ByteView& block);
  bool ReadPlainLiterals(const Frame& frame, ByteView& block);
  bool ReadCodedLiterals(const Frame& frame, ByteView& block);

  uint8_t* LiteralBuffer();

  HuffmanLiterals huffman_;
  SequenceReader sequences_;
  std::unique_ptr<uint8_t[]> literal_buffer_;
  // Of the block: in its stored form or in literal_buffer_, with kCopyExcess
  // readable bytes behind them.
  ByteView literals_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_ZSTD_DECODER_ZSTD_DECODER_H_
