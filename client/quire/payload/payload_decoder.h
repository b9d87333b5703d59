// SPDX-License-Identifier: Apache-2.0
//
// The payload of a record of a crawl: what the page, image or script was, with
// nothing that WARC and HTTP put around it.
#ifndef QUIRE_CLIENT_QUIRE_PAYLOAD_PAYLOAD_DECODER_H_
#define QUIRE_CLIENT_QUIRE_PAYLOAD_PAYLOAD_DECODER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "client/quire/payload/body_decoder.h"
#include "client/quire/payload/record_header.h"
#include "codecs/base/bytes.h"

namespace quire {

// What a payload may decode to unless the caller says otherwise: a few bytes
// can be coded so that they decode to any number.
inline constexpr uint64_t kPayloadSizeBytesMax = uint64_t{1} << 30;

// Takes a WARC record in pieces of any size and hands out its payload as it
// comes, in bounded memory.
//   response, request  the body of the HTTP message: without WARC header, HTTP
//                      header and those of interim responses (1xx), transfer
//                      codings (chunked and others) and content codings (gzip,
//                      deflate, br, zstd, up to five, one upon the other)
//   revisit            nothing: the payload is in another record
//   others             the block, without the WARC header; and that of a
//                      response that is not of HTTP
// A body that is not coded though its header says so (chunked, gzip, zstd) is
// handed out as it is: some crawlers decode what they store.
// Thread-compatible. After an error it must not be used any more; what was
// handed out before is right.
class PayloadDecoder {
 public:
  // What chunks and codings may decode to, at every step; a payload without
  // them may have any size.
  explicit PayloadDecoder(uint64_t size_bytes_max = kPayloadSizeBytesMax)
      : size_bytes_max_(size_bytes_max) {}

  // The next bytes of the record.
  // Errors: DataLoss           no WARC record, a header over
  //                            kRecordHeaderSizeBytesMax, a body that is not
  //                            coded as it must be, or an unknown coding.
  //         ResourceExhausted  it decodes to more than size_bytes_max.
  //         And what `out` returns.
  absl::Status Feed(ByteView record, PayloadSink out);

  // The record has ended.
  // Errors: DataLoss  the payload is cut short: the crawler left bytes out
  //                   (WARC-Truncated), the record has fewer than its
  //                   Content-Length or that of HTTP says, a chunk or a coded
  //                   body does not end; the message says which.
  absl::Status Finish(PayloadSink out);

  // Null until all of the header came; `http` also for what is not HTTP.
  const WarcFields* warc() const { return warc_ ? &*warc_ : nullptr; }

  const HttpFields* http() const { return http_ ? &*http_ : nullptr; }

 private:
  enum class State { kWarcHeader, kHttpHeader, kBody, kEnd };

  // Adds bytes to `header_` up to the empty line that ends it; whether it is
  // there now.
  absl::StatusOr<bool> TakeHeader(ByteView& bytes, const char* what);
  absl::Status TakeWarcHeader(ByteView& record);
  absl::Status TakeHttpHeader(ByteView& block, PayloadSink out);
  // Makes the steps of the message that `http_` describes.
  absl::Status MakeSteps();
  absl::Status TakeBody(ByteView body, PayloadSink out);
  // Sends bytes through all steps from `step` on.
  absl::Status Pass(size_t step, ByteView bytes, PayloadSink out);
  absl::Status FinishSteps(PayloadSink out);
  absl::Status FinishBody(PayloadSink out);

  const uint64_t size_bytes_max_;
  State state_ = State::kWarcHeader;
  // What is there of the current header, and of its last line without CR.
  std::string header_;
  size_t line_size_ = 0;
  std::optional<WarcFields> warc_;
  std::optional<HttpFields> http_;
  // Of the block, still to come.
  uint64_t left_size_bytes_ = 0;
  // Of the body, as it is stored.
  uint64_t body_size_bytes_ = 0;
  std::vector<std::unique_ptr<BodyDecoder>> steps_;
  // What each step has made.
  std::vector<uint64_t> step_size_bytes_;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_PAYLOAD_PAYLOAD_DECODER_H_
