// SPDX-License-Identifier: Apache-2.0
#include "client/cli/formats/duplicate_revisits.h"

#include <openssl/evp.h>

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "client/cli/formats/record_digest.h"
#include "client/cli/formats/warc_format.h"
#include "codecs/base/byte_size.h"
#include "codecs/base/bytes.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

constexpr uint64_t kTargetsSizeBytesMax = uint64_t{256} << 20;
// Estimated memory for a key in a table.
constexpr uint64_t kKeySizeBytes = 48;
// The fields of a revisit take more than smaller bodies.
constexpr uint64_t kBodySizeBytesMin = 128;

constexpr absl::string_view kType = "WARC-Type";
constexpr absl::string_view kProfile = "WARC-Profile";
constexpr absl::string_view kRefersTo = "WARC-Refers-To";
constexpr absl::string_view kRefersToUri = "WARC-Refers-To-Target-URI";
constexpr absl::string_view kRefersToDate = "WARC-Refers-To-Date";
constexpr absl::string_view kBlockDigest = "WARC-Block-Digest";
constexpr absl::string_view kContentLength = "Content-Length";

// Kind of a name that has a URI and a date.
constexpr absl::string_view kDateName = "date";

std::array<uint8_t, 16> KeyOf(absl::string_view kind, absl::string_view a,
                              absl::string_view b) {
  RecordDigest digest(EVP_sha256());
  digest.Add(AsBytes(absl::StrCat(kind, " ", a.size(), " ", a, b)));
  return digest.Prefix();
}

std::string Line(absl::string_view name, absl::string_view value) {
  return absl::StrCat(name, ": ", value, "\r\n");
}

}  // namespace

absl::string_view DuplicateRevisits::Header::Value(
    absl::string_view name) const {
  for (const auto& [field, value] : fields) {
    if (absl::EqualsIgnoreCase(field, name)) {
      return value;
    }
  }
  return "";
}

// Returns nothing for a header that must not be written again: a malformed one.
std::optional<DuplicateRevisits::Header> DuplicateRevisits::Parse(
    absl::string_view text) {
  absl::StatusOr<WarcFields> warc = ParseWarcFields(text);
  if (!warc.ok()) {
    return std::nullopt;
  }
  Header header;
  header.warc = *std::move(warc);
  header.version =
      std::string(absl::StripAsciiWhitespace(TakeHeaderLine(text)));
  while (std::optional<HeaderField> field = TakeHeaderField(text)) {
    if (field->name.empty()) {
      return std::nullopt;
    }
    header.fields.emplace_back(field->name, std::move(field->value));
  }
  return header;
}

// The names by which a revisit can refer to a record.
std::vector<DuplicateRevisits::Key> DuplicateRevisits::NamesOf(
    absl::string_view record_id, absl::string_view uri, absl::string_view date,
    absl::string_view digest) {
  std::vector<Key> names;
  if (!record_id.empty()) {
    names.push_back(KeyOf("id", record_id, ""));
  }
  if (!date.empty()) {
    names.push_back(KeyOf(kDateName, uri, date));
  }
  if (!digest.empty()) {
    names.push_back(KeyOf("digest", uri, absl::AsciiStrToLower(digest)));
  }
  return names;
}

// Returns the header of the revisit of `target` whose block is `http`.
std::string DuplicateRevisits::WithReference(const Header& header,
                                             const Target& target,
                                             absl::string_view http) {
  const bool is_revisit = header.warc.type == "revisit";
  std::string text = absl::StrCat(header.version, "\r\n");
  for (const auto& field : header.fields) {
    const std::string& name = field.first;
    const std::string& value = field.second;
    const auto is = [&name](absl::string_view other) {
      return absl::EqualsIgnoreCase(name, other);
    };
    if (is(kRefersTo) || is(kRefersToUri) || is(kRefersToDate) ||
        (is(kProfile) && !is_revisit)) {
      continue;
    }
    if (is(kType)) {
      absl::StrAppend(&text, Line(kType, "revisit"));
    } else if (is(kContentLength) && !is_revisit) {
      absl::StrAppend(&text, Line(kContentLength, absl::StrCat(http.size())));
    } else if (is(kBlockDigest) && !is_revisit) {
      RecordDigest digest(EVP_sha1());
      digest.Add(AsBytes(http));
      absl::StrAppend(&text, Line(kBlockDigest, digest.Sha1Text()));
    } else {
      absl::StrAppend(&text, Line(name, value));
    }
  }
  if (!is_revisit) {
    absl::StrAppend(
        &text, Line(kProfile,
                    absl::StrCat(
                        "http://netpreserve.org/warc/",
                        absl::EndsWith(header.version, "/1.0") ? "1.0" : "1.1",
                        "/revisit/identical-payload-digest")));
  }
  if (!target.record_id.empty()) {
    absl::StrAppend(&text, Line(kRefersTo, target.record_id));
  }
  absl::StrAppend(&text, Line(kRefersToUri, target.uri),
                  Line(kRefersToDate, target.date), "\r\n");
  return text;
}

bool DuplicateRevisits::Hold(uint64_t size_bytes) {
  is_full_ = is_full_ || size_bytes > kTargetsSizeBytesMax - held_size_bytes_;
  held_size_bytes_ += is_full_ ? 0 : size_bytes;
  return !is_full_;
}

absl::StatusOr<std::optional<DocumentFrame>> DuplicateRevisits::Take(
    const ExportedRecord& record, const WholeDocument& whole) {
  const std::optional<Header> header = Parse(record.header);
  // Another size would be a malformed record, which stays what it is.
  if (!header.has_value() || record.block_offset > record.document_size_bytes ||
      header->warc.content_length >
          record.document_size_bytes - record.block_offset) {
    return std::optional<DocumentFrame>();
  }
  if (header->warc.type == "revisit") {
    return TakeRevisit(record, *header);
  }
  if (header->warc.type != "response" || !HoldsHttp(header->warc) ||
      !header->warc.truncated.empty() || header->warc.target_uri.empty() ||
      header->warc.date.empty() ||
      !header->Value("WARC-Segment-Number").empty()) {
    return std::optional<DocumentFrame>();
  }
  return TakeResponse(record, *header, whole);
}

absl::StatusOr<std::optional<DocumentFrame>> DuplicateRevisits::TakeResponse(
    const ExportedRecord& record, const Header& header,
    const WholeDocument& whole) {
  const std::optional<DocumentFrame> stays;
  const WarcFields& warc = header.warc;
  if (record.block_offset > record.head.size()) {
    return stays;
  }
  const absl::string_view block =
      record.head.substr(static_cast<size_t>(record.block_offset),
                         static_cast<size_t>(std::min<uint64_t>(
                             warc.content_length, record.head.size())));
  const size_t blank_size = BlankLinesSize(block);
  const absl::string_view message = block.substr(blank_size);
  const std::optional<size_t> http_size = absl::StartsWith(message, kHttpMagic)
                                              ? FindHeaderEnd(AsBytes(message))
                                              : std::nullopt;
  if (!http_size.has_value()) {
    return stays;
  }
  const absl::string_view http = block.substr(0, blank_size + *http_size);
  const HttpFields http_fields = ParseHttpFields(message.substr(0, *http_size));
  const uint64_t body_size = warc.content_length - http.size();
  // Another header follows an interim response.
  if (body_size < kBodySizeBytesMin || !http_fields.status_code.has_value() ||
      *http_fields.status_code < 200) {
    return stays;
  }
  if (warc.payload_digest.empty()) {
    ++undigested_count_;
    return stays;
  }
  RecordDigest digest(EVP_sha256());
  digest.Add(AsBytes(
      absl::StrCat(absl::AsciiStrToLower(warc.payload_digest), "\n",
                   absl::StrJoin(http_fields.transfer_codings, ","), "\n",
                   absl::StrJoin(http_fields.content_codings, ","), "\n")));
  const uint64_t body_offset = record.block_offset + http.size();
  uint64_t position = 0;
  const absl::Status read = whole([&](ByteView bytes) {
    const uint64_t end = position + bytes.size();
    const uint64_t from = std::clamp(body_offset, position, end);
    const uint64_t to = std::clamp(body_offset + body_size, from, end);
    digest.Add(bytes.subspan(static_cast<size_t>(from - position),
                             static_cast<size_t>(to - from)));
    position = end;
    return absl::OkStatus();
  });
  // The writer of the document reports it, too.
  if (absl::IsDataLoss(read)) {
    return stays;
  }
  QUIRE_RETURN_IF_ERROR(read);
  const Key body = digest.Prefix();
  const absl::string_view record_id = header.Value("WARC-Record-ID");
  const auto found = bodies_.find(body);
  if (found == bodies_.end()) {
    if (!Hold(2 * kKeySizeBytes + sizeof(Target) + warc.target_uri.size() +
              warc.date.size() + record_id.size())) {
      ++uncompared_count_;
      return stays;
    }
    targets_.push_back({.uri = warc.target_uri,
                        .date = warc.date,
                        .record_id = std::string(record_id)});
    Target& added = targets_.back();
    bodies_.emplace(body, &added);
    const auto [named, is_new] =
        dated_.emplace(KeyOf(kDateName, warc.target_uri, warc.date), &added);
    added.is_ambiguous = !is_new;
    named->second->is_ambiguous = !is_new;
    return stays;
  }
  const Target& target = *found->second;
  const std::vector<Key> names =
      NamesOf(record_id, warc.target_uri, warc.date, warc.payload_digest);
  const bool is_referenced =
      std::any_of(names.begin(), names.end(),
                  [&](const Key& name) { return referenced_.contains(name); });
  std::string before = WithReference(header, target, http);
  const uint64_t size_bytes = record.header.size() + warc.content_length;
  const uint64_t new_size_bytes = before.size() + http.size();
  if (is_referenced || new_size_bytes >= size_bytes || target.is_ambiguous ||
      (target.uri == warc.target_uri && target.date == warc.date) ||
      !Hold(names.size() * kKeySizeBytes)) {
    return stays;
  }
  for (const Key& name : names) {
    replaced_.emplace(name, &target);
  }
  ++revisit_count_;
  saved_size_bytes_ += size_bytes - new_size_bytes;
  return std::optional<DocumentFrame>(
      DocumentFrame{.before = std::move(before),
                    .offset = record.block_offset,
                    .size_bytes = http.size(),
                    .after = std::string(kWarcRecordEnd)});
}

std::optional<DocumentFrame> DuplicateRevisits::TakeRevisit(
    const ExportedRecord& record, const Header& header) {
  const WarcFields& warc = header.warc;
  const std::vector<Key> names =
      NamesOf(header.Value(kRefersTo),
              warc.refers_to_target_uri.empty() ? warc.target_uri
                                                : warc.refers_to_target_uri,
              warc.refers_to_date, warc.payload_digest);
  for (const Key& name : names) {
    const auto found = replaced_.find(name);
    if (found != replaced_.end()) {
      ++redirected_count_;
      return DocumentFrame{.before = WithReference(header, *found->second, ""),
                           .offset = record.block_offset,
                           .size_bytes = warc.content_length,
                           .after = std::string(kWarcRecordEnd)};
    }
  }
  // Without the memory no later response becomes a revisit.
  if (Hold(names.size() * kKeySizeBytes)) {
    referenced_.insert(names.begin(), names.end());
  }
  return std::nullopt;
}

std::vector<std::string> DuplicateRevisits::Notes() const {
  std::vector<std::string> notes;
  notes.push_back(absl::StrCat(
      FormatCounted(revisit_count_, "response", "responses"),
      " with the payload of an earlier one in records of type revisit, ",
      FormatByteSize(saved_size_bytes_), " less text"));
  if (redirected_count_ > 0) {
    notes.push_back(
        absl::StrCat(FormatCounted(redirected_count_, "revisit", "revisits"),
                     " of these refer to the earlier responses now"));
  }
  if (undigested_count_ > 0) {
    notes.push_back(absl::StrCat(
        FormatCounted(undigested_count_, "response has", "responses have"),
        " no WARC-Payload-Digest and stay as they are"));
  }
  if (is_full_) {
    notes.push_back(absl::StrCat(
        "the memory for earlier payloads, ",
        FormatByteSize(kTargetsSizeBytesMax), ", was exhausted: ",
        FormatCounted(uncompared_count_, "response was", "responses were"),
        " not compared with later ones"));
  }
  return notes;
}

}  // namespace quire
