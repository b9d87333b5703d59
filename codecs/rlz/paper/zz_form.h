// SPDX-License-Identifier: Apache-2.0
//
// RLZ-ZZ of "Access Time Tradeoffs in Archive Compression", section 4: each of
// the two integers of all factors in a stream of its own; and RLZ-ZZ' of
// section 5, where both streams are primed.
//
//   factor count     varint, at least 1
//   flags            RLZ-ZZ' only, one byte: bit 0 if the offset stream is
//                    primed, bit 1 if the length stream is
//   size in bytes of the offset stream as stored    varint
//   offset stream    raw DEFLATE of 32-bit little-endian integers
//   length stream    raw DEFLATE of varints, to the end
//
// A stream is primed where that makes it smaller; matches far back cost more
// than they save in blocks that have little in common with the priming.
//
// In the paper lengths are 32-bit integers, too. Nearly all take one byte as a
// varint, and what zlib makes of these is a quarter smaller: 1.73 % against
// 2.35 % of a web crawl in 64 KiB blocks with a 16 MiB dictionary.
#ifndef QUIRE_CODECS_RLZ_PAPER_ZZ_FORM_H_
#define QUIRE_CODECS_RLZ_PAPER_ZZ_FORM_H_

#include <string>
#include <vector>

#include "codecs/rlz/paper/deflated_streams.h"
#include "codecs/rlz/paper/factor_form.h"
#include "codecs/rlz/paper/factor_priming.h"
#include "codecs/zlib/zlib_stream.h"

namespace quire {

class ZzForm final : public FactorForm {
 public:
  // `zlib_level` is 1 to 9. `priming`, which must outlive the form, is null for
  // RLZ-ZZ.
  explicit ZzForm(int zlib_level, const FactorPriming* priming = nullptr)
      : priming_(priming), deflate_(zlib_level) {}

  absl::StatusOr<ByteView> Write(ByteView raw,
                                 const FactorList& factors) override;
  absl::Status Read(ByteView stored, ByteView dictionary, size_t raw_size,
                    size_t offset, MutableByteView out) override;

 private:
  absl::StatusOr<size_t> WriteStream(ByteView bytes, ByteView priming,
                                     std::vector<uint8_t>& stream,
                                     bool& is_primed);

  ByteView OffsetPriming() const {
    return priming_ == nullptr ? ByteView() : priming_->offsets();
  }

  ByteView LengthPriming() const {
    return priming_ == nullptr ? ByteView() : priming_->lengths();
  }

  const FactorPriming* const priming_;
  DeflateStream deflate_;
  std::vector<uint32_t> known_offsets_;
  std::string length_bytes_;
  std::vector<uint8_t> offset_stream_;
  std::vector<uint8_t> length_stream_;
  std::vector<uint8_t> primed_stream_;
  std::vector<uint8_t> stored_;

  DeflatedStream offsets_{"offset"};
  DeflatedStream lengths_{"length"};
};

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_PAPER_ZZ_FORM_H_
