// SPDX-License-Identifier: Apache-2.0
#include "codecs/zlib/deflate_codec.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

#include "codecs/base/check.h"
#include "codecs/base/status_macros.h"

namespace quire {

absl::Status DecodeDeflateRange(ByteView stored, ByteView dictionary,
                                size_t raw_size, size_t offset,
                                MutableByteView out, DeflateDecoder& decoder,
                                BlockCodec::Scratch& scratch,
                                DeflateEnding ending) {
  const size_t end = offset + out.size();
  const MutableByteView text =
      offset == 0 ? out
                  : scratch.TextBuffer(end + DeflateDecoder::kFastLoopMargin);
  decoder.Start(stored, text, dictionary, ending);
  QUIRE_ASSIGN_OR_RETURN(const size_t size, decoder.DecodeTo(end));
  if (size < end) {
    return absl::DataLossError(absl::StrCat(
        "decodes to ", size, " bytes where ", raw_size, " were expected"));
  }
  if (end == raw_size) {
    QUIRE_RETURN_IF_ERROR(decoder.Finish(raw_size));
  }
  if (offset != 0) {
    std::ranges::copy(text.subspan(offset, out.size()), out.begin());
  }
  return absl::OkStatus();
}

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
