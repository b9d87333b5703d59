// SPDX-License-Identifier: Apache-2.0
//
// Finds compressed members inside documents, by content, and the recipe that
// reproduces each from its text.
#ifndef QUIRE_CODECS_DEFLATE_DEFLATE_FINDER_H_
#define QUIRE_CODECS_DEFLATE_DEFLATE_FINDER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"
#include "codecs/deflate/deflate_parameter_finder.h"
#include "codecs/deflate/deflate_recipe.h"
#include "codecs/zlib/deflate_decoder.h"

namespace quire {

// Reasons to leave the bytes of a stream unchanged. Each stream counts once.
enum class DeflateRefusal : uint8_t {
  // No known encoder reproduces these bytes from the text.
  kForeign = 0,
  // The text is longer than DeflateFinderOptions::text_size_max, or the stream
  // has several blocks and does not end in the document.
  kLarge,
  // The member is smaller than DeflateFinderOptions::member_size_min.
  kSmall,
  // Reproducing the member takes more than DeflateWorkMax().
  kWork,
  // The text is longer than kDeflateRatioMax allows.
  kRatio,
  // The checksum that follows the stream is not that of the text.
  kDamaged,
};
inline constexpr size_t kDeflateRefusalCount = 6;

// "foreign encoder", "text too large", ...
absl::string_view DeflateRefusalName(DeflateRefusal refusal);

// Parameters of members that a search has found, by the member's bytes: another
// search accepts them without a trial. Takes 16 bytes per member.
// Thread-compatible.
class KnownDeflateMembers {
 public:
  // `member` is the stream and its trailer.
  void Add(ByteView member, const DeflateParameters& parameters);
  void Add(const KnownDeflateMembers& other);
  // Must be called after the last Add() and before the first Find().
  void Sort();

  // Unset if no such member was added. May be wrong for a forged collision of
  // checksums: compare what the parameters reproduce.
  std::optional<DeflateParameters> Find(ByteView member) const;

 private:
  struct Known {
    uint64_t checksum = 0;
    uint32_t code = 0;
  };

  std::vector<Known> members_;
};

// Maximum bytes of text per byte of a member. Members above would turn a small
// document into a large one.
inline constexpr size_t kDeflateRatioMax = 128;

struct DeflateFinderOptions {
  // Smaller members are not worth their recipe. In bytes.
  size_t member_size_min = 64;
  // Members with more text stay unchanged: reading a range inside a member
  // reproduces it from its start. In bytes.
  size_t text_size_max = size_t{1} << 20;
  // Members whose parameters are accepted without reproducing them. May be
  // null; must outlive the finder.
  const KnownDeflateMembers* known = nullptr;
};

// Indexed by DeflateContainer.
struct DeflateFinderCounts {
  struct OfContainer {
    uint64_t members = 0;
    uint64_t member_bytes = 0;
    uint64_t text_bytes = 0;
    std::array<uint64_t, kDeflateRefusalCount> refused = {};
    std::array<uint64_t, kDeflateRefusalCount> refused_bytes = {};
  };

  std::array<OfContainer, kDeflateContainerCount> containers = {};

  void Add(const DeflateFinderCounts& other);
};

struct DeflateMember {
  // Offset of its stream, after the header. In bytes, from the document's
  // start.
  uint64_t offset = 0;
  // Size of the header, which ends at `offset`. In bytes.
  uint64_t header_size = 0;
  DeflateRecipe recipe;
  // Valid during the call of `found`.
  ByteView text;
};

// Thread-compatible: use one per thread. Memory: at most 4 MiB and four times
// text_size_max, for any document.
class DeflateFinder {
 public:
  explicit DeflateFinder(const DeflateFinderOptions& options = {});
  DeflateFinder(const DeflateFinder&) = delete;
  DeflateFinder& operator=(const DeflateFinder&) = delete;

  // Passes the members of `document` to `found`, in order of offset; they do
  // not overlap. Each was reproduced and compared, unless it is known. Finds
  // gzip members, also several in a row; zlib streams at any offset, but not
  // those of PNG images, which compress worse when they are inflated; and the
  // members of ZIP files.
  //
  // Takes time at most proportional to the size of the document: skips headers
  // with a name or comment of more than 4 KiB, and stops once it has followed
  // too many false beginnings.
  //
  // Ignores members whose header begins at `begin_max` or later, so that a
  // caller can divide a text into parts that overlap by the longest member.
  // `cancelled` is called between trials and as in DeflateLimits; true ends the
  // search.
  void Find(ByteView document,
            absl::FunctionRef<void(const DeflateMember&)> found,
            size_t begin_max = std::numeric_limits<size_t>::max(),
            absl::FunctionRef<bool()> cancelled = DeflateLimits::Never);

  // Counts over all documents so far.
  const DeflateFinderCounts& counts() const { return counts_; }

 private:
  class Scan;

  DeflateFinderOptions options_;
  DeflateFinderCounts counts_;
  DeflateParameterFinder parameter_finder_;
  DeflateDecoder decoder_;
  std::vector<uint8_t> text_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_DEFLATE_DEFLATE_FINDER_H_
