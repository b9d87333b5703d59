// SPDX-License-Identifier: Apache-2.0
//
// Targets of reads: bytes of an archive's logical space, or a document or a
// part of it.
#ifndef QUIRE_CLIENT_QUIRE_READ_TARGET_H_
#define QUIRE_CLIENT_QUIRE_READ_TARGET_H_

#include <cstddef>
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
// a DocumentKey, of one document. Any values are valid; the server rejects
// ranges past the end with OutOfRange and never truncates.
struct ByteSpan {
  uint64_t offset = 0;
  uint64_t size_bytes = 0;

  bool operator==(const ByteSpan&) const = default;
};

// Names a document by its id or its ordinal.
struct DocumentKey {
  // Either any bytes, or an ordinal from 0.
  std::variant<std::string, uint64_t> name;
  // Selects one of several documents with the id, from 0 by ordinal, of any
  // type and time. Excludes the next two; the server rejects that, and any of
  // the three with an ordinal.
  std::optional<uint64_t> occurrence = {};
  // Selects documents with the id and one of these WARC record types, in lower
  // case; "" stands for documents without a type. At most 16. Empty: only
  // responses; if the id has none, only resources; if none, only "".
  std::vector<std::string> record_types = {};
  // Selects the newest of these captured up to this time, in milliseconds since
  // 1970-01-01 UTC; if all are later, the oldest. Unset: the newest.
  // ParseCapturePeriod() of capture_time.h converts a date.
  std::optional<int64_t> at_time_ms = {};
  // Without record types: a revisit counts as a response. Servers that do not
  // know this ignore it.
  bool with_revisits = false;
  // Part of the document; unset: all.
  std::optional<ByteSpan> part = {};

  static DocumentKey Id(std::string id) { return {.name = std::move(id)}; }

  static DocumentKey Ordinal(uint64_t ordinal) { return {.name = ordinal}; }
};

using ReadTarget = std::variant<ByteSpan, DocumentKey>;

// The record type of documents that `quired redact` removed: they have neither
// id nor attributes, and reading them fails as withdrawn (IsWithdrawn()).
inline constexpr absl::string_view kWithdrawnRecordType = "withdrawn";

// Returns the size of the strings of `target`: its id and record types.
size_t TextSizeBytes(const ReadTarget& target);

// Returns text for error messages: "bytes [10, 20)", "document 17", "document
// \"a/b\"" with ids escaped and truncated.
std::string DescribeTarget(const ReadTarget& target);

v1::ByteRange ToProto(const ByteSpan& span);
v1::DocumentName ToProto(const DocumentKey& key);

// Sets no wire encodings.
v1::ReadRequest MakeReadRequest(absl::string_view archive,
                                const std::optional<std::string>& archive_uuid,
                                const ReadTarget& target);

// Sets `range` or `document` of a ReadRequest or a BatchItem.
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
