// SPDX-License-Identifier: Apache-2.0
#include "codecs/zlib/deflate_codec.h"

#include "codecs/base/check.h"
#include "codecs/zlib/deflate_range.h"

namespace quire {

absl::Status DeflateCodec::Decode(ByteView stored, MutableByteView raw,
                                  Scratch& scratch) const {
  return DecodeRange(stored, raw.size(), 0, raw, scratch);
}

absl::Status DeflateCodec::DecodeRange(ByteView stored, size_t raw_size,
                                       size_t offset, MutableByteView out,
                                       Scratch& scratch) const {
  QUIRE_CHECK(offset <= raw_size && out.size() <= raw_size - offset);
  const absl::StatusOr<PrimedStream> found = FindStream(stored);
  if (!found.ok()) {
    return Damaged(stored, found.status().message());
  }
  const absl::Status status = DecodeDeflateRange(
      found->stream, found->dictionary, raw_size, offset, out,
      static_cast<DeflateScratch&>(scratch).decoder, scratch);
  return status.ok() ? status : Damaged(stored, status.message());
}

}  // namespace quire
