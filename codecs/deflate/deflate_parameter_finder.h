// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_DEFLATE_DEFLATE_PARAMETER_FINDER_H_
#define QUIRE_CODECS_DEFLATE_DEFLATE_PARAMETER_FINDER_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/deflate/deflate_encoder.h"
#include "codecs/deflate/deflate_parameters.h"
#include "codecs/deflate/deflate_recipe.h"
#include "codecs/zlib/deflate_decoder.h"
#include "codecs/zlib/text_match.h"

namespace quire {

// Facts about the stream's encoder in a container's header.
struct DeflateHint {
  DeflateContainer container = DeflateContainer::kRaw;
  // zlib: FLEVEL (RFC 1950), 0 to 3. gzip: XFL (RFC 1952). Otherwise unused.
  uint8_t effort = 0;
  // zlib: CINFO + 8. Others: 15.
  uint8_t window_bits = 15;
};

// Finds the encoder of a stream by trial, starting with those that the header
// suggests. Most trials end after the first symbols of the stream.
// Thread-compatible.
class DeflateParameterFinder {
 public:
  // Returns the parameters with which `text` encodes to exactly `stream`, a raw
  // DEFLATE stream.
  // REQUIRES: `text` is the text of `stream`.
  // Errors: NotFound           no known encoder made it.
  //         ResourceExhausted  reproducing it takes more than
  //                            DeflateWorkMax().
  //         Cancelled          `cancelled` returned true; called as in
  //                            DeflateLimits.
  absl::StatusOr<DeflateParameters> Find(
      ByteView stream, ByteView text, const DeflateHint& hint,
      absl::FunctionRef<bool()> cancelled = DeflateLimits::Never);

  // Steps (DeflateLimits) of the last Find().
  uint64_t work() const { return work_; }

 private:
  // Properties of the first block.
  struct FirstBlock {
    bool is_stored = false;
    bool is_fixed = false;
    bool is_last = false;
    // Number of its symbols; 0 if unknown.
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
