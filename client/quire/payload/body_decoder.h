// SPDX-License-Identifier: Apache-2.0
//
// Decoders for the body of an HTTP message, one per layer: chunks (RFC 9112,
// section 7.1) and content codings (RFC 9110, section 8.4).
#ifndef QUIRE_CLIENT_QUIRE_PAYLOAD_BODY_DECODER_H_
#define QUIRE_CLIENT_QUIRE_PAYLOAD_BODY_DECODER_H_

#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"

namespace quire {

// Receives the next bytes, never none. If its result is not OK, it ends the
// decoding and is its result.
using PayloadSink = absl::FunctionRef<absl::Status(ByteView)>;

// One layer. Holds at most 16 MiB, mostly 100 KiB. Accepts any bytes.
// Thread-compatible. After an error it must not be used any more.
class BodyDecoder {
 public:
  virtual ~BodyDecoder() = default;

  // Decodes the next bytes to `out`.
  // Errors: DataLoss  malformed bytes; the output so far is correct. And the
  //                   result of `out`.
  virtual absl::Status Feed(ByteView coded, PayloadSink out) = 0;

  // Ends the input. `is_whole`: false if bytes of the body are missing, which
  // is reported elsewhere; then what there is of it is decoded.
  // Errors: DataLoss  the body is truncated although `is_whole`, or malformed;
  //                   the output so far is correct. And the result of `out`.
  virtual absl::Status Finish(bool is_whole, PayloadSink out) = 0;

  // True if the bytes were not coded and were passed through unchanged: some
  // crawlers decode bodies but keep the header, and some servers name codings
  // that they do not apply.
  virtual bool was_not_coded() const = 0;
};

std::unique_ptr<BodyDecoder> MakeChunkDecoder();

// `coding` in lower case: gzip, deflate, br or zstd; a registered one that is
// not decoded gives a decoder that fails where a body has it. Null: there is no
// such coding. A body without the coding that its header names is passed
// through.
std::unique_ptr<BodyDecoder> MakeContentDecoder(absl::string_view coding);

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_PAYLOAD_BODY_DECODER_H_
