// SPDX-License-Identifier: Apache-2.0
//
// Encodings of answers on the wire: choice and statistics.
#ifndef QUIRE_CLIENT_QUIRE_WIRE_ENCODING_H_
#define QUIRE_CLIENT_QUIRE_WIRE_ENCODING_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "proto/quire/v1/archive.pb.h"

namespace quire {

// Encoding to request. Any answer may come in identity, if server or archive
// have nothing else.
enum class EncodingChoice {
  // The bytes themselves: no work at either end.
  kIdentity,
  // Codes of the archive's FSST table, which is 2 KiB and fetched once.
  kFsst,
  // Whole blocks as stored on the server's disk. Smallest for sequential reads;
  // a small document comes with its whole block. Needs the archive's
  // dictionary, often 16 MiB or more, which is fetched once.
  kStored,
  // Stored for a scan that so receives fewer bytes, with the dictionary that it
  // must fetch; identity for the rest.
  kAuto,
};

// "identity", "fsst", "stored", "auto".
absl::string_view EncodingChoiceName(EncodingChoice choice);

// Errors: InvalidArgument  unknown name; the message lists all.
absl::StatusOr<EncodingChoice> ParseEncodingChoice(absl::string_view text);

// Encodings of answers, as array indexes.
enum class AnswerEncoding : uint8_t { kIdentity, kFsst, kStored };
inline constexpr size_t kAnswerEncodingCount = 3;

inline constexpr size_t IndexOf(AnswerEncoding encoding) {
  return static_cast<size_t>(encoding);
}

absl::string_view AnswerEncodingName(AnswerEncoding encoding);

v1::WireEncoding ToProto(AnswerEncoding encoding);

// Traffic received by a client, in answers; each message of a stream counts as
// one. Only valid answers.
struct WireTraffic {
  uint64_t answer_count = 0;
  // Size of the field `data`; protobuf and HTTP/2 add 50 to 200 bytes per
  // answer.
  uint64_t wire_size_bytes = 0;
  // Size of the requested ranges.
  uint64_t decoded_size_bytes = 0;
  // Sum over all threads, without checksums.
  uint64_t decode_ns = 0;
};

struct WireStats {
  // By IndexOf(AnswerEncoding).
  std::array<WireTraffic, kAnswerEncodingCount> traffic;
  // Symbol tables and dictionaries in memory: their number, and the size of the
  // dictionaries with their decoders.
  uint64_t table_count = 0;
  uint64_t dictionary_count = 0;
  uint64_t dictionary_memory_bytes = 0;
  // Bytes received for them; those from a cache directory are not received.
  uint64_t fetched_size_bytes = 0;

  WireTraffic Total() const;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_WIRE_ENCODING_H_
