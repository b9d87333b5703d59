// SPDX-License-Identifier: Apache-2.0
//
// Decodes the bytes of an answer, in any encoding, to the requested range.
// Internal to the client library.
#ifndef QUIRE_CLIENT_QUIRE_INTERNAL_ANSWER_DECODER_H_
#define QUIRE_CLIENT_QUIRE_INTERNAL_ANSWER_DECODER_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "proto/quire/v1/archive.pb.h"

#include "client/quire/internal/table_store.h"
#include "client/quire/wire_encoding.h"

namespace quire {

// Description of an answer's bytes; the same for every kind of answer. Borrows
// all of it.
struct SentBytes {
  v1::WireEncoding encoding = v1::WIRE_ENCODING_UNSPECIFIED;
  // Null if the answer has none.
  const v1::EncodingDetails* details = nullptr;
  uint64_t checksum = 0;
  absl::string_view data = {};
  // Decoded size of the answer's range, which the caller has checked against
  // the request.
  uint64_t size_bytes = 0;
  // Archive of the answer, whose server has the tables that it needs.
  absl::string_view archive = {};
};

// `answer` is any message with the fields of a ReadResponse.
template <typename Answer>
SentBytes SentBytesOf(const Answer& answer) {
  return {.encoding = answer.encoding(),
          .details = answer.has_details() ? &answer.details() : nullptr,
          .checksum = answer.checksum(),
          .data = {answer.data().data(), answer.data().size()},
          .size_bytes = answer.range().size_bytes()};
}

// Result of decoding one answer, for counting.
struct DecodedAnswer {
  AnswerEncoding encoding = AnswerEncoding::kIdentity;
  // Bytes of the range: a part of the buffer, or of the data as sent.
  absl::string_view text = {};
  uint64_t decode_ns = 0;
};

// Thread-safe.
class AnswerDecoder {
 public:
  // `tables` must outlive the decoder.
  explicit AnswerDecoder(TableStore* tables) : tables_(tables) {}

  // Checks `sent` and decodes it. `buffer` grows as needed, to at most the
  // range and 1020 bytes more. Its contents become unspecified, and it must
  // outlive the result. An encoded answer may need a table; fetching it blocks.
  //
  // Memory accesses stay inside the buffers, and memory is bounded, whatever
  // the server sends: a range over `size_bytes_max` is rejected before any
  // allocation, since a few encoded bytes may claim to decode to gigabytes.
  // Blocks are decoded one by one. Answers in identity need no memory here.
  // Errors: DataLoss  the bytes do not match their checksum; sizes, cuts,
  //                   hashes or codec are invalid; an encoded range is over
  //                   `size_bytes_max`; or the bytes decode to a wrong size.
  //         Internal  an encoding that was neither `asked` for nor identity.
  //         Others    of fetching a table.
  absl::StatusOr<DecodedAnswer> Decode(const SentBytes& sent,
                                       AnswerEncoding asked,
                                       uint64_t size_bytes_max,
                                       std::string& buffer) const;

 private:
  absl::StatusOr<absl::string_view> DecodeFsst(const SentBytes& sent,
                                               std::string& buffer) const;
  absl::StatusOr<absl::string_view> DecodeStored(const SentBytes& sent,
                                                 std::string& buffer) const;

  TableStore* const tables_;
};

// True if `status` means that a table which an answer needs is gone: the
// archive was replaced, or the server withholds the table since documents were
// withdrawn. A new request helps. Thread-safe.
bool IsTableGone(const absl::Status& status);

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_INTERNAL_ANSWER_DECODER_H_
