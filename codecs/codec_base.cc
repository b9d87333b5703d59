// SPDX-License-Identifier: Apache-2.0
#include "codecs/codec_base.h"

#include "absl/strings/str_cat.h"

#include "codecs/base/check.h"

namespace quire {

absl::StatusOr<size_t> CodecBase::Encode(ByteView raw, MutableByteView stored,
                                         Scratch& scratch) const {
  QUIRE_CHECK(!raw.empty() && raw.size() <= kBlockSizeBytesMax);
  QUIRE_CHECK(stored.size() >= StoredSizeMax(raw.size()));
  if (use_ == CodecUse::kDecode) {
    return absl::FailedPreconditionError(
        absl::StrCat("this ", info_.name, " codec was made for decoding only"));
  }
  return EncodeBlock(raw, stored, scratch);
}

absl::Status CodecBase::Damaged(ByteView stored, absl::string_view what) const {
  return absl::DataLossError(absl::StrCat(
      info_.name, " block of ", stored.size(), " stored bytes: ", what));
}

absl::Status CodecBase::WrongSize(ByteView stored, size_t found,
                                  size_t expected) const {
  return Damaged(stored, absl::StrCat("decodes to ", found, " bytes where ",
                                      expected, " were expected"));
}

}  // namespace quire
