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
namespace {

constexpr unsigned kOffsetBits = 32;

// The integers are stored as in memory.
static_assert(std::endian::native == std::endian::little);

ByteView BytesOf(const std::vector<uint32_t>& integers) {
  return {reinterpret_cast<const uint8_t*>(integers.data()),
          integers.size() * sizeof(uint32_t)};
}

}  // namespace

absl::StatusOr<ByteView> ZzForm::Write(ByteView /*raw*/,
                                       const FactorList& factors) {
  QUIRE_CHECK(factors.size() > 0);
  length_bytes_.clear();
  for (const uint32_t length : factors.lengths) {
    AppendVarint(length, length_bytes_);
  }
  const size_t stream_size_max =
      DeflateSizeMax(factors.size() * sizeof(uint32_t));
  for (std::vector<uint8_t>* const stream :
       {&offset_stream_, &length_stream_}) {
    if (stream->size() < stream_size_max) {
      stream->resize(stream_size_max);
    }
  }
  QUIRE_ASSIGN_OR_RETURN(
      const size_t offsets_size,
      deflate_.Compress(BytesOf(factors.offsets), offset_stream_));
  QUIRE_ASSIGN_OR_RETURN(
      const size_t lengths_size,
      deflate_.Compress(AsBytes(length_bytes_), length_stream_));
  std::string header;
  AppendVarint(factors.size(), header);
  AppendVarint(offsets_size, header);
  if (stored_.size() < header.size() + offsets_size + lengths_size) {
    stored_.resize(header.size() + offsets_size + lengths_size);
  }
  auto end = std::ranges::copy(AsBytes(header), stored_.begin()).out;
  end = std::copy_n(offset_stream_.begin(), offsets_size, end);
  end = std::copy_n(length_stream_.begin(), lengths_size, end);
  return ByteView(stored_.begin(), end);
}

absl::Status ZzForm::Read(ByteView stored, ByteView dictionary, size_t raw_size,
                          size_t offset, MutableByteView out) {
  QUIRE_ASSIGN_OR_RETURN(const uint64_t factor_count, TakeVarint(stored));
  if (factor_count == 0 || factor_count > raw_size) {
    return absl::DataLossError(absl::StrCat(
        "claims ", factor_count, " factors for ", raw_size, " bytes of text"));
  }
  QUIRE_ASSIGN_OR_RETURN(const uint64_t offsets_size, TakeVarint(stored));
  if (offsets_size > stored.size()) {
    return absl::DataLossError(absl::StrCat("claims ", offsets_size,
                                            " bytes of offsets where ",
                                            stored.size(), " bytes are left"));
  }
  lengths_.Start(stored.subspan(offsets_size),
                 factor_count * kTokenSizeBytesMax);
  const size_t end = offset + out.size();
  QUIRE_ASSIGN_OR_RETURN(
      TokenRange range,
      FindTokens(TokenKind::kFactors, offset, end, raw_size, lengths_));
  const bool whole = end == raw_size;
  if (range.end.offsets > factor_count ||
      (whole && range.end.offsets < factor_count)) {
    return absl::DataLossError(absl::StrCat(
        "claims ", factor_count, " factors, but has ", range.end.offsets));
  }
  offsets_.Start(stored.first(offsets_size), factor_count * sizeof(uint32_t));
  // Includes the factor in which the range ends.
  const size_t needed = std::min(
      factor_count, range.end.offsets + (range.end.text_size < end ? 1 : 0));
  QUIRE_RETURN_IF_ERROR(offsets_.DecodeTo(needed * sizeof(uint32_t)));
  if (whole) {
    QUIRE_RETURN_IF_ERROR(offsets_.Finish());
  }
  const FactorTokens factors = {
      .kind = TokenKind::kFactors,
      .tokens = lengths_.bytes(),
      .offsets = offsets_.bytes_and_more(),
      .offset_count = offsets_.bytes().size() / sizeof(uint32_t),
      .offset_bits = kOffsetBits};
  return CopyFactorText(dictionary, factors, offset - range.begin.text_size,
                        range.begin, out);
}

}  // namespace quire
