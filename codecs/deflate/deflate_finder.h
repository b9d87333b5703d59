// SPDX-License-Identifier: Apache-2.0
//
// Finds compressed members inside documents, by content, and how each is made
// again from its text.
#ifndef QUIRE_CODECS_DEFLATE_DEFLATE_FINDER_H_
#define QUIRE_CODECS_DEFLATE_DEFLATE_FINDER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"
#include "codecs/deflate/deflate_parameter_finder.h"
#include "codecs/deflate/deflate_recipe.h"
#include "codecs/zlib/deflate_decoder.h"

namespace quire {

// Why the bytes of a stream stay as they are. A stream counts once.
enum class DeflateRefusal : uint8_t {
  // No known encoder makes these bytes of the text.
  kForeign = 0,
  // The text is longer than DeflateFinderOptions::text_size_max, or the stream
  // has more than a block and does not end in the document.
  kLarge,
  // Less than DeflateFinderOptions::member_size_min.
  kSmall,
  // Takes more than DeflateWorkMax() to make again.
  kWork,
  // The text is longer than DeflateFinderOptions::ratio_max allows.
  kRatio,
  // The checksum that follows the stream is not that of the text.
  kDamaged,
};
inline constexpr size_t kDeflateRefusalCount = 6;

// "foreign encoder", "text too large", ...
absl::string_view DeflateRefusalName(DeflateRefusal refusal);

struct DeflateFinderOptions {
  // Members of less are not worth their recipe. Bytes.
  size_t member_size_min = 64;
  // Members of more text stay as they are: a range inside of one is made again
  // from its start. Bytes.
  size_t text_size_max = size_t{1} << 20;
  // The most bytes of text for each byte of a member; members of more would
  // make a small document a large one.
  size_t ratio_max = 128;
  // The zlib streams of PNG images, which compress worse when they are
  // inflated.
  bool png = false;
};

// By DeflateContainer.
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

// A member of a document.
struct DeflateMember {
  // Where its stream begins, behind the header. Bytes from the document's
  // start.
  uint64_t offset = 0;
  // Of the header that it was found by, which ends there. Bytes.
  uint64_t header_size = 0;
  DeflateRecipe recipe;
  // Valid during the call that it is passed to.
  ByteView text;
};

// Thread-compatible: one for each thread. Memory: at most 4 MiB and four times
// text_size_max, whatever the document.
class DeflateFinder {
 public:
  explicit DeflateFinder(const DeflateFinderOptions& options = {});
  DeflateFinder(const DeflateFinder&) = delete;
  DeflateFinder& operator=(const DeflateFinder&) = delete;

  // Passes the members of `document` to `found`, in order of offset; they do
  // not overlap. Each was made again and compared. Finds gzip members, several
  // in a row, too; zlib streams anywhere; and the members of ZIP files.
  // The time is at most proportional to the size of the document: headers with
  // a name or comment of more than 4 KiB are not followed, and where too many
  // false beginnings have been followed, the rest is left as it is.
  // Members whose header begins at `begin_max` or later are not looked for:
  // what a text is divided into may overlap by the longest member. `cancelled`
  // is called between trials and as in DeflateLimits; true ends the search.
  void Find(ByteView document,
            absl::FunctionRef<void(const DeflateMember&)> found,
            size_t begin_max = std::numeric_limits<size_t>::max(),
            absl::FunctionRef<bool()> cancelled = DeflateLimits::Never);

  // Of all documents so far.
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
