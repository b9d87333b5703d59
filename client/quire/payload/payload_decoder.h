// SPDX-License-Identifier: Apache-2.0
//
// Extracts the payload of a crawl record: the page, image or script itself,
// without WARC and HTTP.
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

// Default limit on decoded payloads: a few coded bytes can decode to any size.
inline constexpr uint64_t kPayloadSizeBytesMax = uint64_t{1} << 30;

// Part of a record that is its payload, unchanged.
struct PlainPayload {
  // Offset in the record.
  uint64_t offset = 0;
  uint64_t size_bytes = 0;
};

// Takes a WARC or ARC record in pieces of any size and outputs its payload, in
// bounded memory. A record of an ARC is a response, its first is a warcinfo.
//   response, request  the body of the HTTP message: without the record's
//                      header, empty lines before the HTTP header, that header
//                      and those of interim responses (1xx), transfer codings
//                      (chunked and others) and content codings (gzip, deflate,
//                      br, zstd, up to five, one upon the other)
//   revisit            nothing: the payload is in another record
//   others             the block, without the WARC header; also for a response
//                      that is not HTTP
// A body that is not coded although its header says so is output unchanged, as
// one is whose coding does not exist: some crawlers store decoded bodies. A
// body of no byte is whole, whatever its header says: the answer to HEAD, or a
// redirect.
// Thread-compatible. After an error it must not be used any more; the output so
// far is correct.
class PayloadDecoder {
 public:
  // Upper bound on the output of each layer; a payload without chunks and
  // codings may have any size.
  explicit PayloadDecoder(uint64_t size_bytes_max = kPayloadSizeBytesMax)
      : size_bytes_max_(size_bytes_max) {}

  // Decodes the next bytes of the record.
  // Errors: DataLoss           not a record of a crawl, a header over
  //                            kRecordHeaderSizeBytesMax, a malformed body, or
  //                            a coding that is not decoded.
  //         ResourceExhausted  it decodes to more than size_bytes_max.
  //         And the result of `out`.
  absl::Status Feed(ByteView record, PayloadSink out);

  // Ends the record.
  // Errors: DataLoss  the payload is truncated: the crawler omitted bytes
  //                   (WARC-Truncated), the record is shorter than its
  //                   Content-Length or HTTP's, or a chunk or a coded body does
  //                   not end; the message says which.
  absl::Status Finish(PayloadSink out);

  // Null until the whole header was received; `http` also if it is not HTTP.
  const WarcFields* warc() const { return warc_ ? &*warc_ : nullptr; }

  const HttpFields* http() const { return http_ ? &*http_ : nullptr; }

  // True if the header of a response is complete, and no byte of the body
  // follows that it announces, or does not rule out: the answer to HEAD.
  bool lacks_body() const;

  // Returns the part of the record that Feed() outputs; nothing if the body is
  // coded, the headers are not complete yet, or they say that it is truncated.
  // The record may still be shorter.
  std::optional<PlainPayload> plain_payload() const;

 private:
  enum class State { kWarcHeader, kHttpHeader, kBody, kEnd };

  // Appends bytes to `header_` up to the empty line that ends it, or the end of
  // an ARC's line; returns true when it is complete.
  absl::StatusOr<bool> TakeHeader(ByteView& bytes, const char* what);
  // True if the line that was received is the whole header.
  bool EndsHeader(bool is_empty_line) const;
  absl::Status TakeWarcHeader(ByteView& record);
  // True if `header_` and `block` begin, or may begin, an HTTP response.
  bool MayBeginHttp(ByteView block) const;
  absl::Status TakeHttpHeader(ByteView& block, PayloadSink out);
  // Makes the layers for the message of `http_`.
  absl::Status MakeSteps();
  absl::Status TakeBody(ByteView body, PayloadSink out);
  // Passes bytes through all layers from `step` on.
  absl::Status Pass(size_t step, ByteView bytes, PayloadSink out);
  // Takes output of the layer `step`.
  absl::Status TakeStep(size_t step, ByteView made, PayloadSink out);
  // Ends the layers from `step` on; `is_whole` as of BodyDecoder.
  absl::Status FinishSteps(size_t step, bool is_whole, PayloadSink out);
  // Outputs what the layers inside of `step` have of a malformed or truncated
  // body. Returns their error or else `status`, the error of `step`.
  absl::Status Fail(size_t step, absl::Status status, PayloadSink out);
  absl::Status FinishBody(PayloadSink out);

  const uint64_t size_bytes_max_;
  State state_ = State::kWarcHeader;
  // Received part of the current header, and of its last line without CR.
  std::string header_;
  size_t line_size_ = 0;
  std::optional<WarcFields> warc_;
  std::optional<HttpFields> http_;
  // Size of the headers so far.
  uint64_t headers_size_bytes_ = 0;
  // Size of the WARC header.
  uint64_t warc_size_bytes_ = 0;
  // Remaining size of the block.
  uint64_t left_size_bytes_ = 0;
  // Stored size of the body so far.
  uint64_t body_size_bytes_ = 0;
  std::vector<std::unique_ptr<BodyDecoder>> steps_;
  // Output size of each layer.
  std::vector<uint64_t> step_size_bytes_;
  // A layer, or the caller's sink, has failed.
  bool has_failed_ = false;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_PAYLOAD_PAYLOAD_DECODER_H_
