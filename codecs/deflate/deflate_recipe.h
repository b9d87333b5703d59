// SPDX-License-Identifier: Apache-2.0
//
// How compressed bytes inside a document are made again from their text.
//
// A member is a DEFLATE stream (RFC 1951) with the checksums that follow it in
// its container: it begins behind the container's header, which stays in the
// document as it is. Headers name files and times, which the archive's codecs
// compress well; what follows the stream depends on the text alone.
#ifndef QUIRE_CODECS_DEFLATE_DEFLATE_RECIPE_H_
#define QUIRE_CODECS_DEFLATE_DEFLATE_RECIPE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"
#include "codecs/deflate/deflate_encoder.h"
#include "codecs/deflate/deflate_parameters.h"

namespace quire {

// What follows the stream. The numbers are stored in archives.
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

// No member has a longer text. Bytes.
inline constexpr uint64_t kDeflateTextSizeMax = uint64_t{1} << 31;

// DeflateTrailerSize() bytes, then zeros.
using DeflateTrailer = std::array<uint8_t, 8>;

// What follows the stream of a text that comes in pieces, of at most
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

// Of a text that is there as a whole.
DeflateTrailer MakeDeflateTrailer(DeflateContainer container, ByteView text);

struct DeflateRecipe {
  DeflateParameters parameters;
  DeflateContainer container = DeflateContainer::kRaw;
  uint64_t text_size = 0;    // Bytes.
  uint64_t member_size = 0;  // Bytes, with what follows the stream.

  bool operator==(const DeflateRecipe&) const = default;
};

// The container and the parameters as one number below
// kDeflateRecipeKindEnd: few recipes of an archive differ in it.
inline constexpr uint32_t kDeflateRecipeKindEnd = kDeflateParametersCodeEnd
                                                  << 2;
uint32_t DeflateRecipeKind(const DeflateRecipe& recipe);

// Sets the container and the parameters.
// Errors: DataLoss  no recipe is of this kind.
absl::Status SetDeflateRecipeKind(uint32_t kind, DeflateRecipe& recipe);

// Upper bound on the size of a member, in bytes, for any valid parameters and
// any text of this size. A symbol takes at most 9 bits per byte of its text: a
// literal of the fixed code. A block that is not the last has at least 127
// symbols (memory level 1) and 10 bits besides. A stored block is only chosen
// where it is smaller.
uint64_t DeflateMemberSizeMax(uint64_t text_size);

// Whether the sizes are possible: DEFLATE makes at most 1032 bytes of text of
// one byte, and members are at most DeflateMemberSizeMax(). The finder and the
// decoder refuse the same recipes by this check.
// Errors: DataLoss  they are not.
absl::Status CheckDeflateRecipe(const DeflateRecipe& recipe);

// The most steps (DeflateLimits) that a member of so much text may take, fewer
// for each byte behind the first MiB: more are refused when members are looked
// for, and are DataLoss when they are made again. A server can charge this
// before it starts.
uint64_t DeflateWorkMax(uint64_t text_size);

// Makes the member again in the memory of `out` and `encoder`, from its text,
// whose pieces `source` gives. Whether these were the right bytes is not known:
// the caller has a checksum.
// REQUIRES: out.size() == recipe.member_size.
// Errors: DataLoss   the sizes cannot be, or the member gets another one, or
//                    takes more work than DeflateWorkMax(); `out` is undefined.
//         Cancelled  `cancelled` said so; asked as in DeflateLimits.
//         those of `source`.
absl::Status RecreateDeflateMember(
    const DeflateRecipe& recipe, DeflateEncoder::Source source,
    DeflateEncoder& encoder, MutableByteView out,
    absl::FunctionRef<bool()> cancelled = DeflateLimits::Never);

}  // namespace quire

#endif  // QUIRE_CODECS_DEFLATE_DEFLATE_RECIPE_H_
