// SPDX-License-Identifier: Apache-2.0
#include "client/quire/read_target.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "codecs/base/printable_text.h"

namespace quire {
namespace {

std::string DescribeSpan(const ByteSpan& span) {
  return absl::StrCat(span.size_bytes,
                      span.size_bytes == 1 ? " byte" : " bytes", " at offset ",
                      span.offset);
}

}  // namespace

size_t TextSizeBytes(const ReadTarget& target) {
  const auto* key = std::get_if<DocumentKey>(&target);
  if (key == nullptr) {
    return 0;
  }
  const auto* id = std::get_if<std::string>(&key->name);
  size_t size_bytes = id == nullptr ? 0 : id->size();
  for (const std::string& type : key->record_types) {
    size_bytes += type.size();
  }
  return size_bytes;
}

std::string DescribeTarget(const ReadTarget& target) {
  if (const auto* span = std::get_if<ByteSpan>(&target)) {
    return DescribeSpan(*span);
  }
  const auto& key = std::get<DocumentKey>(target);
  std::string text;
  if (const auto* ordinal = std::get_if<uint64_t>(&key.name)) {
    text = absl::StrCat("document number ", *ordinal);
  } else {
    const auto& id = std::get<std::string>(key.name);
    text = absl::StrCat("document ", QuotedText(id));
    if (key.occurrence.has_value()) {
      absl::StrAppend(&text, ", occurrence ", *key.occurrence);
    }
    if (!key.record_types.empty()) {
      absl::StrAppend(&text, ", of type ",
                      absl::StrJoin(key.record_types, " or ",
                                    [](std::string* out, const std::string& t) {
                                      out->append(QuotedText(t));
                                    }));
    }
  }
  if (key.part.has_value()) {
    absl::StrAppend(&text, ", ", DescribeSpan(*key.part));
  }
  return text;
}

v1::ByteRange ToProto(const ByteSpan& span) {
  v1::ByteRange range;
  range.set_offset(span.offset);
  range.set_size_bytes(span.size_bytes);
  return range;
}

v1::DocumentName ToProto(const DocumentKey& key) {
  v1::DocumentName name;
  if (const auto* ordinal = std::get_if<uint64_t>(&key.name)) {
    name.set_ordinal(*ordinal);
  } else {
    name.set_id(std::get<std::string>(key.name));
  }
  if (key.occurrence.has_value()) {
    name.set_occurrence(*key.occurrence);
  }
  for (const std::string& type : key.record_types) {
    name.add_record_types(type);
  }
  if (key.at_time_ms.has_value()) {
    name.set_at_time_ms(*key.at_time_ms);
  }
  name.set_with_revisits(key.with_revisits);
  if (key.part.has_value()) {
    *name.mutable_range() = ToProto(*key.part);
  }
  return name;
}

v1::ReadRequest MakeReadRequest(absl::string_view archive,
                                const std::optional<std::string>& archive_uuid,
                                const ReadTarget& target) {
  v1::ReadRequest request;
  request.set_archive(std::string(archive));
  if (archive_uuid.has_value()) {
    request.set_archive_uuid(*archive_uuid);
  }
  SetTarget(target, request);
  return request;
}

}  // namespace quire
