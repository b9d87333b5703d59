// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_DEFLATE_DEFLATE_ENCODER_H_
#define QUIRE_CODECS_DEFLATE_DEFLATE_ENCODER_H_

#include <cstdint>
#include <limits>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/deflate/deflate_parameters.h"

namespace quire {

class DeflateState;

// Limits on the cost of one text. Work is counted in steps: one per byte of
// text and one per candidate that is compared, about 1 to 3 ns each. The count
// is a function of text and parameters.
struct DeflateLimits {
  uint64_t work_max = std::numeric_limits<uint64_t>::max();
  // Called after each 1,024 symbols of a block; true cancels the work.
  absl::FunctionRef<bool()> cancelled = Never;

  static bool Never() { return false; }
};

// Makes raw DEFLATE streams (RFC 1951), bit for bit those of zlib's deflate()
// for a text given as a whole, or of the program gzip. Written from the format
// and from observed output; uses neither program.
//
// zlib's output does not depend on how the text is divided into pieces, with
// one exception: incompressible text with small windows or memory level 9. Here
// the output is that for the whole text.
//
// Thread-compatible. Takes about 700 KiB, allocated for the first text.
class DeflateEncoder {
 public:
  DeflateEncoder();
  ~DeflateEncoder();
  DeflateEncoder(DeflateEncoder&&) noexcept;
  DeflateEncoder& operator=(DeflateEncoder&&) noexcept;

  // Takes the next bytes of the stream, at most about 16 KiB. Returning false
  // ends the work, for example where only the front of a stream is needed.
  using Sink = absl::FunctionRef<bool(ByteView)>;

  // Encodes `text` and passes the stream to `sink`.
  // Errors: InvalidArgument    the parameters are not valid, or the text has
  //                            4 GiB or more.
  //         ResourceExhausted  limits.work_max is not enough.
  //         Cancelled          limits.cancelled() returned true, or `sink`
  //                            false.
  absl::Status Encode(const DeflateParameters& parameters, ByteView text,
                      Sink sink, const DeflateLimits& limits = {});

  // Returns the next piece of a text; not empty, and valid until the next call.
  using Source = absl::FunctionRef<absl::StatusOr<ByteView>()>;

  // Encodes a text of `text_size` bytes that comes in pieces of any size. Reads
  // no pieces past that size.
  // Errors: as Encode(), and those of `source`.
  absl::Status EncodePieces(const DeflateParameters& parameters,
                            uint64_t text_size, Source source, Sink sink,
                            const DeflateLimits& limits = {});

  // Steps of the last Encode().
  uint64_t work() const;

  // For DeflateFinder, which cancels work whose result cannot match.
  DeflateState& state();

 private:
  std::unique_ptr<DeflateState> state_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_DEFLATE_DEFLATE_ENCODER_H_
