// SPDX-License-Identifier: Apache-2.0
#include "codecs/deflate/deflate_recipe.h"

#include <zlib.h>

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"

#include "codecs/base/check.h"
#include "codecs/base/endian.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

// A match has at most 258 bytes, and its length and distance take at least one
// bit each: eight bits stand for at most 1,032 bytes.
constexpr uint64_t kTextOfByteMax = 1032;
// The shortest stream: an empty block of fixed codes.
constexpr uint64_t kStreamSizeMin = 2;
// Limits on the steps of a text: per byte, per byte past the first MiB, and a
// constant.
constexpr uint64_t kWorkOfByteMax = 64;
constexpr uint64_t kWorkOfFurtherByteMax = 32;
constexpr uint64_t kFurtherFrom = uint64_t{1} << 20;
constexpr uint64_t kWorkFree = uint64_t{1} << 18;

}  // namespace

absl::string_view DeflateContainerName(DeflateContainer container) {
  switch (container) {
    case DeflateContainer::kRaw:
      return "raw";
    case DeflateContainer::kZlib:
      return "zlib";
    case DeflateContainer::kGzip:
      return "gzip";
  }
  return "unknown";
}

size_t DeflateTrailerSize(DeflateContainer container) {
  return 4 * static_cast<size_t>(container);
}

DeflateTrailerMaker::DeflateTrailerMaker(DeflateContainer container)
    : container_(container),
      sum_(container == DeflateContainer::kZlib ? 1 : 0) {}

void DeflateTrailerMaker::Add(ByteView piece) {
  const auto size = static_cast<uInt>(piece.size());
  if (container_ == DeflateContainer::kZlib) {
    sum_ = static_cast<uint32_t>(adler32(sum_, piece.data(), size));
  } else if (container_ == DeflateContainer::kGzip) {
    sum_ = static_cast<uint32_t>(crc32(sum_, piece.data(), size));
  }
  size_ += size;
}

DeflateTrailer DeflateTrailerMaker::trailer() const {
  DeflateTrailer trailer = {};
  if (container_ == DeflateContainer::kZlib) {
    // The only big-endian number here.
    StoreLittleEndian(__builtin_bswap32(sum_), trailer.data());
  } else if (container_ == DeflateContainer::kGzip) {
    StoreLittleEndian(sum_, trailer.data());
    StoreLittleEndian(size_, trailer.data() + 4);
  }
  return trailer;
}

DeflateTrailer MakeDeflateTrailer(DeflateContainer container, ByteView text) {
  DeflateTrailerMaker maker(container);
  maker.Add(text);
  return maker.trailer();
}

uint32_t DeflateRecipeKind(const DeflateRecipe& recipe) {
  return DeflateParametersCode(recipe.parameters) << 2 |
         static_cast<uint32_t>(recipe.container);
}

absl::Status SetDeflateRecipeKind(uint32_t kind, DeflateRecipe& recipe) {
  const std::optional<DeflateParameters> parameters =
      DeflateParametersFromCode(kind >> 2);
  if (!parameters.has_value() || (kind & 3) >= kDeflateContainerCount) {
    return absl::DataLossError(
        absl::StrCat("no compressed member is of kind ", kind,
                     "; the archive is corrupted, or of a later version"));
  }
  recipe.parameters = *parameters;
  recipe.container = static_cast<DeflateContainer>(kind & 3);
  return absl::OkStatus();
}

uint64_t DeflateMemberSizeMax(uint64_t text_size) {
  const uint64_t size = std::min(text_size, kDeflateTextSizeMax);
  return size + size / 8 + size / 64 + 64;
}

absl::Status CheckDeflateRecipe(const DeflateRecipe& recipe) {
  const uint64_t trailer = DeflateTrailerSize(recipe.container);
  if (recipe.text_size > kDeflateTextSizeMax ||
      recipe.member_size < kStreamSizeMin + trailer ||
      recipe.text_size / kTextOfByteMax > recipe.member_size ||
      recipe.member_size > DeflateMemberSizeMax(recipe.text_size)) {
    return absl::DataLossError(absl::StrCat(
        "a compressed member of ", recipe.member_size,
        " bytes cannot have a text of ", recipe.text_size, " bytes"));
  }
  return absl::OkStatus();
}

uint64_t DeflateWorkMax(uint64_t text_size) {
  const uint64_t size = std::min(text_size, kDeflateTextSizeMax);
  const uint64_t first = std::min(size, kFurtherFrom);
  return kWorkFree + kWorkOfByteMax * first +
         kWorkOfFurtherByteMax * (size - first);
}

absl::Status RecreateDeflateMember(const DeflateRecipe& recipe,
                                   DeflateEncoder::Source source,
                                   DeflateEncoder& encoder, MutableByteView out,
                                   absl::FunctionRef<bool()> cancelled) {
  QUIRE_CHECK(out.size() == recipe.member_size);
  QUIRE_RETURN_IF_ERROR(CheckDeflateRecipe(recipe));
  const size_t trailer_size = DeflateTrailerSize(recipe.container);
  MutableByteView left = out.first(out.size() - trailer_size);
  DeflateTrailerMaker trailer_maker(recipe.container);
  bool is_longer = false;
  const absl::Status status = encoder.EncodePieces(
      recipe.parameters, recipe.text_size,
      [&] {
        absl::StatusOr<ByteView> piece = source();
        if (piece.ok()) {
          trailer_maker.Add(*piece);
        }
        return piece;
      },
      [&](ByteView bytes) {
        if (bytes.size() > left.size()) {
          is_longer = true;
          return false;
        }
        std::ranges::copy(bytes, left.begin());
        left = left.subspan(bytes.size());
        return true;
      },
      {.work_max = DeflateWorkMax(recipe.text_size), .cancelled = cancelled});
  if (is_longer || (status.ok() && !left.empty())) {
    return absl::DataLossError(absl::StrCat(
        "a compressed member must have ", recipe.member_size,
        " bytes, but its text gives ", is_longer ? "more" : "fewer"));
  }
  if (absl::IsResourceExhausted(status)) {
    return absl::DataLossError(status.message());
  }
  QUIRE_RETURN_IF_ERROR(status);
  const DeflateTrailer trailer = trailer_maker.trailer();
  std::copy_n(trailer.begin(), trailer_size, out.last(trailer_size).begin());
  return absl::OkStatus();
}

}  // namespace quire
