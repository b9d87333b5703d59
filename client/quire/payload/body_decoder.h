// SPDX-License-Identifier: Apache-2.0
//
// What lies around the body of an HTTP message, taken off step by step: chunks
// (RFC 9112, section 7.1) and content codings (RFC 9110, section 8.4).
#ifndef QUIRE_CLIENT_QUIRE_PAYLOAD_BODY_DECODER_H_
#define QUIRE_CLIENT_QUIRE_PAYLOAD_BODY_DECODER_H_

#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"

namespace quire {

// Takes the next bytes, never none. What it returns, if not OK, ends the
// decoding and is its result.
using PayloadSink = absl::FunctionRef<absl::Status(ByteView)>;

// One step. Holds at most 16 MiB, mostly 100 KiB. Takes any bytes.
// Thread-compatible. After an error it must not be used any more.
class BodyDecoder {
 public:
  virtual ~BodyDecoder() = default;

  // The next bytes of what is coded; what they decode to goes to `out`.
  // Errors: DataLoss  the bytes are not what they must be; what `out` got is
  //                   right. And what `out` returns.
  virtual absl::Status Feed(ByteView coded, PayloadSink out) = 0;

  // There are no more bytes.
  // Errors: DataLoss  there must be more: the body is cut short.
  virtual absl::Status Finish(PayloadSink out) = 0;

  // Whether the bytes were handed on as they are, since they are not coded:
  // some crawlers decode bodies and leave the header as it was.
  virtual bool was_not_coded() const = 0;
};

std::unique_ptr<BodyDecoder> MakeChunkDecoder();

// `coding` in lower case: gzip, deflate, br or zstd.
// Errors: DataLoss  another one.
absl::StatusOr<std::unique_ptr<BodyDecoder>> MakeContentDecoder(
    absl::string_view coding);

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_PAYLOAD_BODY_DECODER_H_
