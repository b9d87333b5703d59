// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstdint>

#include "absl/strings/str_cat.h"

#include "codecs/base/check.h"
#include "codecs/base/status_macros.h"
#include "codecs/base/varint.h"
#include "codecs/rlz/paper/factor_form.h"
#include "codecs/rlz/paper/factor_tokens.h"

namespace quire {

unsigned PackedOffsetBits(size_t dictionary_size) {
  const size_t last = dictionary_size == 0 ? 0 : dictionary_size - 1;
  return std::max(8u, static_cast<unsigned>(std::bit_width(last)));
}

absl::StatusOr<ByteView> FixedForm::Write(ByteView /*raw*/,
                                          const FactorList& factors) {
  QUIRE_CHECK(factors.size() > 0);
  stored_.clear();
  AppendVarint(factors.size(), stored_);
  uint64_t bits = 0;
  unsigned count = 0;
  for (const uint32_t offset : factors.offsets) {
    bits |= uint64_t{offset} << count;
    count += offset_bits_;
    for (; count >= 8; count -= 8) {
      stored_.push_back(static_cast<char>(bits));
      bits >>= 8;
    }
  }
  if (count > 0) {
    stored_.push_back(static_cast<char>(bits));
  }
  for (const uint32_t length : factors.lengths) {
    AppendVarint(length, stored_);
  }
  return AsBytes(stored_);
}

absl::Status FixedForm::Read(ByteView stored, ByteView dictionary,
                             size_t raw_size, size_t offset,
                             MutableByteView out) {
  QUIRE_ASSIGN_OR_RETURN(const uint64_t count, TakeVarint(stored));
  if (count == 0 || count > raw_size) {
    return absl::DataLossError(absl::StrCat("claims ", count, " factors for ",
                                            raw_size, " bytes of text"));
  }
  const size_t offsets_size = (count * offset_bits_ + 7) / 8;
  if (offsets_size > stored.size()) {
    return absl::DataLossError(
        absl::StrCat("has ", count, " offsets in ", stored.size(), " bytes"));
  }
  const FactorTokens factors = {.kind = TokenKind::kFactors,
                                .tokens = stored.subspan(offsets_size),
                                .offsets = stored,
                                .offset_count = count,
                                .offset_bits = offset_bits_};
  TokenPlace place;
  QUIRE_ASSIGN_OR_RETURN(
      const bool reached,
      SkipTokens(factors.kind, factors.tokens, offset, place));
  if (!reached || place.offsets > count) {
    return WrongTextSize(place.text_size, raw_size);
  }
  QUIRE_RETURN_IF_ERROR(CopyFactorText(dictionary, factors,
                                       offset - place.text_size, place, out));
  if (out.size() == raw_size) {
    if (place.text_size != raw_size) {
      return WrongTextSize(place.text_size, raw_size);
    }
    if (place.offsets != count || place.token_bytes != factors.tokens.size()) {
      return absl::DataLossError("more factors follow the text's last");
    }
  }
  return absl::OkStatus();
}

}  // namespace quire
