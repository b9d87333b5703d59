// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_ZLIB_DEFLATE_CODEC_H_
#define QUIRE_CODECS_ZLIB_DEFLATE_CODEC_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/codec_base.h"
#include "codecs/zlib/deflate_decoder.h"
#include "codecs/zlib/zlib_stream.h"

namespace quire {

// Decodes bytes [offset, offset + out.size()) of a block of `raw_size` bytes
// that is one DEFLATE stream, primed with `dictionary`; only up to the range's
// end. If the range ends with the block, the stream must be all of `stored` and
// end there as `ending` specifies. `scratch` may be the one that owns
// `decoder`.
// REQUIRES: offset + out.size() <= raw_size.
// Errors: DataLoss  malformed, or of another size.
absl::Status DecodeDeflateRange(
    ByteView stored, ByteView dictionary, size_t raw_size, size_t offset,
    MutableByteView out, DeflateDecoder& decoder, BlockCodec::Scratch& scratch,
    DeflateEnding ending = DeflateEnding::kFinalBlock);

// A codec whose stored block holds the text as one DEFLATE stream. This class
// decodes; derived classes encode, and find the stream and the text that primes
// it.
class DeflateCodec : public CodecBase {
 public:
  absl::Status Decode(ByteView stored, MutableByteView raw,
                      Scratch& scratch) const final;

  absl::Status DecodeRange(ByteView stored, size_t raw_size, size_t offset,
                           MutableByteView out, Scratch& scratch) const final;

 protected:
  // NewScratch() returns this or a derived class.
  struct DeflateScratch : public Scratch {
    explicit DeflateScratch(int level) : deflate(level) {}

    DeflateStream deflate;
    DeflateDecoder decoder;
  };

  struct PrimedStream {
    ByteView stream;
    // See DeflateDecoder::Start().
    ByteView dictionary;
  };

  using CodecBase::CodecBase;

  // Finds the stream in a block's stored form, which is untrusted.
  // Errors: DataLoss  malformed; the message need not name the codec.
  virtual absl::StatusOr<PrimedStream> FindStream(ByteView stored) const = 0;
};

}  // namespace quire

#endif  // QUIRE_CODECS_ZLIB_DEFLATE_CODEC_H_
