// SPDX-License-Identifier: Apache-2.0
//
// From the bytes of an answer, in whatever encoding, to those of the range that
// was asked for. Internal to the client library.
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

// The part of an answer that says what its bytes are; the same in every kind of
// answer. Borrows all of it.
struct SentBytes {
  v1::WireEncoding encoding = v1::WIRE_ENCODING_UNSPECIFIED;
  // Null if the answer has none.
  const v1::EncodingDetails* details = nullptr;
  uint64_t checksum = 0;
  absl::string_view data = {};
  // Decoded: of the answer's range, which the caller has found to be what it
  // asked for.
  uint64_t size_bytes = 0;
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

// What came, for the caller that counts it.
struct DecodedAnswer {
  AnswerEncoding encoding = AnswerEncoding::kIdentity;
  // The range's bytes: a part of the buffer, or of the data as it was sent.
  absl::string_view text = {};
  uint64_t decode_ns = 0;
};

// Thread-safe.
class AnswerDecoder {
 public:
  // `tables` must outlive the decoder.
  explicit AnswerDecoder(TableStore* tables) : tables_(tables) {}

  // Checks `sent` and decodes it. `buffer` is grown as needed, to at most the
  // range and 1020 bytes more; its contents become unspecified, and it must
  // live as long as the result is used. An encoded answer may be fetched a
  // table for, which blocks.
  //
  // Nothing that a server sends makes this read or write outside of its
  // buffers, or take more memory than that for what is decoded: a few encoded
  // bytes may claim to stand for gigabytes, so a range of more than
  // `size_bytes_max` is refused before anything is allocated, and blocks are
  // decoded one by one. What is sent as it is takes no memory here.
  // Errors: DataLoss  the bytes do not match their checksum; sizes, cuts,
  //                   hashes or codec cannot be true; an encoded range is
  //                   over `size_bytes_max`; or the bytes do not decode to
  //                   what they must.
  //         Internal  an encoding that was not `asked` for, nor identity.
  //         others    why a table could not be had.
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

// Whether `status` says that a table which an answer needs is no longer there:
// the archive was replaced since, and asking again helps. Thread-safe.
bool IsTableGone(const absl::Status& status);

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_INTERNAL_ANSWER_DECODER_H_
