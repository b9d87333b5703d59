// SPDX-License-Identifier: Apache-2.0
//
// Calls of FakeServer that describe archives and list documents.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "proto/error_details.h"

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
  if (!Due(&FakeFaults::missing_tables)) {
    for (const auto& [name, held] : archives()) {
      if (held.description.has_symbol_table_hash() &&
          held.description.symbol_table_hash() == request->hash()) {
        response->set_table(held.encodings->symbol_table());
        if (Due(&FakeFaults::wrong_tables)) {
          response->mutable_table()->back() ^= 1;
        }
        response->set_checksum(Checksum64(
            AsBytes({response->table().data(), response->table().size()})));
        return grpc::Status::OK;
      }
    }
  }
  return FakeFailure(grpc::NOT_FOUND, v1::SYMBOL_TABLE_NOT_FOUND,
                     "no such table");
}

grpc::Status FakeServer::Service::ListDocuments(
    grpc::ServerContext* context, const v1::ListDocumentsRequest* request,
    v1::ListDocumentsResponse* response) {
  const grpc::Status entered = Enter("ListDocuments", *context);
  if (!entered.ok()) {
    return entered;
  }
  const Held* held = Find(request->archive());
  if (held == nullptr) {
    return FakeFailure(grpc::NOT_FOUND, v1::ARCHIVE_NOT_FOUND,
                       "no such archive");
  }
  std::vector<const v1::Document*> matches;
  size_t listed_count = held->documents.size();
  {
    MutexLock lock(&mutex_);
    listed_count -= std::min(listed_count, faults_.unlisted_documents);
  }
  for (size_t i = 0; i < listed_count; ++i) {
    const v1::Document& document = held->documents[i];
    if (document.id().compare(0, request->prefix().size(), request->prefix()) ==
        0) {
      matches.push_back(&document);
    }
  }
  if (!request->has_first_ordinal()) {
    std::stable_sort(matches.begin(), matches.end(),
                     [](const v1::Document* a, const v1::Document* b) {
                       return a->id() < b->id();
                     });
  }
  size_t next = std::min<size_t>(matches.size(), request->first_ordinal());
  if (request->has_page_token() &&
      !absl::SimpleAtoi(request->page_token(), &next)) {
    return FakeFailure(grpc::INVALID_ARGUMENT, v1::MALFORMED_REQUEST,
                       "page_token");
  }
  const size_t end =
      std::min<size_t>(matches.size(), next + settings_.page_size_max);
  for (; next < end; ++next) {
    *response->add_documents() = *matches[next];
  }
  if (next < matches.size()) {
    response->set_next_page_token(absl::StrCat(next));
  }
  return grpc::Status::OK;
}

}  // namespace quire
