// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/read/read_planner.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"

#include "codecs/base/checksum.h"
#include "codecs/base/endian.h"
#include "codecs/base/status_macros.h"
#include "codecs/base/varint.h"
#include "server/archive/format/archive_format.h"
#include "server/service/base/service_error.h"

namespace quire {
namespace {

using google::protobuf::internal::WireFormatLite;

// Upper bound on the part of an id that an error message repeats.
constexpr size_t kQuotedSizeMax = 40;

// Limits of DocumentName.record_types, stated in archive.proto.
constexpr int kRecordTypesMax = 16;
constexpr size_t kRecordTypeSizeBytesMax = 256;
// Default order of record types: a type is read only if the id has no document
// of an earlier type.
constexpr std::array<absl::string_view, 3> kDefaultRecordTypes = {
    "response", "resource", ""};
// The first of them, where revisits count as responses.
constexpr std::array<absl::string_view, 2> kCaptureRecordTypes = {"response",
                                                                  "revisit"};

absl::Status PastEnd(uint64_t offset, uint64_t size_bytes, uint64_t end,
                     absl::string_view of_what) {
  if (offset > end) {
    return ServiceError(
        absl::StatusCode::kOutOfRange, v1::RANGE_PAST_END,
        absl::StrCat("offset ", offset, " lies past the end of the ", of_what,
                     ", which has ", end, end == 1 ? " byte" : " bytes"));
  }
  return ServiceError(
      absl::StatusCode::kOutOfRange, v1::RANGE_PAST_END,
      absl::StrCat("range at ", offset, " of ", size_bytes,
                   size_bytes == 1 ? " byte" : " bytes",
                   " ends past the end of the ", of_what, ", which has ", end,
                   end == 1 ? " byte" : " bytes"));
}

// False also if the sum does not fit 64 bits.
bool LiesWithin(const v1::ByteRange& range, uint64_t size_bytes) {
  return range.offset() <= size_bytes &&
         range.size_bytes() <= size_bytes - range.offset();
}

// These write a field to `to` and return its end. A number without presence is
// omitted if it is 0, as in serialised messages.
uint8_t* WriteUnlessZero(int field_number, uint64_t value, uint8_t* to) {
  return value == 0
             ? to
             : WireFormatLite::WriteUInt64ToArray(field_number, value, to);
}

uint8_t* WriteBytes(int field_number, absl::string_view bytes, uint8_t* to) {
  to = WireFormatLite::WriteTagToArray(
      field_number, WireFormatLite::WIRETYPE_LENGTH_DELIMITED, to);
  to = google::protobuf::io::CodedOutputStream::WriteVarint64ToArray(
      bytes.size(), to);
  return std::copy(bytes.begin(), bytes.end(), to);
}

std::string Quoted(absl::string_view text) {
  return absl::StrCat("\"", absl::CHexEscape(text.substr(0, kQuotedSizeMax)),
                      "\"");
}

absl::Status Malformed(absl::string_view what) {
  return ServiceError(absl::StatusCode::kInvalidArgument, v1::MALFORMED_REQUEST,
                      what);
}

absl::Status NotFound(absl::string_view what) {
  return ServiceError(absl::StatusCode::kNotFound, v1::DOCUMENT_NOT_FOUND,
                      what);
}

// Checks that the fields which select one of several documents are consistent.
absl::Status CheckSelection(const v1::DocumentName& name) {
  const bool selects = name.record_types_size() > 0 || name.has_at_time_ms() ||
                       name.with_revisits();
  if (name.has_ordinal() && (selects || name.has_occurrence())) {
    return Malformed(
        "document.ordinal names one document: set no occurrence, record_types, "
        "at_time_ms or with_revisits with it");
  }
  if (name.has_occurrence() && selects) {
    return Malformed(
        "document.occurrence counts all documents of the id: set no "
        "record_types, at_time_ms or with_revisits with it");
  }
  if (name.with_revisits() && name.record_types_size() > 0) {
    return Malformed(
        "document.with_revisits is for a document without record_types: name "
        "\"revisit\" among them instead");
  }
  if (name.record_types_size() > kRecordTypesMax) {
    return Malformed(absl::StrCat("document.record_types has ",
                                  name.record_types_size(),
                                  " entries, the limit is ", kRecordTypesMax));
  }
  for (const std::string& type : name.record_types()) {
    if (type.size() > kRecordTypeSizeBytesMax) {
      return Malformed(absl::StrCat("document.record_types has an entry of ",
                                    type.size(), " bytes, the limit is ",
                                    kRecordTypeSizeBytesMax));
    }
  }
  return absl::OkStatus();
}

// Example: `"request", none`.
std::string ListTypes(absl::Span<const std::string> types) {
  std::string list;
  for (size_t i = 0; i < types.size(); ++i) {
    absl::StrAppend(&list, i == 0 ? "" : ", ",
                    types[i].empty() ? "none" : Quoted(types[i]));
  }
  return list;
}

absl::Status NoSuchId(absl::string_view id) {
  return NotFound(absl::StrCat("no document ", Quoted(id)));
}

// No document of the id that is not left out has a requested type.
absl::Status NoneOfTypes(const ArchiveView& view, absl::string_view id,
                         const OrdinalPredicate* is_left_out) {
  const std::vector<std::string> types = view.archive->RecordTypesOf(
      id, kRecordTypesMax, view.document_count, is_left_out);
  if (types.empty()) {
    return NoSuchId(id);
  }
  const uint64_t count =
      is_left_out != nullptr
          ? 0
          : view.archive->FindDocument(id, std::nullopt, view.document_count)
                .count;
  return ServiceError(absl::StatusCode::kNotFound, v1::RECORD_TYPE_NOT_FOUND,
                      absl::StrCat("no document ", Quoted(id),
                                   " of the requested record types: there ",
                                   count == 1   ? "is 1"
                                   : count == 0 ? "are others"
                                                : absl::StrCat("are ", count),
                                   ", of type ", ListTypes(types)));
}

absl::StatusOr<DocumentOrdinal> FindCapture(
    const ArchiveView& view, const v1::DocumentName& name,
    const OrdinalPredicate* is_left_out) {
  const absl::string_view id(name.id());
  absl::InlinedVector<absl::string_view, kRecordTypesMax> types(
      name.record_types().begin(), name.record_types().end());
  DocumentSelection selection{.record_types = types,
                              .is_left_out = is_left_out};
  if (name.has_at_time_ms()) {
    selection.at_time_ms = name.at_time_ms();
  }
  Archive::FoundDocument found;
  if (!types.empty()) {
    found = view.archive->FindCapture(id, selection, view.document_count);
  } else {
    for (const absl::string_view& type : kDefaultRecordTypes) {
      const bool is_response = &type == &kDefaultRecordTypes.front();
      selection.record_types =
          is_response && name.with_revisits()
              ? absl::Span<const absl::string_view>(kCaptureRecordTypes)
              : absl::MakeConstSpan(&type, 1);
      found = view.archive->FindCapture(id, selection, view.document_count);
      if (found.ordinal.has_value() || found.count == 0) {
        break;
      }
    }
  }
  if (found.ordinal.has_value()) {
    return *found.ordinal;
  }
  return found.count == 0 ? NoSuchId(id) : NoneOfTypes(view, id, is_left_out);
}

// Documents for which `is_left_out` is true, if it is not null, do not count as
// captures, but as occurrences.
absl::StatusOr<DocumentOrdinal> FindById(
    const ArchiveView& view, const v1::DocumentName& name,
    const OrdinalPredicate* is_left_out = nullptr) {
  if (!name.has_occurrence()) {
    return FindCapture(view, name, is_left_out);
  }
  const absl::string_view id(name.id());
  const Archive::FoundDocument found =
      view.archive->FindDocument(id, name.occurrence(), view.document_count);
  if (found.ordinal.has_value()) {
    return *found.ordinal;
  }
  return found.count == 0
             ? NoSuchId(id)
             : NotFound(absl::StrCat("no occurrence ", name.occurrence(),
                                     " of document ", Quoted(id),
                                     ": there are ", found.count, ", from 0"));
}

absl::Status Withdrawn() {
  return ServiceError(absl::StatusCode::kPermissionDenied,
                      v1::DOCUMENT_WITHDRAWN,
                      "the document was withdrawn by the server's operator");
}

absl::Status Redacted() {
  return ServiceError(absl::StatusCode::kPermissionDenied,
                      v1::DOCUMENT_WITHDRAWN,
                      "the document was removed from the archive; its text is "
                      "gone");
}

// Returns the error of a look-up of an id all of whose documents are withdrawn.
// An excluded document gives the same error as a missing one.
absl::Status WithdrawnId(const ArchiveView& view, Withdrawal action,
                         absl::string_view id) {
  const bool is_there =
      view.archive->FindDocument(id, std::nullopt, view.document_count).count >
      0;
  return action == Withdrawal::kBlock && is_there ? Withdrawn() : NoSuchId(id);
}

// Finds a document by its id if some are withdrawn.
absl::StatusOr<DocumentOrdinal> FindNotWithdrawn(
    const ArchiveView& view, const WithdrawnDocuments& withdrawn,
    const v1::DocumentName& name) {
  const std::optional<Withdrawal> of_id = withdrawn.Match(name.id());
  if (!withdrawn.has_selected()) {
    return of_id.has_value() ? WithdrawnId(view, *of_id, name.id())
                             : FindById(view, name);
  }
  const OrdinalPredicate is_withdrawn = [&withdrawn](uint64_t ordinal) {
    return withdrawn.Find({ordinal}).has_value();
  };
  absl::StatusOr<DocumentOrdinal> found = FindById(view, name, &is_withdrawn);
  if (found.ok() && !is_withdrawn(found->value)) {
    return found;
  }
  // The one that would be found if none were withdrawn decides.
  const absl::StatusOr<DocumentOrdinal> hidden =
      found.ok() ? found : FindById(view, name);
  const std::optional<Withdrawal> action =
      hidden.ok() ? withdrawn.Find(*hidden) : of_id;
  if (!action.has_value() || (*action == Withdrawal::kExclude && !found.ok())) {
    return found;
  }
  return WithdrawnId(view, *action, name.id());
}

absl::Status CheckWithdrawal(const WithdrawnDocuments& withdrawn,
                             DocumentOrdinal ordinal) {
  const std::optional<Withdrawal> action = withdrawn.Find(ordinal);
  if (!action.has_value()) {
    return absl::OkStatus();
  }
  return *action == Withdrawal::kBlock
             ? Withdrawn()
             : NotFound(absl::StrCat("no document number ", ordinal.value));
}

absl::StatusOr<DocumentOrdinal> FindOrdinal(const ServedContents& contents,
                                            const v1::DocumentName& name,
                                            uint32_t id_size_bytes_max) {
  const ArchiveView& view = contents.view;
  const WithdrawnDocuments* const withdrawn =
      contents.withdrawal.documents.get();
  QUIRE_RETURN_IF_ERROR(CheckSelection(name));
  switch (name.name_case()) {
    case v1::DocumentName::kId:
      if (name.id().size() > id_size_bytes_max) {
        return Malformed(
            absl::StrCat("document.id has ", name.id().size(),
                         " bytes, over document_id_size_bytes_max, ",
                         id_size_bytes_max, "; name it by its ordinal"));
      }
      return withdrawn == nullptr ? FindById(view, name)
                                  : FindNotWithdrawn(view, *withdrawn, name);
    case v1::DocumentName::kOrdinal:
      if (name.ordinal() >= view.document_count) {
        return NotFound(absl::StrCat("no document number ", name.ordinal(),
                                     ": there are ", view.document_count,
                                     ", from 0"));
      }
      if (withdrawn != nullptr) {
        QUIRE_RETURN_IF_ERROR(CheckWithdrawal(*withdrawn, {name.ordinal()}));
      }
      return DocumentOrdinal{name.ordinal()};
    case v1::DocumentName::NAME_NOT_SET:
      break;
  }
  return Malformed("document: neither id nor ordinal is set");
}

}  // namespace

absl::Status MissingTarget() {
  return ServiceError(absl::StatusCode::kInvalidArgument, v1::MALFORMED_REQUEST,
                      "target: neither range nor document is set");
}

absl::StatusOr<ResolvedTarget> ResolveRange(const ArchiveView& view,
                                            const v1::ByteRange& range) {
  if (!LiesWithin(range, view.size_bytes)) {
    return PastEnd(range.offset(), range.size_bytes(), view.size_bytes,
                   "archive");
  }
  return ResolvedTarget{.range = {{range.offset()}, range.size_bytes()},
                        .document = std::nullopt};
}

absl::StatusOr<ResolvedTarget> ResolveDocument(const ServedContents& contents,
                                               const v1::DocumentName& name,
                                               uint32_t id_size_bytes_max) {
  absl::StatusOr<DocumentOrdinal> ordinal =
      FindOrdinal(contents, name, id_size_bytes_max);
  if (!ordinal.ok()) {
    return ordinal.status();
  }
  if (contents.view.archive->IsRedacted(*ordinal)) {
    return Redacted();
  }
  absl::StatusOr<LogicalRange> whole =
      contents.view.archive->GetDocumentRange(*ordinal);
  if (!whole.ok()) {
    return whole.status();
  }
  ResolvedTarget target{.range = *whole, .document = *ordinal};
  if (name.has_range()) {
    if (!LiesWithin(name.range(), whole->size_bytes)) {
      return PastEnd(name.range().offset(), name.range().size_bytes(),
                     whole->size_bytes, "document");
    }
    target.range = {{whole->offset.value + name.range().offset()},
                    name.range().size_bytes()};
  }
  return target;
}

absl::Status CheckStillThere(const ServedArchive& archive,
                             const ResolvedTarget& target,
                             uint64_t generation) {
  if (!target.document.has_value() ||
      archive.withdrawal->generation() == generation) {
    return absl::OkStatus();
  }
  const WithdrawalSnapshot now = archive.withdrawal->Get();
  return now.has_documents() ? CheckWithdrawal(*now.documents, *target.document)
                             : absl::OkStatus();
}

uint64_t ZerosHash(const ServedContents& contents) {
  const ArchiveView& view = contents.view;
  const uint64_t of_rules =
      contents.withdrawal.has_documents()
          ? contents.withdrawal.documents->ZerosHash(view.size_bytes)
          : 0;
  if (view.removals_hash == 0) {
    return of_rules;
  }
  std::array<uint8_t, sizeof(uint64_t)> bytes;
  StoreLittleEndian(of_rules, bytes.data());
  return std::max<uint64_t>(1, Checksum64(bytes, view.removals_hash));
}

v1::ByteRange ToProto(LogicalRange range) {
  v1::ByteRange proto;
  proto.set_offset(range.offset.value);
  proto.set_size_bytes(range.size_bytes);
  return proto;
}

void FillDocument(Document document, v1::Document& proto) {
  proto.set_ordinal(document.ordinal.value);
  proto.set_id(std::move(document.id));
  proto.mutable_range()->set_offset(document.range.offset.value);
  proto.mutable_range()->set_size_bytes(document.range.size_bytes);
  if (document.capture_time_ms.has_value()) {
    proto.set_capture_time_ms(*document.capture_time_ms);
  }
  if (IsPlainText(document.media_type)) {
    proto.set_media_type(std::move(document.media_type));
  }
  if (IsPlainText(document.record_type)) {
    proto.set_record_type(std::move(document.record_type));
  }
}

std::string SerialiseDocument(const Document& document) {
  // A field numbered at most 15 has a tag of one byte.
  static_assert(v1::Document::kRecordTypeFieldNumber < 16);
  const LogicalRange range = document.range;
  std::array<uint8_t, 2 * (kVarintSizeBytesMax + 1)> place;
  uint8_t* place_end = place.data();
  place_end = WriteUnlessZero(v1::ByteRange::kOffsetFieldNumber,
                              range.offset.value, place_end);
  place_end = WriteUnlessZero(v1::ByteRange::kSizeBytesFieldNumber,
                              range.size_bytes, place_end);
  const absl::string_view place_bytes(
      reinterpret_cast<const char*>(place.data()),
      static_cast<size_t>(place_end - place.data()));

  std::string bytes(kDocumentFramingSizeBytesMax + document.id.size() +
                        document.media_type.size() +
                        document.record_type.size(),
                    '\0');
  auto* const start = reinterpret_cast<uint8_t*>(bytes.data());
  uint8_t* to = WriteUnlessZero(v1::Document::kOrdinalFieldNumber,
                                document.ordinal.value, start);
  if (!document.id.empty()) {
    to = WriteBytes(v1::Document::kIdFieldNumber, document.id, to);
  }
  to = WriteBytes(v1::Document::kRangeFieldNumber, place_bytes, to);
  if (document.capture_time_ms.has_value()) {
    to = WireFormatLite::WriteInt64ToArray(
        v1::Document::kCaptureTimeMsFieldNumber, *document.capture_time_ms, to);
  }
  if (IsPlainText(document.media_type)) {
    to = WriteBytes(v1::Document::kMediaTypeFieldNumber, document.media_type,
                    to);
  }
  if (IsPlainText(document.record_type)) {
    to = WriteBytes(v1::Document::kRecordTypeFieldNumber, document.record_type,
                    to);
  }
  bytes.resize(static_cast<size_t>(to - start));
  return bytes;
}

std::string DescribeDocument(const Archive& archive, DocumentOrdinal ordinal) {
  return SerialiseDocument(archive.GetDocument(ordinal).value());
}

uint64_t DescriptionSizeBytesMax(const Archive& archive) {
  return archive.DescriptionSizeBytesMax() + kDocumentFramingSizeBytesMax;
}

}  // namespace quire
