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

// What one text may cost. Work is counted in steps: one for each byte of text
// and one for each earlier place in it that is compared, some 1 to 3 ns each.
// The same text and parameters always take the same steps.
struct DeflateLimits {
  uint64_t work_max = std::numeric_limits<uint64_t>::max();
  // Asked after each 1,024 symbols of a block; true ends the work.
  absl::FunctionRef<bool()> cancelled = Never;

  static bool Never() { return false; }
};

// Makes raw DEFLATE streams (RFC 1951), bit for bit those of zlib's deflate()
// that gets a text as a whole, or of the program gzip. Written from the format
// and from what the two do; uses neither of them.
//
// zlib's bytes do not depend on the sizes of the pieces in which a text comes,
// with one exception: where small windows or memory level 9 meet text that does
// not compress, they may. Here the text comes at once.
//
// Thread-compatible. Some 700 KiB, allocated when the first text comes.
class DeflateEncoder {
 public:
  DeflateEncoder();
  ~DeflateEncoder();
  DeflateEncoder(DeflateEncoder&&) noexcept;
  DeflateEncoder& operator=(DeflateEncoder&&) noexcept;

  // Takes the next bytes of the stream, at most some 16 KiB; false ends the
  // work, for example where only the front of a stream is wanted.
  using Sink = absl::FunctionRef<bool(ByteView)>;

  // Encodes `text` and passes the stream to `sink`.
  // Errors: InvalidArgument    the parameters are not valid, or the text has
  //                            4 GiB or more.
  //         ResourceExhausted  limits.work_max is not enough.
  //         Cancelled          limits.cancelled() or `sink` said so.
  absl::Status Encode(const DeflateParameters& parameters, ByteView text,
                      Sink sink, const DeflateLimits& limits = {});

  // The next piece of a text, which is valid until the next call; not empty.
  using Source = absl::FunctionRef<absl::StatusOr<ByteView>()>;

  // As Encode(), of a text of `text_size` bytes that comes in pieces of any
  // size. Asks for no more than that.
  // Errors: as Encode(), and those of `source`.
  absl::Status EncodePieces(const DeflateParameters& parameters,
                            uint64_t text_size, Source source, Sink sink,
                            const DeflateLimits& limits = {});

  // The steps that the last Encode() took.
  uint64_t work() const;

  // For DeflateFinder, which stops work that turns out to be in vain.
  DeflateState& state();

 private:
  std::unique_ptr<DeflateState> state_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_DEFLATE_DEFLATE_ENCODER_H_
