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

// An offset costs about 20 bits after zlib, a literal 5 to 6.
constexpr uint32_t kFactorLengthMin = 6;

enum Stream { kTokens, kOffsets, kLiterals };

size_t OffsetSizeBytes(size_t dictionary_size) {
  const size_t last = dictionary_size == 0 ? 0 : dictionary_size - 1;
  return std::max<size_t>((static_cast<size_t>(std::bit_width(last)) + 7) / 8,
                          1);
}

}  // namespace

ZzzForm::ZzzForm(int zlib_level, size_t dictionary_size)
    : offset_size_(OffsetSizeBytes(dictionary_size)), deflate_(zlib_level) {}

void ZzzForm::AddLiterals(ByteView literals) {
  bytes_[kLiterals].append(AsText(literals).data(), literals.size());
  for (size_t left = literals.size(); left > 0;) {
    const size_t run = std::min<size_t>(left, kRunTokens);
    AppendVarint(run - 1, bytes_[kTokens]);
    left -= run;
  }
}

void ZzzForm::Collect(ByteView raw, const FactorList& factors) {
  for (std::string& bytes : bytes_) {
    bytes.clear();
  }
  // Text from `literals_from` to `at` is not yet coded.
  size_t literals_from = 0;
  size_t at = 0;
  for (size_t i = 0; i < factors.size(); ++i) {
    const uint32_t length = factors.lengths[i];
    if (length >= kFactorLengthMin) {
      AddLiterals(raw.subspan(literals_from, at - literals_from));
      AppendVarint(length + kRunTokens - 1, bytes_[kTokens]);
      for (size_t byte = 0; byte < offset_size_; ++byte) {
        bytes_[kOffsets].push_back(
            static_cast<char>(factors.offsets[i] >> (8 * byte)));
      }
      literals_from = at + length;
    }
    at += TextSizeOf(length);
  }
  AddLiterals(raw.subspan(literals_from));
}

absl::StatusOr<ByteView> ZzzForm::Write(ByteView raw,
                                        const FactorList& factors) {
  QUIRE_CHECK(factors.size() > 0);
  Collect(raw, factors);
  std::array<size_t, 3> sizes = {};
  for (size_t i = 0; i < streams_.size(); ++i) {
    if (bytes_[i].empty()) {
      continue;
    }
    const size_t size_max = DeflateSizeMax(bytes_[i].size());
    if (streams_[i].size() < size_max) {
      streams_[i].resize(size_max);
    }
    QUIRE_ASSIGN_OR_RETURN(sizes[i],
                           deflate_.Compress(AsBytes(bytes_[i]), streams_[i]));
  }
  std::string header;
  AppendVarint(bytes_[kTokens].size(), header);
  AppendVarint(sizes[kTokens], header);
  AppendVarint(sizes[kOffsets], header);
  const size_t size =
      header.size() + sizes[kTokens] + sizes[kOffsets] + sizes[kLiterals];
  if (stored_.size() < size) {
    stored_.resize(size);
  }
  auto end = std::ranges::copy(AsBytes(header), stored_.begin()).out;
  for (size_t i = 0; i < streams_.size(); ++i) {
    end = std::copy_n(streams_[i].begin(), sizes[i], end);
  }
  return ByteView(stored_.begin(), end);
}

absl::Status ZzzForm::Read(ByteView stored, ByteView dictionary,
                           size_t raw_size, size_t offset,
                           MutableByteView out) {
  QUIRE_ASSIGN_OR_RETURN(const uint64_t token_bytes, TakeVarint(stored));
  QUIRE_ASSIGN_OR_RETURN(const uint64_t tokens_size, TakeVarint(stored));
  QUIRE_ASSIGN_OR_RETURN(const uint64_t offsets_size, TakeVarint(stored));
  if (token_bytes == 0 || token_bytes > raw_size) {
    return absl::DataLossError(absl::StrCat("claims ", token_bytes,
                                            " bytes of tokens for ", raw_size,
                                            " bytes of text"));
  }
  if (tokens_size > stored.size() ||
      offsets_size > stored.size() - tokens_size) {
    return absl::DataLossError(absl::StrCat(
        "claims ", tokens_size, " bytes of tokens and ", offsets_size,
        " of offsets where ", stored.size(), " bytes are left"));
  }
  tokens_.Start(stored.first(tokens_size), token_bytes);
  const size_t end = offset + out.size();
  QUIRE_ASSIGN_OR_RETURN(
      TokenRange range,
      FindTokens(TokenKind::kFactorsAndRuns, offset, end, raw_size, tokens_));
  const bool whole = end == raw_size;
  if (whole && tokens_.bytes().size() != token_bytes) {
    return absl::DataLossError(absl::StrCat("claims ", token_bytes,
                                            " bytes of tokens, but has ",
                                            tokens_.bytes().size()));
  }
  // One token more if the range ends inside it.
  const bool cut = range.end.text_size < end;
  const auto read = [whole](ByteView from, size_t needed, DeflatedStream& to) {
    to.Start(from, needed);
    if (needed == 0 || from.empty()) {
      return whole && needed + from.size() != 0
                 ? absl::DataLossError("a stream is missing, or not needed")
                 : absl::OkStatus();
    }
    QUIRE_RETURN_IF_ERROR(to.DecodeTo(needed));
    return whole ? to.Finish() : absl::OkStatus();
  };
  QUIRE_RETURN_IF_ERROR(read(stored.subspan(tokens_size, offsets_size),
                             (range.end.offsets + (cut ? 1 : 0)) * offset_size_,
                             offsets_));
  QUIRE_RETURN_IF_ERROR(read(stored.subspan(tokens_size + offsets_size),
                             range.end.literals + (cut ? kRunTokens : 0),
                             literals_));
  const FactorTokens factors = {
      .kind = TokenKind::kFactorsAndRuns,
      .tokens = tokens_.bytes(),
      .offsets = offsets_.bytes_and_more(),
      .offset_count = offsets_.bytes().size() / offset_size_,
      .offset_bits = static_cast<unsigned>(8 * offset_size_),
      .literals = literals_.bytes_and_more(),
      .literal_count = literals_.bytes().size()};
  return CopyFactorText(dictionary, factors, offset - range.begin.text_size,
                        range.begin, out);
}

}  // namespace quire
