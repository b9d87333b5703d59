// SPDX-License-Identifier: Apache-2.0
//
// What can be asked for: bytes of an archive's logical space, or a document or
// a part of it.
#ifndef QUIRE_CLIENT_QUIRE_READ_TARGET_H_
#define QUIRE_CLIENT_QUIRE_READ_TARGET_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"

#include "proto/quire/v1/archive.pb.h"

namespace quire {

// Bytes [offset, offset + size_bytes) of an archive's logical space, or, within
// a DocumentKey, of one document. Any values may be asked; what lies past the
// end is refused by the server with OutOfRange, never cut short.
struct ByteSpan {
  uint64_t offset = 0;
  uint64_t size_bytes = 0;

  bool operator==(const ByteSpan&) const = default;
};

// Names a document by its id or by its place in the archive.
struct DocumentKey {
  // Of one of the two kinds: any bytes, or an ordinal from 0.
  std::variant<std::string, uint64_t> name;
  // Which of several documents with that id, from 0 by ordinal, whatever their
  // type and time. Not together with the next two: the server refuses that, as
  // it refuses any of the three with an ordinal.
  std::optional<uint64_t> occurrence = {};
  // Of documents with that id, only those of one of these WARC record types, in
  // lower case; "" stands for documents without one. At most 16. Empty: only
  // responses; if the id has none, only resources; if none, only "".
  std::vector<std::string> record_types = {};
  // Of those, the newest that was captured at this time or before, in
  // milliseconds since 1970-01-01 UTC; if all were later, the oldest. Unset:
  // the newest. ParseCapturePeriod() of capture_time.h makes it of a date.
  std::optional<int64_t> at_time_ms = {};
  // Which part of it; unset: all.
  std::optional<ByteSpan> part = {};

  static DocumentKey Id(std::string id) { return {.name = std::move(id)}; }

  static DocumentKey Ordinal(uint64_t ordinal) { return {.name = ordinal}; }
};

using ReadTarget = std::variant<ByteSpan, DocumentKey>;

// What the target looks like in a message; to be used for "what failed".
// "bytes [10, 20)", "document 17", "document \"a/b\"" with ids escaped and cut.
std::string DescribeTarget(const ReadTarget& target);

v1::ByteRange ToProto(const ByteSpan& span);
v1::DocumentName ToProto(const DocumentKey& key);

// Names no wire encodings.
v1::ReadRequest MakeReadRequest(absl::string_view archive,
                                const ReadTarget& target);

// Fills in `range` or `document` of a ReadRequest or a BatchItem.
template <typename Message>
void SetTarget(const ReadTarget& target, Message& message) {
  if (const auto* span = std::get_if<ByteSpan>(&target)) {
    *message.mutable_range() = ToProto(*span);
  } else {
    *message.mutable_document() = ToProto(std::get<DocumentKey>(target));
  }
}

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_READ_TARGET_H_
