// SPDX-License-Identifier: Apache-2.0
#include "codecs/deflate/deflate_recipe.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <optional>

#include "absl/strings/str_cat.h"

#include "codecs/base/check.h"
#include "codecs/base/checksum.h"
#include "codecs/base/endian.h"
#include "codecs/base/status_macros.h"
#include "codecs/base/varint.h"

namespace quire {
namespace {

// A symbol of one bit stands for at most 258 bytes, and a length and a distance
// take one each; eight bits, so, for 1,032 bytes.
constexpr uint64_t kTextOfByteMax = 1032;
// The shortest stream: a block of a fixed code that ends at once.
constexpr uint64_t kStreamSizeMin = 2;
// What a text of any kind may take, by its size, and each text all the same.
constexpr uint64_t kWorkOfByteMax = 64;
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

DeflateTrailer MakeDeflateTrailer(DeflateContainer container, ByteView text) {
  DeflateTrailer trailer = {};
  const auto size = static_cast<uInt>(text.size());
  if (container == DeflateContainer::kZlib) {
    // The only number here whose first byte is its highest.
    const auto sum = static_cast<uint32_t>(adler32(1, text.data(), size));
    StoreLittleEndian(__builtin_bswap32(sum), trailer.data());
  } else if (container == DeflateContainer::kGzip) {
    const auto sum = static_cast<uint32_t>(crc32(0, text.data(), size));
    StoreLittleEndian(sum, trailer.data());
    StoreLittleEndian(static_cast<uint32_t>(text.size()), trailer.data() + 4);
  }
  return trailer;
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

void AppendDeflateRecipe(const DeflateRecipe& recipe, std::string& out) {
  AppendVarint(DeflateRecipeKind(recipe), out);
  AppendVarint(recipe.text_size, out);
  AppendVarint(recipe.member_size, out);
  std::array<uint8_t, sizeof(uint64_t)> checksum;
  StoreLittleEndian(recipe.checksum, checksum.data());
  out.append(checksum.begin(), checksum.end());
}

absl::StatusOr<DeflateRecipe> TakeDeflateRecipe(ByteView& in) {
  ByteView rest = in;
  DeflateRecipe recipe;
  QUIRE_ASSIGN_OR_RETURN(const uint64_t kind, TakeVarint(rest));
  if (kind >= kDeflateRecipeKindEnd) {
    return absl::DataLossError(
        absl::StrCat("a kind of compressed member must be below ",
                     kDeflateRecipeKindEnd, ", found ", kind));
  }
  QUIRE_RETURN_IF_ERROR(
      SetDeflateRecipeKind(static_cast<uint32_t>(kind), recipe));
  QUIRE_ASSIGN_OR_RETURN(recipe.text_size, TakeVarint(rest));
  QUIRE_ASSIGN_OR_RETURN(recipe.member_size, TakeVarint(rest));
  if (rest.size() < sizeof(uint64_t)) {
    return absl::DataLossError(
        "the recipe of a compressed member is truncated");
  }
  recipe.checksum = LoadLittleEndian<uint64_t>(rest.data());
  QUIRE_RETURN_IF_ERROR(CheckDeflateRecipe(recipe));
  in = rest.subspan(sizeof(uint64_t));
  return recipe;
}

absl::Status CheckDeflateRecipe(const DeflateRecipe& recipe) {
  const uint64_t trailer = DeflateTrailerSize(recipe.container);
  if (recipe.text_size > kDeflateTextSizeMax ||
      recipe.member_size < kStreamSizeMin + trailer ||
      recipe.text_size / kTextOfByteMax > recipe.member_size ||
      // No encoder makes a text longer by more than an eighth.
      recipe.member_size > recipe.text_size + recipe.text_size / 8 + 64) {
    return absl::DataLossError(absl::StrCat(
        "a compressed member of ", recipe.member_size,
        " bytes cannot have a text of ", recipe.text_size, " bytes"));
  }
  return absl::OkStatus();
}

uint64_t DeflateWorkMax(uint64_t text_size) {
  return kWorkFree + kWorkOfByteMax * std::min(text_size, kDeflateTextSizeMax);
}

absl::Status RecreateDeflateMember(const DeflateRecipe& recipe, ByteView text,
                                   DeflateEncoder& encoder, MutableByteView out,
                                   absl::FunctionRef<bool()> cancelled) {
  QUIRE_CHECK(out.size() == recipe.member_size);
  QUIRE_RETURN_IF_ERROR(CheckDeflateRecipe(recipe));
  if (text.size() != recipe.text_size) {
    return absl::DataLossError(
        absl::StrCat("the text of a compressed member must have ",
                     recipe.text_size, " bytes, found ", text.size()));
  }
  const size_t trailer_size = DeflateTrailerSize(recipe.container);
  MutableByteView left = out.first(out.size() - trailer_size);
  bool is_longer = false;
  const absl::Status status = encoder.Encode(
      recipe.parameters, text,
      [&](ByteView bytes) {
        if (bytes.size() > left.size()) {
          is_longer = true;
          return false;
        }
        std::ranges::copy(bytes, left.begin());
        left = left.subspan(bytes.size());
        return true;
      },
      {.work_max = DeflateWorkMax(text.size()), .cancelled = cancelled});
  if (is_longer || (status.ok() && !left.empty())) {
    return absl::DataLossError(absl::StrCat(
        "a compressed member must have ", recipe.member_size,
        " bytes, but its text gives ", is_longer ? "more" : "fewer"));
  }
  if (absl::IsResourceExhausted(status)) {
    return absl::DataLossError(status.message());
  }
  QUIRE_RETURN_IF_ERROR(status);
  const DeflateTrailer trailer = MakeDeflateTrailer(recipe.container, text);
  std::copy_n(trailer.begin(), trailer_size,
              out.end() - static_cast<ptrdiff_t>(trailer_size));
  if (Checksum64(out) != recipe.checksum) {
    return absl::DataLossError(
        "a compressed member made from its text has another checksum than it "
        "had when the archive was built");
  }
  return absl::OkStatus();
}

}  // namespace quire
