// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_DEFLATE_DEFLATE_PARAMETER_FINDER_H_
#define QUIRE_CODECS_DEFLATE_DEFLATE_PARAMETER_FINDER_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/deflate/deflate_encoder.h"
#include "codecs/deflate/deflate_parameters.h"
#include "codecs/deflate/deflate_recipe.h"
#include "codecs/zlib/deflate_decoder.h"
#include "codecs/zlib/text_match.h"

namespace quire {

// What a container's header says of the stream's encoder.
struct DeflateHint {
  DeflateContainer container = DeflateContainer::kRaw;
  // Of zlib: FLEVEL (RFC 1950), 0 to 3. Of gzip: XFL (RFC 1952). Else unused.
  uint8_t effort = 0;
  // Of zlib: CINFO and 8. Of others: 15.
  uint8_t window_bits = 15;
};

// Finds out which encoder made a stream, by trying: those first that the header
// names. The first symbols of the stream end most trials soon.
// Thread-compatible.
class DeflateParameterFinder {
 public:
  // The parameters with which `text` becomes exactly `stream`, a raw DEFLATE
  // stream whose text it is.
  // REQUIRES: `text` is that of `stream`.
  // Errors: NotFound           no encoder that is known here made it.
  //         ResourceExhausted  it takes more than DeflateWorkMax() to make.
  //         Cancelled          `cancelled` returned true; called as in
  //                            DeflateLimits.
  absl::StatusOr<DeflateParameters> Find(
      ByteView stream, ByteView text, const DeflateHint& hint,
      absl::FunctionRef<bool()> cancelled = DeflateLimits::Never);

  // Steps (DeflateLimits) of the last Find().
  uint64_t work() const { return work_; }

 private:
  // What the first block tells.
  struct FirstBlock {
    bool is_stored = false;
    bool is_fixed = false;
    bool is_last = false;
    // How many symbols it has, where that is known; else 0.
    size_t symbol_count = 0;
    bool has_matches = false;
    bool has_far_matches = false;
    bool has_short_matches = false;
  };

  FirstBlock ReadFirstBlock(ByteView stream, ByteView text);
  void ListTrials(const FirstBlock& block, const DeflateHint& hint);
  void AddTrial(const DeflateParameters& parameters);

  DeflateEncoder encoder_;
  DeflateDecoder decoder_;
  std::vector<uint8_t> front_;
  std::vector<TextMatch> matches_;
  std::vector<uint32_t> symbols_;
  std::vector<DeflateParameters> trials_;
  uint64_t work_ = 0;
};

}  // namespace quire

#endif  // QUIRE_CODECS_DEFLATE_DEFLATE_PARAMETER_FINDER_H_
