// SPDX-License-Identifier: Apache-2.0
#include "client/quire/testing/fake_service.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "proto/error_details.h"

#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"

namespace quire {
namespace {

grpc::Status PastEnd() {
  return FakeFailure(grpc::OUT_OF_RANGE, v1::RANGE_PAST_END,
                     "the range ends past the end");
}

// Without wanted types the lowest rank is read.
size_t DefaultRank(const v1::DocumentName& name, const v1::Document& document) {
  const std::string& type = document.record_type();
  return type == "response" || (type == "revisit" && name.with_revisits()) ? 0
         : type == "resource"                                              ? 1
         : type.empty()                                                    ? 2
                        : SIZE_MAX;
}

bool HasWantedType(const v1::DocumentName& name, const v1::Document& document) {
  return name.record_types().empty() ? DefaultRank(name, document) != SIZE_MAX
                                     : std::count(name.record_types().begin(),
                                                  name.record_types().end(),
                                                  document.record_type()) != 0;
}

// True if `document` is chosen over `other`, which precedes it.
bool IsBetter(const v1::DocumentName& name, const v1::Document& document,
              const v1::Document& other) {
  if (name.record_types().empty() &&
      DefaultRank(name, document) != DefaultRank(name, other)) {
    return DefaultRank(name, document) < DefaultRank(name, other);
  }
  const auto time = [](const v1::Document& d) {
    return d.has_capture_time_ms() ? d.capture_time_ms() : INT64_MIN;
  };
  const int64_t at = name.has_at_time_ms() ? name.at_time_ms() : INT64_MAX;
  if (time(document) <= at) {
    return time(other) > at || time(document) >= time(other);
  }
  return time(other) > at && time(document) <= time(other);
}

v1::ByteRange MakeRange(uint64_t offset, uint64_t size_bytes) {
  v1::ByteRange range;
  range.set_offset(offset);
  range.set_size_bytes(size_bytes);
  return range;
}

// Returns the values of a header, each after a blank: several would be a fault.
std::string ValuesOf(const grpc::ServerContext& context, const char* key) {
  std::string values;
  const auto range = context.client_metadata().equal_range(key);
  for (auto value = range.first; value != range.second; ++value) {
    absl::StrAppend(
        &values, " ",
        absl::string_view(value->second.data(), value->second.size()));
  }
  return values;
}

v1::FieldValue MakeField(const FieldValue& value) {
  v1::FieldValue field;
  if (const auto* text = std::get_if<std::string>(&value)) {
    field.set_string_value(*text);
  } else if (const auto* integer = std::get_if<int64_t>(&value)) {
    field.set_integer_value(*integer);
  } else if (const auto* real = std::get_if<double>(&value)) {
    field.set_float_value(*real);
  } else if (const auto* boolean = std::get_if<bool>(&value)) {
    field.set_boolean_value(*boolean);
  } else if (const auto* time = std::get_if<FieldTime>(&value)) {
    field.set_time_us(time->us);
  }
  return field;
}

uint64_t ContentsHash(const std::vector<v1::Document>& documents,
                      const std::string& text) {
  uint64_t hash = Checksum64(AsBytes(text));
  for (const v1::Document& document : documents) {
    const std::string serialised = document.SerializeAsString();
    hash = Checksum64(AsBytes(serialised), hash);
  }
  return hash;
}

}  // namespace

FakeServer::Service::Service(FakeSettings settings,
                             const std::map<std::string, FakeArchive>& archives)
    : settings_(std::move(settings)) {
  Reload(archives);
}

void FakeServer::Service::Reload(
    const std::map<std::string, FakeArchive>& archives) {
  HeldArchives all;
  for (const auto& [name, archive] : archives) {
    Held& held = all[name];
    for (const FakeDocument& fake : archive.documents) {
      v1::Document document;
      document.set_ordinal(held.documents.size());
      document.set_id(fake.is_redacted ? "" : fake.id);
      *document.mutable_range() = MakeRange(held.text.size(), fake.text.size());
      if (fake.capture_time_ms.has_value()) {
        document.set_capture_time_ms(*fake.capture_time_ms);
      }
      if (fake.media_type.has_value()) {
        document.set_media_type(*fake.media_type);
      }
      if (fake.record_type.has_value()) {
        document.set_record_type(*fake.record_type);
      }
      if (fake.is_redacted) {
        document.set_record_type("withdrawn");
      }
      if (fake.is_withdrawn) {
        held.withdrawn.insert(document.ordinal());
      }
      held.documents.push_back(document);
      held.fields.emplace_back(archive.fields.size());
      for (size_t i = 0; i < fake.fields.size() && !fake.is_redacted; ++i) {
        held.fields.back()[i] = MakeField(fake.fields[i]);
      }
      held.text += fake.is_withdrawn || fake.is_redacted
                       ? std::string(fake.text.size(), '\0')
                       : fake.text;
    }
    held.dictionary = archive.dictionary;
    held.description.set_name(name);
    held.description.set_uuid(
        absl::StrCat("uuid-of-", name, "-",
                     absl::Hex(ContentsHash(held.documents, held.text))));
    held.description.set_size_bytes(held.text.size());
    held.description.set_stored_size_bytes(held.text.size() / 4);
    held.description.set_document_count(held.documents.size());
    held.description.set_block_size_bytes(65536);
    held.description.set_codec("copy");
    if (!held.dictionary.empty()) {
      held.description.set_dictionary_hash(absl::StrCat("hash-of-", name));
      held.description.set_dictionary_size_bytes(held.dictionary.size());
    }
    for (const FieldColumn& column : archive.fields) {
      v1::FieldDescription& field = *held.description.add_fields();
      field.set_name(column.name);
      field.set_type(static_cast<v1::FieldType>(column.type));
    }
    held.encodings =
        std::make_unique<FakeEncodings>(archive, held.text, held.description);
  }
  MutexLock lock(&mutex_);
  generations_.push_back(std::move(all));
}

const FakeServer::Service::HeldArchives& FakeServer::Service::archives() const {
  MutexLock lock(&mutex_);
  return generations_.back();
}

void FakeServer::Service::SetFaults(const FakeFaults& faults) {
  MutexLock lock(&mutex_);
  faults_ = faults;
}

void FakeServer::Service::Release() {
  {
    MutexLock lock(&mutex_);
    released_ = true;
  }
  released_changed_.NotifyAll();
}

int FakeServer::Service::CallCount(const std::string& method) const {
  MutexLock lock(&mutex_);
  const auto found = call_counts_.find(method);
  return found == call_counts_.end() ? 0 : found->second;
}

int FakeServer::Service::LargestBatchMessage() const {
  MutexLock lock(&mutex_);
  return largest_batch_message_;
}

std::vector<std::string> FakeServer::Service::TraceParents() const {
  MutexLock lock(&mutex_);
  return trace_parents_;
}

std::vector<std::string> FakeServer::Service::ArchiveHeaders() const {
  MutexLock lock(&mutex_);
  return archive_headers_;
}

std::vector<std::string> FakeServer::Service::Attempts() const {
  MutexLock lock(&mutex_);
  return attempts_;
}

grpc::Status FakeServer::Service::RefusalAsTold() {
  absl::Duration delay;
  {
    MutexLock lock(&mutex_);
    delay = faults_.told_delay;
  }
  if (Due(&FakeFaults::over_quota_calls)) {
    return FakeFailure(grpc::RESOURCE_EXHAUSTED, v1::QUOTA_EXCEEDED,
                       "too many calls", delay);
  }
  return Due(&FakeFaults::opening_calls)
             ? FakeFailure(grpc::UNAVAILABLE, v1::ARCHIVE_OPENING,
                           "the archive is being opened", delay)
             : grpc::Status::OK;
}

grpc::Status FakeServer::Service::Enter(const char* method,
                                        const grpc::ServerContext& context) {
  absl::Duration busy_retry_delay;
  {
    MutexLock lock(&mutex_);
    busy_retry_delay = faults_.busy_retry_delay;
    ++call_counts_[method];
    const auto header = context.client_metadata().find("traceparent");
    trace_parents_.push_back(
        header == context.client_metadata().end()
            ? ""
            : std::string(header->second.data(), header->second.size()));
    archive_headers_.push_back(
        absl::StrCat(method, ValuesOf(context, "quire-archive")));
    attempts_.push_back(
        absl::StrCat(method, ValuesOf(context, "quire-attempt")));
  }
  const grpc::Status refusal = RefusalAsTold();
  if (!refusal.ok()) {
    return refusal;
  }
  {
    MutexLock lock(&mutex_);
    if (absl::string_view(method) == "ListArchives" && !faults_.with_listing) {
      return grpc::Status::OK;
    }
  }
  if (Due(&FakeFaults::unavailable_calls)) {
    return FakeFailure(grpc::UNAVAILABLE, v1::DRAINING, "the server drains");
  }
  if (Due(&FakeFaults::reset_calls)) {
    return {grpc::INTERNAL, "frame of size 9 overflows local window of 5"};
  }
  const bool asks_for_text =
      absl::StrContains(method, "Read") || absl::string_view(method) == "Scan";
  if (asks_for_text && Due(&FakeFaults::busy_calls)) {
    return FakeFailure(grpc::RESOURCE_EXHAUSTED, v1::SERVER_BUSY, "busy",
                       busy_retry_delay);
  }
  if (!Due(&FakeFaults::calls_before_stall) &&
      Due(&FakeFaults::stalled_calls)) {
    MutexLock lock(&mutex_);
    while (!released_) {
      released_changed_.Wait(&mutex_);
    }
  }
  return grpc::Status::OK;
}

bool FakeServer::Service::Due(int FakeFaults::*fault) {
  MutexLock lock(&mutex_);
  int& count = faults_.*fault;
  if (count == 0) {
    return false;
  }
  if (count > 0) {
    --count;
  }
  return true;
}

FakeServer::Service::StreamFate FakeServer::Service::FateAfter(
    int message_count) {
  {
    MutexLock lock(&mutex_);
    if (message_count != faults_.messages_before_break) {
      return StreamFate::kGoOn;
    }
  }
  if (Due(&FakeFaults::broken_streams)) {
    return StreamFate::kBreak;
  }
  return Due(&FakeFaults::early_ends) ? StreamFate::kEnd : StreamFate::kGoOn;
}

const FakeServer::Service::Held* FakeServer::Service::Find(
    const std::string& archive) const {
  const HeldArchives& all = archives();
  const auto found = all.find(archive);
  return found == all.end() ? nullptr : &found->second;
}

grpc::Status FakeServer::Service::FindContents(const std::string& archive,
                                               const std::string* uuid,
                                               const Held*& held) const {
  held = Find(archive);
  if (held == nullptr) {
    return FakeFailure(grpc::NOT_FOUND, v1::ARCHIVE_NOT_FOUND,
                       absl::StrCat("no archive '", archive, "'"));
  }
  return uuid == nullptr || *uuid == held->description.uuid()
             ? grpc::Status::OK
             : FakeFailure(grpc::FAILED_PRECONDITION, v1::ARCHIVE_STATE_UNKNOWN,
                           "other contents");
}

FakeServer::Service::Resolved FakeServer::Service::ResolveRange(
    const Held& archive, const v1::ByteRange& range) {
  if (range.offset() > archive.text.size() ||
      range.size_bytes() > archive.text.size() - range.offset()) {
    return {PastEnd()};
  }
  return {grpc::Status::OK, &archive, range, nullptr};
}

FakeServer::Service::Resolved FakeServer::Service::ResolveDocument(
    const Held& archive, const v1::DocumentName& name) {
  const v1::Document* found = nullptr;
  if (name.name_case() == v1::DocumentName::kOrdinal) {
    if (name.ordinal() < archive.documents.size()) {
      found = &archive.documents[name.ordinal()];
    }
  } else {
    uint64_t occurrence = 0;
    for (const v1::Document& document : archive.documents) {
      if (document.id() != name.id()) {
        continue;
      }
      const bool is_better =
          name.has_occurrence()
              ? name.occurrence() == occurrence
              : HasWantedType(name, document) &&
                    (found == nullptr || IsBetter(name, document, *found));
      if (is_better) {
        found = &document;
      }
      ++occurrence;
    }
    if (found == nullptr && occurrence > 0 && !name.has_occurrence()) {
      return {FakeFailure(grpc::NOT_FOUND, v1::RECORD_TYPE_NOT_FOUND,
                          "no document of those types")};
    }
  }
  if (found == nullptr) {
    return {FakeFailure(grpc::NOT_FOUND, v1::DOCUMENT_NOT_FOUND,
                        "no such document")};
  }
  if (archive.withdrawn.count(found->ordinal()) != 0 ||
      found->record_type() == "withdrawn") {
    return {FakeFailure(grpc::PERMISSION_DENIED, v1::DOCUMENT_WITHDRAWN,
                        "the document is withdrawn")};
  }
  v1::ByteRange range = found->range();
  if (name.has_range()) {
    if (name.range().offset() > range.size_bytes() ||
        name.range().size_bytes() >
            range.size_bytes() - name.range().offset()) {
      return {PastEnd()};
    }
    range = MakeRange(range.offset() + name.range().offset(),
                      name.range().size_bytes());
  }
  return {grpc::Status::OK, &archive, range, found};
}

FakeServer::Service::Resolved FakeServer::Service::Resolve(
    const std::string& archive, const std::string* uuid,
    const v1::ByteRange* range, const v1::DocumentName* document) const {
  const Held* held = nullptr;
  const grpc::Status found = FindContents(archive, uuid, held);
  if (!found.ok()) {
    return {found};
  }
  if (range != nullptr) {
    return ResolveRange(*held, *range);
  }
  if (document != nullptr) {
    return ResolveDocument(*held, *document);
  }
  return {
      FakeFailure(grpc::INVALID_ARGUMENT, v1::MALFORMED_REQUEST, "no target")};
}

template <typename Answer>
void FakeServer::Service::Fill(const Resolved& resolved,
                               const Accepted& accepted, Answer& answer) {
  const FakeEncodings& encodings = *resolved.archive->encodings;
  const auto best =
      std::find_if(accepted.begin(), accepted.end(), [&](int encoding) {
        return encodings.Has(static_cast<v1::WireEncoding>(encoding));
      });
  answer.set_encoding(best == accepted.end()
                          ? v1::WIRE_ENCODING_IDENTITY
                          : static_cast<v1::WireEncoding>(*best));
  *answer.mutable_range() = resolved.range;
  if (answer.encoding() == v1::WIRE_ENCODING_IDENTITY) {
    answer.set_data(resolved.archive->text.substr(resolved.range.offset(),
                                                  resolved.range.size_bytes()));
  } else {
    answer.set_data(encodings.Encode(answer.encoding(), resolved.range,
                                     *answer.mutable_details()));
    std::function<void(v1::EncodingDetails&, std::string&)> spoil;
    {
      MutexLock lock(&mutex_);
      spoil = faults_.spoil;
    }
    if (spoil) {
      spoil(*answer.mutable_details(), *answer.mutable_data());
    }
  }
  answer.set_checksum(Checksum64(AsBytes(answer.data())));
  if (Due(&FakeFaults::wrong_checksums)) {
    answer.set_checksum(answer.checksum() ^ 1);
  }
  if (Due(&FakeFaults::wrong_ranges)) {
    answer.mutable_range()->set_offset(resolved.range.offset() + 1);
  }
  if constexpr (requires { answer.mutable_document(); }) {
    if (resolved.document != nullptr) {
      *answer.mutable_document() = *resolved.document;
      if (Due(&FakeFaults::wrong_documents)) {
        answer.mutable_document()->set_ordinal(resolved.document->ordinal() +
                                               1);
        answer.mutable_document()->set_id("another");
      }
    }
  }
}

void FakeServer::Service::EditScan(v1::ScanResponse& message) {
  std::function<void(v1::ScanResponse&)> edit;
  {
    MutexLock lock(&mutex_);
    edit = faults_.edit_scan;
  }
  if (edit) {
    edit(message);
  }
}

template void FakeServer::Service::Fill(const Resolved&, const Accepted&,
                                        v1::ReadResponse&);
template void FakeServer::Service::Fill(const Resolved&, const Accepted&,
                                        v1::ReadStreamResponse&);
template void FakeServer::Service::Fill(const Resolved&, const Accepted&,
                                        v1::BatchResult&);
template void FakeServer::Service::Fill(const Resolved&, const Accepted&,
                                        v1::ScanResponse&);

v1::Limits FakeServer::Service::Limits() const {
  v1::Limits limits;
  limits.set_read_size_bytes_max(settings_.announced_size_bytes_max.value_or(
      settings_.read_size_bytes_max));
  limits.set_chunk_size_bytes_max(settings_.announced_size_bytes_max.value_or(
      settings_.chunk_size_bytes_max));
  limits.set_batch_message_items_max(settings_.batch_message_items_max);
  limits.set_batch_pending_items_max(settings_.batch_window_items);
  limits.set_in_flight_size_bytes_max(uint64_t{1} << 30);
  limits.set_client_in_flight_size_bytes_max(uint64_t{1} << 30);
  limits.set_page_size_max(settings_.page_size_max);
  limits.set_document_id_size_bytes_max(65536);
  return limits;
}

grpc::Status FakeServer::Service::Read(grpc::ServerContext* context,
                                       const v1::ReadRequest* request,
                                       v1::ReadResponse* response) {
  const grpc::Status entered = Enter("Read", *context);
  if (!entered.ok()) {
    return entered;
  }
  const Resolved resolved = ResolveTarget(
      request->archive(),
      request->has_archive_uuid() ? &request->archive_uuid() : nullptr,
      *request);
  if (!resolved.status.ok()) {
    return resolved.status;
  }
  if (resolved.range.size_bytes() > settings_.read_size_bytes_max) {
    return FakeFailure(grpc::RESOURCE_EXHAUSTED, v1::LIMIT_EXCEEDED,
                       "too large for Read");
  }
  Fill(resolved, request->accepted_encodings(), *response);
  return grpc::Status::OK;
}

}  // namespace quire
