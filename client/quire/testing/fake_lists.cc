// SPDX-License-Identifier: Apache-2.0
//
// Calls of FakeServer that describe archives and list documents.
#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "proto/error_details.h"

#include "client/quire/document_fields.h"
#include "client/quire/testing/fake_service.h"
#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"

namespace quire {

grpc::Status FakeFailure(grpc::StatusCode code, v1::ErrorReason reason,
                         const std::string& message,
                         std::optional<absl::Duration> retry_delay) {
  ErrorDetails details;
  details.reason = v1::ErrorReason_Name(reason);
  details.retry_delay = retry_delay;
  return grpc::Status(code, message,
                      SerializeErrorDetails(static_cast<absl::StatusCode>(code),
                                            message, details));
}

grpc::Status FakeServer::Service::ListArchives(
    grpc::ServerContext* context, const v1::ListArchivesRequest* request,
    v1::ListArchivesResponse* response) {
  const grpc::Status entered = Enter("ListArchives", *context);
  if (!entered.ok()) {
    return entered;
  }
  *response->mutable_limits() = Limits();
  const uint32_t page_size =
      std::min(request->has_page_size() ? request->page_size() : 1000,
               settings_.page_size_max);
  const HeldArchives& all = archives();
  auto next = all.lower_bound(request->page_token());
  while (next != all.end() &&
         static_cast<uint32_t>(response->archives_size()) < page_size) {
    *response->add_archives() = next->second.description;
    ++next;
  }
  if (next != all.end()) {
    response->set_next_page_token(next->first);
  }
  return grpc::Status::OK;
}

grpc::Status FakeServer::Service::GetArchive(
    grpc::ServerContext* context, const v1::GetArchiveRequest* request,
    v1::GetArchiveResponse* response) {
  const grpc::Status entered = Enter("GetArchive", *context);
  if (!entered.ok()) {
    return entered;
  }
  const Held* held = Find(request->archive());
  if (held == nullptr) {
    return FakeFailure(grpc::NOT_FOUND, v1::ARCHIVE_NOT_FOUND,
                       absl::StrCat("no archive '", request->archive(), "'"));
  }
  *response->mutable_archive() = held->description;
  {
    MutexLock lock(&mutex_);
    if (faults_.knows_no_fields) {
      response->mutable_archive()->clear_fields();
    }
  }
  *response->mutable_limits() = Limits();
  return grpc::Status::OK;
}

grpc::Status FakeServer::Service::GetSymbolTable(
    grpc::ServerContext* context, const v1::GetSymbolTableRequest* request,
    v1::GetSymbolTableResponse* response) {
  const grpc::Status entered = Enter("GetSymbolTable", *context);
  if (!entered.ok()) {
    return entered;
  }
  if (Due(&FakeFaults::withheld_tables)) {
    return FakeFailure(grpc::PERMISSION_DENIED, v1::DOCUMENT_WITHDRAWN,
                       "withheld");
  }
  if (!Due(&FakeFaults::missing_tables)) {
    for (const auto& [name, held] : archives()) {
      if (held.description.has_symbol_table_hash() &&
          held.description.symbol_table_hash() == request->hash()) {
        response->set_table(held.encodings->symbol_table());
        if (Due(&FakeFaults::wrong_tables)) {
          response->mutable_table()->back() ^= 1;
        }
        response->set_checksum(Checksum64(AsBytes(response->table())));
        return grpc::Status::OK;
      }
    }
  }
  return FakeFailure(grpc::NOT_FOUND, v1::SYMBOL_TABLE_NOT_FOUND,
                     "no such table");
}

grpc::Status FakeServer::Service::ApplyFields(
    const v1::ListDocumentsRequest& request, const Held& held,
    v1::ListDocumentsResponse& response) const {
  std::vector<std::string> names;
  for (const FieldColumn& column : ColumnsOf(held.description)) {
    names.push_back(column.name);
  }
  std::vector<size_t> wanted;
  for (const std::string& name : request.fields()) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      return FakeFailure(grpc::INVALID_ARGUMENT, v1::FIELD_NOT_FOUND,
                         absl::StrCat("no field ", name));
    }
    wanted.push_back(static_cast<size_t>(found - names.begin()));
  }
  std::optional<DocumentMatcher> matcher;
  if (request.has_filter()) {
    absl::StatusOr<Filter> filter = Filter::Parse(request.filter());
    const absl::Status status = filter.ok()
                                    ? filter->Check(ColumnsOf(held.description))
                                    : filter.status();
    if (!status.ok()) {
      return FakeFailure(grpc::INVALID_ARGUMENT,
                         absl::IsNotFound(status) ? v1::FIELD_NOT_FOUND
                                                  : v1::MALFORMED_REQUEST,
                         std::string(status.message()));
    }
    matcher.emplace(*std::move(filter), names);
    response.set_is_filtered(true);
  }
  v1::ListDocumentsResponse kept;
  for (const v1::Document& listed : response.documents()) {
    v1::Document document = listed;
    const auto& values = held.fields[document.ordinal()];
    document.mutable_fields()->Assign(values.begin(), values.end());
    if (matcher.has_value() && !matcher->Matches(document)) {
      continue;
    }
    v1::Document& answer = *kept.add_documents();
    answer = listed;
    for (const size_t index : wanted) {
      *answer.add_fields() = values[index];
    }
  }
  response.mutable_documents()->Swap(kept.mutable_documents());
  return grpc::Status::OK;
}

grpc::Status FakeServer::Service::ListDocuments(
    grpc::ServerContext* context, const v1::ListDocumentsRequest* request,
    v1::ListDocumentsResponse* response) {
  const grpc::Status entered = Enter("ListDocuments", *context);
  if (!entered.ok()) {
    return entered;
  }
  const Held* held = nullptr;
  const grpc::Status found = FindContents(*request, held);
  if (!found.ok()) {
    return found;
  }
  size_t listed_count = held->documents.size();
  {
    MutexLock lock(&mutex_);
    listed_count -= std::min(listed_count, faults_.unlisted_documents);
  }
  // The documents of each entry; those with a common prefix are one entry.
  std::vector<std::pair<std::string, const v1::Document*>> entries;
  for (size_t i = request->first_ordinal(); i < listed_count; ++i) {
    if (held->withdrawn.count(i) != 0) {
      continue;
    }
    const v1::Document& document = held->documents[i];
    const std::string& id = document.id();
    const size_t prefix_size = request->prefix().size();
    if (id.compare(0, prefix_size, request->prefix()) != 0) {
      continue;
    }
    const size_t delimiter = request->has_delimiter()
                                 ? id.find(request->delimiter(), prefix_size)
                                 : std::string::npos;
    if (delimiter == std::string::npos) {
      entries.emplace_back(id, &document);
      continue;
    }
    const std::pair<std::string, const v1::Document*> common = {
        id.substr(0, delimiter + request->delimiter().size()), nullptr};
    if (std::find(entries.begin(), entries.end(), common) == entries.end()) {
      entries.push_back(common);
    }
  }
  if (!request->has_first_ordinal()) {
    std::stable_sort(
        entries.begin(), entries.end(),
        [](const auto& a, const auto& b) { return a.first < b.first; });
  }
  size_t next = 0;
  if (request->has_page_token()) {
    const std::vector<std::string> parts =
        absl::StrSplit(request->page_token(), '/');
    if (parts.size() != 2 || !absl::SimpleAtoi(parts[1], &next)) {
      return FakeFailure(grpc::INVALID_ARGUMENT, v1::MALFORMED_REQUEST,
                         "page_token");
    }
    if (parts[0] != held->description.uuid()) {
      return FakeFailure(grpc::FAILED_PRECONDITION, v1::ARCHIVE_STATE_UNKNOWN,
                         "a page_token of other contents");
    }
  }
  const size_t end =
      std::min<size_t>(entries.size(), next + settings_.page_size_max);
  for (; next < end; ++next) {
    if (entries[next].second != nullptr) {
      *response->add_documents() = *entries[next].second;
    } else {
      response->add_common_prefixes(entries[next].first);
    }
  }
  if (next < entries.size()) {
    response->set_next_page_token(
        absl::StrCat(held->description.uuid(), "/", next));
  }
  std::function<void(v1::ListDocumentsResponse&)> edit;
  bool knows_no_fields = false;
  {
    MutexLock lock(&mutex_);
    edit = faults_.edit_list;
    knows_no_fields = faults_.knows_no_fields;
  }
  if (!knows_no_fields) {
    const grpc::Status applied = ApplyFields(*request, *held, *response);
    if (!applied.ok()) {
      return applied;
    }
  }
  if (edit) {
    edit(*response);
  }
  return grpc::Status::OK;
}

grpc::Status FakeServer::Service::ListCaptures(
    grpc::ServerContext* context, const v1::ListCapturesRequest* request,
    v1::ListCapturesResponse* response) {
  const grpc::Status entered = Enter("ListCaptures", *context);
  if (!entered.ok()) {
    return entered;
  }
  decltype(faults_.list_captures) answer;
  {
    MutexLock lock(&mutex_);
    answer = faults_.list_captures;
  }
  if (const Held* const held = Find(request->archive()); held != nullptr) {
    response->set_archive_uuid(held->description.uuid());
  }
  return answer ? answer(*request, *response)
                : grpc::Status(grpc::UNIMPLEMENTED, "no such call");
}

}  // namespace quire
