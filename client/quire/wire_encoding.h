// SPDX-License-Identifier: Apache-2.0
//
// How the bytes of answers travel, and what of it a caller can choose and see.
#ifndef QUIRE_CLIENT_QUIRE_WIRE_ENCODING_H_
#define QUIRE_CLIENT_QUIRE_WIRE_ENCODING_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "proto/quire/v1/archive.pb.h"

namespace quire {

// What to ask a server for. Whatever is asked, an answer may come as it is
// (identity), where the server or the archive has nothing else.
enum class EncodingChoice {
  // The bytes themselves: no work at either end.
  kIdentity,
  // Codes of the archive's FSST table, which is 2 KiB and fetched once.
  kFsst,
  // Whole blocks as they lie on the server's disk. Smallest where much is read
  // in order; a small document comes with all of its block. Needs the archive's
  // dictionary, often 16 MiB and more, which is fetched once.
  kStored,
  // Whichever of the above is fastest on this connection; it is measured. See
  // encoding_chooser.h for the rule.
  kAuto,
};

// "identity", "fsst", "stored", "auto".
absl::string_view EncodingChoiceName(EncodingChoice choice);

// Errors: InvalidArgument  none of these names; the message lists them.
absl::StatusOr<EncodingChoice> ParseEncodingChoice(absl::string_view text);

// The encodings that answers can have, as places in arrays.
enum class AnswerEncoding : uint8_t { kIdentity, kFsst, kStored };
inline constexpr size_t kAnswerEncodingCount = 3;

inline constexpr size_t IndexOf(AnswerEncoding encoding) {
  return static_cast<size_t>(encoding);
}

absl::string_view AnswerEncodingName(AnswerEncoding encoding);

v1::WireEncoding ToProto(AnswerEncoding encoding);

// What a client has received: answers, where each message of a stream counts as
// one. Only answers that were right.
struct WireTraffic {
  uint64_t answer_count = 0;
  // Of the field `data`; protobuf and HTTP/2 add 50 to 200 bytes an answer.
  uint64_t wire_size_bytes = 0;
  // Of the ranges that were asked for.
  uint64_t decoded_size_bytes = 0;
  // Of all threads together; checksums not included.
  uint64_t decode_ns = 0;
};

struct WireStats {
  // By IndexOf(AnswerEncoding).
  std::array<WireTraffic, kAnswerEncodingCount> traffic;
  // Symbol tables and dictionaries: how many are in memory, and how large the
  // dictionaries with their decoders are.
  uint64_t table_count = 0;
  uint64_t dictionary_count = 0;
  uint64_t dictionary_memory_bytes = 0;
  // What was received to have them; what a cache directory had is not received.
  uint64_t fetched_size_bytes = 0;

  WireTraffic Total() const;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_WIRE_ENCODING_H_
