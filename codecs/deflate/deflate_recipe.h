// SPDX-License-Identifier: Apache-2.0
//
// Recipes: how to reproduce compressed bytes inside a document from their text.
//
// A member is a DEFLATE stream (RFC 1951) with the checksums that follow it in
// its container. The container's header stays in the document unchanged: it
// holds file names and times, which the archive's codecs compress well. The
// bytes after the stream depend on the text alone.
#ifndef QUIRE_CODECS_DEFLATE_DEFLATE_RECIPE_H_
#define QUIRE_CODECS_DEFLATE_DEFLATE_RECIPE_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"
#include "codecs/deflate/deflate_encoder.h"
#include "codecs/deflate/deflate_parameters.h"

namespace quire {

// The bytes that follow the stream. The numbers are stored in archives.
enum class DeflateContainer : uint8_t {
  kRaw = 0,   // Nothing: ZIP has its checksum elsewhere.
  kZlib = 1,  // Adler-32 of the text (RFC 1950), 4 bytes.
  kGzip = 2,  // CRC-32 and size of the text (RFC 1952), 8 bytes.
};

inline constexpr size_t kDeflateContainerCount = 3;

// "raw", "zlib", "gzip".
absl::string_view DeflateContainerName(DeflateContainer container);

// 0, 4, 8 bytes.
size_t DeflateTrailerSize(DeflateContainer container);

// Maximum text of a member, in bytes.
inline constexpr uint64_t kDeflateTextSizeMax = uint64_t{1} << 31;

// DeflateTrailerSize() bytes, then zeros.
using DeflateTrailer = std::array<uint8_t, 8>;

// Computes the trailer of a text that comes in pieces, of at most
// kDeflateTextSizeMax bytes in all.
class DeflateTrailerMaker {
 public:
  explicit DeflateTrailerMaker(DeflateContainer container);

  void Add(ByteView piece);
  DeflateTrailer trailer() const;

 private:
  DeflateContainer container_;
  uint32_t sum_;
  uint32_t size_ = 0;
};

// Returns the trailer of a whole text.
DeflateTrailer MakeDeflateTrailer(DeflateContainer container, ByteView text);

struct DeflateRecipe {
  DeflateParameters parameters;
  DeflateContainer container = DeflateContainer::kRaw;
  uint64_t text_size = 0;    // Bytes.
  uint64_t member_size = 0;  // Bytes, with the trailer.

  bool operator==(const DeflateRecipe&) const = default;
};

// The container and the parameters as one number below kDeflateRecipeKindEnd.
// An archive has few distinct ones.
inline constexpr uint32_t kDeflateRecipeKindEnd = kDeflateParametersCodeEnd
                                                  << 2;
uint32_t DeflateRecipeKind(const DeflateRecipe& recipe);

// Sets the container and the parameters.
// Errors: DataLoss  no recipe is of this kind.
absl::Status SetDeflateRecipeKind(uint32_t kind, DeflateRecipe& recipe);

// Upper bound on the size of a member, in bytes, for any valid parameters and
// any text of this size. A symbol takes at most 9 bits per byte of its text: a
// literal of the fixed code. A block that is not the last has at least 127
// symbols (memory level 1) and 10 further bits. A stored block is only chosen
// where it is smaller.
uint64_t DeflateMemberSizeMax(uint64_t text_size);

// Checks that the sizes are possible: DEFLATE encodes at most 1032 bytes of
// text per byte, and members have at most DeflateMemberSizeMax(). The finder
// and the decoder refuse the same recipes by this check.
// Errors: DataLoss  the sizes are impossible.
absl::Status CheckDeflateRecipe(const DeflateRecipe& recipe);

// Limit on the steps (DeflateLimits) for a member of `text_size` bytes of text;
// past the first MiB, fewer per byte. The finder refuses members above it, and
// reproducing one is DataLoss. A server can charge this before it starts.
uint64_t DeflateWorkMax(uint64_t text_size);

// Reproduces the member in `out` from its text, whose pieces `source` returns.
// Does not verify the result: the caller has a checksum.
// REQUIRES: out.size() == recipe.member_size.
// Errors: DataLoss   the sizes are impossible, or the member gets another
//                    size, or takes more work than DeflateWorkMax(); `out` is
//                    undefined.
//         Cancelled  `cancelled` returned true; called as in DeflateLimits.
//         those of `source`.
absl::Status RecreateDeflateMember(
    const DeflateRecipe& recipe, DeflateEncoder::Source source,
    DeflateEncoder& encoder, MutableByteView out,
    absl::FunctionRef<bool()> cancelled = DeflateLimits::Never);

}  // namespace quire

#endif  // QUIRE_CODECS_DEFLATE_DEFLATE_RECIPE_H_
