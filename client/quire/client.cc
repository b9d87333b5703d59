// SPDX-License-Identifier: Apache-2.0
#include "client/quire/client.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpcpp/client_context.h"

#include "client/quire/batch_reader.h"
#include "client/quire/client_status.h"
#include "client/quire/internal/answer_check.h"
#include "client/quire/internal/connection.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

constexpr uint32_t kLongPageSize = 1000;

bool IsOverLimit(const absl::Status& status) {
  return absl::IsResourceExhausted(status) &&
         ErrorReasonOf(status) == v1::ErrorReason_Name(v1::LIMIT_EXCEEDED);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(ClientOptions options) {
  QUIRE_ASSIGN_OR_RETURN(std::shared_ptr<Connection> connection,
                         Connection::Open(std::move(options)));
  return std::unique_ptr<Client>(new Client(std::move(connection)));
}

Client::Client(std::shared_ptr<Connection> connection)
    : connection_(std::move(connection)) {}

Client::~Client() = default;

absl::StatusOr<std::vector<v1::ArchiveDescription>> Client::ListArchives() {
  std::vector<v1::ArchiveDescription> archives;
  v1::ListArchivesRequest request;
  for (;;) {
    v1::ListArchivesResponse response;
    QUIRE_RETURN_IF_ERROR(connection_->Call([&](grpc::ClientContext& context) {
      return connection_->stub().ListArchives(&context, request, &response);
    }));
    QUIRE_RETURN_IF_ERROR(connection_->StoreLimits(response.limits()));
    for (v1::ArchiveDescription& archive : *response.mutable_archives()) {
      archives.push_back(std::move(archive));
    }
    if (!response.has_next_page_token()) {
      return archives;
    }
    if (response.archives().empty()) {
      return absl::InternalError("the server's list of archives does not end");
    }
    request.set_page_token(response.next_page_token());
  }
}

absl::StatusOr<v1::ArchiveDescription> Client::GetArchive(
    absl::string_view archive) {
  return connection_->GetArchive(archive);
}

absl::StatusOr<v1::Limits> Client::GetLimits() {
  return connection_->GetLimits();
}

absl::StatusOr<ReadResult> Client::Read(absl::string_view archive,
                                        const ReadTarget& target,
                                        const ReadOptions& options) {
  if (const auto* span = std::get_if<ByteSpan>(&target)) {
    QUIRE_ASSIGN_OR_RETURN(const v1::Limits limits, connection_->GetLimits());
    if (span->size_bytes > limits.read_size_bytes_max()) {
      return ReadLarge(archive, target, options);
    }
  }
  WireCall call = connection_->StartCall(archive, options.encoding);
  if (call.may_be_encoded()) {
    QUIRE_ASSIGN_OR_RETURN(const v1::Limits limits, connection_->GetLimits());
    call.SetAnswerSizeMax(limits.read_size_bytes_max());
  }
  v1::ReadRequest request = MakeReadRequest(archive, target);
  for (;;) {
    call.FillIn(request);
    v1::ReadResponse response;
    const absl::Status status =
        connection_->Call([&](grpc::ClientContext& context) {
          return connection_->stub().Read(&context, request, &response);
        });
    // Only the server knows the size of a document in advance.
    if (IsOverLimit(status)) {
      return ReadLarge(archive, target, options);
    }
    QUIRE_RETURN_IF_ERROR(status);
    absl::StatusOr<ReadResult> result = TakeAnswer(target, call, response);
    if (!call.MayFallBack(result.status())) {
      return result;
    }
    call.FallBack();
  }
}

absl::StatusOr<ReadResult> Client::ReadDocument(absl::string_view archive,
                                                const DocumentKey& key,
                                                const ReadOptions& options) {
  return Read(archive, key, options);
}

// A broken stream is restarted from the beginning: the archive may have been
// replaced, and halves of both would be wrong.
absl::StatusOr<ReadResult> Client::ReadLarge(absl::string_view archive,
                                             const ReadTarget& target,
                                             const ReadOptions& options) {
  RetryGovernor governor(*connection_);
  for (;;) {
    ReadResult result;
    const absl::Status status = ReadStream(
        archive, target,
        [&](const v1::Document& document) {
          result.document = document;
          return absl::OkStatus();
        },
        [&](uint64_t offset, ByteView data) {
          result.offset = offset - result.data.size();
          result.data.append(AsText(data).data(), data.size());
          return absl::OkStatus();
        },
        options);
    if (status.ok()) {
      return result;
    }
    const std::optional<absl::Duration> delay = governor.DelayAfter(status);
    if (!delay.has_value()) {
      return status;
    }
    absl::SleepFor(*delay);
  }
}

WireStats Client::GetWireStats() const {
  return connection_->wire().Stats();
}

std::unique_ptr<BatchReader> Client::StartBatch(absl::string_view archive,
                                                const BatchOptions& options) {
  return std::make_unique<BatchReader>(connection_, std::string(archive),
                                       options);
}

absl::Status Client::ReadBatch(
    absl::string_view archive, std::vector<ReadTarget> items,
    absl::FunctionRef<absl::Status(BatchAnswer)> on_answer) {
  const std::unique_ptr<BatchReader> batch = StartBatch(archive, {});
  std::vector<BatchReader::Item> tagged;
  tagged.reserve(items.size());
  for (ReadTarget& target : items) {
    tagged.push_back({.tag = tagged.size(), .target = std::move(target)});
  }
  batch->AddAll(std::move(tagged));
  batch->CloseAdds();
  while (std::optional<BatchAnswer> answer = batch->Next()) {
    QUIRE_RETURN_IF_ERROR(on_answer(*std::move(answer)));
  }
  return absl::OkStatus();
}

DocumentLister Client::ListDocuments(absl::string_view archive,
                                     absl::string_view prefix) {
  v1::ListDocumentsRequest first;
  first.set_archive(std::string(archive));
  first.set_prefix(std::string(prefix));
  return DocumentLister(connection_, std::move(first));
}

DocumentLister Client::ListDocumentsFrom(absl::string_view archive,
                                         uint64_t first_ordinal) {
  v1::ListDocumentsRequest first;
  first.set_archive(std::string(archive));
  first.set_first_ordinal(first_ordinal);
  // Asks for all; the server reduces it to its limit.
  first.set_page_size(kLongPageSize);
  return DocumentLister(connection_, std::move(first));
}

DocumentLister::DocumentLister(std::shared_ptr<Connection> connection,
                               v1::ListDocumentsRequest first)
    : connection_(std::move(connection)),
      request_(std::move(first)),
      next_ordinal_(request_.first_ordinal()) {}

absl::StatusOr<std::optional<v1::Document>> DocumentLister::Next() {
  while (status_.ok() && next_index_ == page_.documents_size()) {
    if (last_page_) {
      return std::optional<v1::Document>();
    }
    status_ = FetchPage();
  }
  QUIRE_RETURN_IF_ERROR(status_);
  v1::Document document = std::move(*page_.mutable_documents(next_index_++));
  const std::string& prefix = request_.prefix();
  if (document.id().compare(0, prefix.size(), prefix) != 0) {
    status_ = absl::InternalError(
        "the server listed a document without the prefix that was asked");
    return status_;
  }
  if (request_.has_first_ordinal() && document.ordinal() != next_ordinal_++) {
    status_ = absl::InternalError(
        absl::StrCat("the server listed document number ", document.ordinal(),
                     " where number ", next_ordinal_ - 1,
                     " was next; does it know this kind of list?"));
    return status_;
  }
  return std::optional<v1::Document>(std::move(document));
}

absl::Status DocumentLister::FetchPage() {
  next_index_ = 0;
  page_.Clear();
  QUIRE_RETURN_IF_ERROR(connection_->Call([&](grpc::ClientContext& context) {
    return connection_->stub().ListDocuments(&context, request_, &page_);
  }));
  if (!page_.has_next_page_token()) {
    last_page_ = true;
    return absl::OkStatus();
  }
  if (page_.documents().empty()) {
    return absl::InternalError("the server's list of documents does not end");
  }
  request_.set_page_token(page_.next_page_token());
  return absl::OkStatus();
}

}  // namespace quire
