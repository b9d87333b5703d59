// SPDX-License-Identifier: Apache-2.0
//
// The streaming calls of FakeServer.
#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "proto/error_details.h"

#include "client/quire/testing/fake_service.h"
#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"

namespace quire {
namespace {

grpc::Status Broken() {
  return grpc::Status(grpc::UNAVAILABLE, "the stream broke");
}

grpc::Status NoDictionary() {
  return FakeFailure(grpc::NOT_FOUND, v1::DICTIONARY_NOT_FOUND,
                     "no such dictionary");
}

}  // namespace

grpc::Status FakeServer::Service::ReadStream(
    grpc::ServerContext* context, const v1::ReadRequest* request,
    grpc::ServerWriter<v1::ReadStreamResponse>* writer) {
  const grpc::Status entered = Enter("ReadStream", *context);
  if (!entered.ok()) {
    return entered;
  }
  Resolved rest = ResolveTarget(
      request->archive(),
      request->has_archive_uuid() ? &request->archive_uuid() : nullptr,
      *request);
  if (!rest.status.ok()) {
    return rest.status;
  }
  uint64_t left_size_bytes = rest.range.size_bytes();
  for (int message_count = 0;; ++message_count) {
    const StreamFate fate = FateAfter(message_count);
    if (fate != StreamFate::kGoOn) {
      return fate == StreamFate::kBreak ? Broken() : grpc::Status::OK;
    }
    rest.range.set_size_bytes(
        std::min(left_size_bytes, settings_.chunk_size_bytes_max));
    v1::ReadStreamResponse response;
    Fill(rest, request->accepted_encodings(), response);
    if (!writer->Write(response)) {
      return grpc::Status::CANCELLED;
    }
    rest.document = nullptr;
    rest.range.set_offset(rest.range.offset() + rest.range.size_bytes());
    left_size_bytes -= rest.range.size_bytes();
    if (left_size_bytes == 0) {
      return grpc::Status::OK;
    }
  }
}

grpc::Status FakeServer::Service::Scan(
    grpc::ServerContext* context, const v1::ScanRequest* request,
    grpc::ServerWriter<v1::ScanResponse>* writer) {
  const grpc::Status entered = Enter("Scan", *context);
  if (!entered.ok()) {
    return entered;
  }
  const Held* held = nullptr;
  const grpc::Status found = FindContents(*request, held);
  if (!found.ok()) {
    return found;
  }
  uint64_t offset = request->offset();
  uint64_t end = held->text.size();
  if (request->has_size_bytes()) {
    end = offset + request->size_bytes();
  }
  if (!request->resume_token().empty()) {
    if (Due(&FakeFaults::refused_resumes)) {
      return FakeFailure(grpc::FAILED_PRECONDITION, v1::DOCUMENT_WITHDRAWN,
                         "scan again");
    }
    const std::vector<std::string> parts =
        absl::StrSplit(request->resume_token(), '/');
    if (request->has_size_bytes() || parts.size() != 3 ||
        !absl::SimpleAtoi(parts[1], &offset) ||
        !absl::SimpleAtoi(parts[2], &end)) {
      return grpc::Status(grpc::INVALID_ARGUMENT, "resume_token");
    }
    if (parts[0] != held->description.uuid()) {
      return FakeFailure(grpc::FAILED_PRECONDITION, v1::ARCHIVE_STATE_UNKNOWN,
                         "a resume_token of other contents");
    }
  }
  if (offset > held->text.size() || end > held->text.size()) {
    return grpc::Status(grpc::OUT_OF_RANGE, "past the end");
  }
  for (int message_count = 0; offset < end; ++message_count) {
    const StreamFate fate = FateAfter(message_count);
    if (fate != StreamFate::kGoOn) {
      return fate == StreamFate::kBreak ? Broken() : grpc::Status::OK;
    }
    Resolved piece{grpc::Status::OK, held, {}, nullptr};
    piece.range.set_offset(offset);
    piece.range.set_size_bytes(
        std::min(end - offset, settings_.chunk_size_bytes_max));
    offset += piece.range.size_bytes();
    v1::ScanResponse response;
    Fill(piece, request->accepted_encodings(), response);
    response.set_resume_token(
        absl::StrCat(held->description.uuid(), "/", offset, "/", end));
    EditScan(response);
    if (!writer->Write(response)) {
      return grpc::Status::CANCELLED;
    }
  }
  return grpc::Status::OK;
}

grpc::Status FakeServer::Service::GetDictionary(
    grpc::ServerContext* context, const v1::GetDictionaryRequest* request,
    grpc::ServerWriter<v1::GetDictionaryResponse>* writer) {
  const grpc::Status entered = Enter("GetDictionary", *context);
  if (!entered.ok()) {
    return entered;
  }
  if (Due(&FakeFaults::withheld_tables)) {
    return FakeFailure(grpc::PERMISSION_DENIED, v1::DOCUMENT_WITHDRAWN,
                       "withheld");
  }
  if (Due(&FakeFaults::missing_tables)) {
    return NoDictionary();
  }
  const bool is_wrong = Due(&FakeFaults::wrong_tables);
  for (const auto& [name, held] : archives()) {
    if (!held.description.has_dictionary_hash() ||
        held.description.dictionary_hash() != request->hash()) {
      continue;
    }
    uint64_t offset = request->offset();
    for (int message_count = 0; offset < held.dictionary.size();
         ++message_count) {
      const StreamFate fate = FateAfter(message_count);
      if (fate != StreamFate::kGoOn) {
        return fate == StreamFate::kBreak ? Broken() : grpc::Status::OK;
      }
      v1::GetDictionaryResponse response;
      response.set_size_bytes(held.dictionary.size());
      response.set_offset(offset);
      response.set_data(
          held.dictionary.substr(offset, settings_.chunk_size_bytes_max));
      if (is_wrong) {
        response.mutable_data()->back() ^= 1;
      }
      response.set_checksum(Checksum64(AsBytes(
          absl::string_view(response.data().data(), response.data().size()))));
      offset += response.data().size();
      if (!writer->Write(response)) {
        return grpc::Status::CANCELLED;
      }
    }
    return grpc::Status::OK;
  }
  return NoDictionary();
}

v1::BatchResult FakeServer::Service::AnswerItem(const std::string& archive,
                                                const Accepted& accepted,
                                                const v1::BatchItem& item) {
  v1::BatchResult result;
  result.set_tag(item.tag());
  const Resolved resolved = ResolveTarget(archive, nullptr, item);
  if (!resolved.status.ok()) {
    result.mutable_status()->set_code(resolved.status.error_code());
    const std::string details = resolved.status.error_details();
    const std::optional<ErrorDetails> parsed = ParseErrorDetails(details);
    v1::ErrorReason reason = v1::RANGE_PAST_END;
    if (parsed.has_value()) {
      v1::ErrorReason_Parse(parsed->reason, &reason);
    }
    result.mutable_status()->set_reason(reason);
    result.mutable_status()->set_message(resolved.status.error_message());
  } else if (resolved.range.size_bytes() > settings_.read_size_bytes_max) {
    result.mutable_status()->set_code(grpc::RESOURCE_EXHAUSTED);
    result.mutable_status()->set_reason(v1::LIMIT_EXCEEDED);
    result.mutable_status()->set_message("too large for one answer");
  } else {
    Fill(resolved, accepted, result);
  }
  if (Due(&FakeFaults::unknown_tags)) {
    result.set_tag(~uint64_t{0});
  }
  return result;
}

grpc::Status FakeServer::Service::BatchRead(
    grpc::ServerContext* context,
    grpc::ServerReaderWriter<v1::BatchReadResponse, v1::BatchReadRequest>*
        stream) {
  const grpc::Status entered = Enter("BatchRead", *context);
  if (!entered.ok()) {
    return entered;
  }
  std::mt19937_64 random(settings_.seed);
  std::string archive;
  std::optional<std::string> uuid;
  Accepted accepted;
  std::vector<v1::BatchItem> pending;
  int message_count = 0;
  // Sends all pending answers, in any order; nothing is read meanwhile.
  const auto answer_all = [&]() -> grpc::Status {
    std::shuffle(pending.begin(), pending.end(), random);
    for (size_t next = 0; next < pending.size(); ++message_count) {
      const StreamFate fate = FateAfter(message_count);
      if (fate != StreamFate::kGoOn) {
        return fate == StreamFate::kBreak
                   ? Broken()
                   : grpc::Status(grpc::StatusCode::OK, "ended early");
      }
      v1::BatchReadResponse response;
      for (; next < pending.size() && response.results_size() < 7; ++next) {
        *response.add_results() = AnswerItem(archive, accepted, pending[next]);
        if (Due(&FakeFaults::repeated_results)) {
          *response.add_results() =
              AnswerItem(archive, accepted, pending[next]);
        }
      }
      if (!stream->Write(response)) {
        return grpc::Status::CANCELLED;
      }
    }
    pending.clear();
    return grpc::Status::OK;
  };
  v1::BatchReadRequest request;
  while (stream->Read(&request)) {
    {
      MutexLock lock(&mutex_);
      largest_batch_message_ =
          std::max(largest_batch_message_, request.items_size());
    }
    if (request.has_archive()) {
      archive = request.archive();
      if (request.has_archive_uuid()) {
        uuid = request.archive_uuid();
      }
      accepted = request.accepted_encodings();
    }
    const Held* held = nullptr;
    const grpc::Status found =
        FindContents(archive, uuid.has_value() ? &*uuid : nullptr, held);
    if (!found.ok()) {
      return found;
    }
    pending.insert(pending.end(), request.items().begin(),
                   request.items().end());
    if (pending.size() >= settings_.batch_window_items) {
      const grpc::Status status = answer_all();
      if (!status.ok() || !pending.empty()) {
        return status;
      }
    }
  }
  return answer_all();
}

}  // namespace quire
