// SPDX-License-Identifier: Apache-2.0
#include "client/quire/client.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "grpcpp/client_context.h"

#include "client/quire/batch_reader.h"
#include "client/quire/client_status.h"
#include "client/quire/internal/answer_check.h"
#include "client/quire/internal/call_queue.h"
#include "client/quire/internal/connection.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

// The server reduces it to its limit.
constexpr uint32_t kLongPageSize = 4000;

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

namespace {

// An asynchronous Read(). The connection must outlive it.
class StartedRead final : public QueuedCall {
 public:
  StartedRead(Connection* connection, absl::string_view archive,
              ReadTarget target, const ReadOptions& options,
              Client::ReadDone done)
      : connection_(connection),
        target_(std::move(target)),
        call_(connection->StartCall(archive, EncodingChoice::kIdentity)),
        done_(std::move(done)),
        request_(MakeReadRequest(archive, options.archive_uuid, target_)) {
    call_.FillIn(request_);
    connection->Prepare(archive, context_);
  }

  void Start(CallQueue& queue) {
    reader_ = connection_->stub().AsyncRead(&context_, request_, queue.queue());
    reader_->Finish(&response_, &result_, queue.TagOf(this));
  }

  void End() override {
    const absl::Status status = StatusFromGrpc(result_);
    if (!status.ok()) {
      done_(status);
      return;
    }
    connection_->NoteAnswer();
    done_(TakeAnswer(target_, call_, response_));
  }

 private:
  Connection* const connection_;
  const ReadTarget target_;
  WireCall call_;
  const Client::ReadDone done_;
  grpc::ClientContext context_;
  v1::ReadRequest request_;
  v1::ReadResponse response_;
  grpc::Status result_;
  std::unique_ptr<grpc::ClientAsyncResponseReader<v1::ReadResponse>> reader_;
};

}  // namespace

absl::StatusOr<std::vector<v1::ArchiveDescription>> Client::ListArchives() {
  std::vector<v1::ArchiveDescription> archives;
  v1::ListArchivesRequest request;
  for (;;) {
    v1::ListArchivesResponse response;
    QUIRE_RETURN_IF_ERROR(
        connection_->Call(/*archive=*/"", [&](grpc::ClientContext& context) {
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

absl::StatusOr<v1::Limits> Client::GetLimits(absl::string_view archive) {
  return connection_->GetLimits(archive);
}

absl::StatusOr<ReadResult> Client::Read(absl::string_view archive,
                                        const ReadTarget& target,
                                        const ReadOptions& options) {
  if (const auto* span = std::get_if<ByteSpan>(&target)) {
    QUIRE_ASSIGN_OR_RETURN(const v1::Limits limits,
                           connection_->GetLimits(archive));
    if (span->size_bytes > limits.read_size_bytes_max()) {
      return ReadLarge(archive, target, options);
    }
  }
  WireCall call = connection_->StartCall(archive, options.encoding);
  if (call.may_be_encoded()) {
    QUIRE_ASSIGN_OR_RETURN(const v1::Limits limits,
                           connection_->GetLimits(archive));
    call.SetAnswerSizeMax(limits.read_size_bytes_max());
  }
  v1::ReadRequest request =
      MakeReadRequest(archive, options.archive_uuid, target);
  for (;;) {
    call.FillIn(request);
    v1::ReadResponse response;
    const absl::Status status =
        connection_->Call(archive, [&](grpc::ClientContext& context) {
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

void Client::StartRead(absl::string_view archive, ReadTarget target,
                       const ReadOptions& options, ReadDone done) {
  const absl::StatusOr<CallQueue*> queue = connection_->GetCallQueue();
  if (!queue.ok()) {
    done(queue.status());
    return;
  }
  auto started = std::make_unique<StartedRead>(
      connection_.get(), archive, std::move(target), options, std::move(done));
  started->Start(**queue);
  // The thread of the queue deletes it.
  static_cast<void>(started.release());
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
    bool has_begun = false;
    const absl::Status status = StreamUntilBegun(
        governor, archive, target,
        [&](const v1::Document& document) {
          result.document = document;
          return absl::OkStatus();
        },
        [&](uint64_t offset, ByteView data) {
          result.offset = offset - result.data.size();
          result.data.append(AsText(data).data(), data.size());
          return absl::OkStatus();
        },
        options, has_begun);
    if (status.ok()) {
      return result;
    }
    if (!has_begun) {
      return status;
    }
    QUIRE_RETURN_IF_ERROR(governor.AwaitRetry(status));
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
                                     const ListOptions& options) {
  v1::ListDocumentsRequest first;
  first.set_archive(std::string(archive));
  first.set_prefix(options.prefix);
  if (options.delimiter.has_value()) {
    first.set_delimiter(*options.delimiter);
  }
  if (options.first_ordinal.has_value()) {
    first.set_first_ordinal(*options.first_ordinal);
    // Such a listing is usually read to its end.
    first.set_page_size(kLongPageSize);
  }
  for (const std::string& name : options.fields) {
    first.add_fields(name);
  }
  if (options.filter.has_value()) {
    first.set_filter(*options.filter);
    // Few of them may match.
    first.set_page_size(kLongPageSize);
  }
  if (options.archive_uuid.has_value()) {
    first.set_archive_uuid(*options.archive_uuid);
  }
  if (options.page_size.has_value()) {
    first.set_page_size(*options.page_size);
  }
  if (!options.page_token.empty()) {
    first.set_page_token(options.page_token);
  }
  return DocumentLister(connection_, std::move(first), options.with_withdrawn);
}

DocumentLister::DocumentLister(std::shared_ptr<Connection> connection,
                               v1::ListDocumentsRequest first,
                               bool with_withdrawn)
    : connection_(std::move(connection)),
      with_withdrawn_(with_withdrawn),
      request_(std::move(first)),
      next_ordinal_(request_.first_ordinal()) {}

absl::StatusOr<std::optional<v1::Document>> DocumentLister::Next() {
  for (;;) {
    QUIRE_ASSIGN_OR_RETURN(std::optional<ListEntry> entry, NextEntry());
    if (!entry.has_value()) {
      return std::optional<v1::Document>();
    }
    if (auto* document = std::get_if<v1::Document>(&*entry)) {
      return std::optional<v1::Document>(std::move(*document));
    }
  }
}

absl::StatusOr<std::optional<ListEntry>> DocumentLister::NextEntry() {
  for (;;) {
    while (status_.ok() && !has_entry()) {
      if (last_page_) {
        return std::optional<ListEntry>();
      }
      status_ = FetchPage();
    }
    QUIRE_RETURN_IF_ERROR(status_);
    QUIRE_ASSIGN_OR_RETURN(std::optional<ListEntry> entry, TakeEntry());
    if (entry.has_value()) {
      return entry;
    }
  }
}

absl::StatusOr<std::optional<ListEntry>> DocumentLister::TakeEntry() {
  const auto has_document = [this] {
    return next_document_ < page_.documents_size();
  };
  const auto has_prefix = [this] {
    return next_prefix_ < page_.common_prefixes_size();
  };
  const bool is_document =
      has_document() &&
      !(has_prefix() && page_.common_prefixes(next_prefix_) <
                            page_.documents(next_document_).id());
  if (is_document) {
    v1::Document document =
        std::move(*page_.mutable_documents(next_document_++));
    status_ = CheckDocument(document);
    QUIRE_RETURN_IF_ERROR(status_);
    if (!with_withdrawn_ && document.record_type() == kWithdrawnRecordType) {
      ++withdrawn_count_;
      return std::optional<ListEntry>();
    }
    return std::optional<ListEntry>(std::move(document));
  }
  CommonPrefix prefix = {
      std::move(*page_.mutable_common_prefixes(next_prefix_++))};
  status_ = CheckCommonPrefix(prefix.text);
  QUIRE_RETURN_IF_ERROR(status_);
  return std::optional<ListEntry>(std::move(prefix));
}

absl::StatusOr<ListPage> DocumentLister::NextPage() {
  ListPage page;
  if (status_.ok() && !last_page_) {
    status_ = FetchPage();
  }
  QUIRE_RETURN_IF_ERROR(status_);
  const uint64_t skipped_before = withdrawn_count_;
  while (has_entry()) {
    QUIRE_ASSIGN_OR_RETURN(std::optional<ListEntry> entry, TakeEntry());
    if (entry.has_value()) {
      page.entries.push_back(*std::move(entry));
    }
  }
  page.withdrawn_count = withdrawn_count_ - skipped_before;
  if (!last_page_) {
    page.next_page_token = request_.page_token();
  }
  return page;
}

absl::Status DocumentLister::CheckDocument(const v1::Document& document) {
  const std::string& prefix = request_.prefix();
  if (document.id().compare(0, prefix.size(), prefix) != 0) {
    return absl::InternalError(
        "the server listed a document without the prefix that was asked");
  }
  if (request_.has_delimiter() &&
      document.id().find(request_.delimiter(), prefix.size()) !=
          std::string::npos) {
    return absl::InternalError(
        "the server listed a document with the delimiter, not its common "
        "prefix; does it know delimiters?");
  }
  // Documents that the operator withdrew are not listed.
  if (request_.has_first_ordinal() && document.ordinal() < next_ordinal_) {
    return absl::InternalError(absl::StrCat(
        "the server listed document number ", document.ordinal(),
        " where number ", next_ordinal_,
        " or a later one was next; does it know this kind of list?"));
  }
  next_ordinal_ = document.ordinal() + 1;
  if (document.fields_size() != request_.fields_size()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the server listed a document with ", document.fields_size(),
        " fields, expected ", request_.fields_size(),
        "; it does not know fields: ask one of a newer version"));
  }
  return absl::OkStatus();
}

absl::Status DocumentLister::CheckCommonPrefix(const std::string& prefix) {
  const std::string& delimiter = request_.delimiter();
  const size_t asked_size = request_.prefix().size();
  const size_t found = prefix.find(delimiter, asked_size);
  if (delimiter.empty() ||
      prefix.compare(0, asked_size, request_.prefix()) != 0 ||
      found == std::string::npos || found + delimiter.size() != prefix.size() ||
      prefix <= last_prefix_) {
    return absl::InternalError(
        "the server listed a common prefix that was not asked, or twice");
  }
  last_prefix_ = prefix;
  return absl::OkStatus();
}

absl::Status DocumentLister::FetchPage() {
  next_document_ = 0;
  next_prefix_ = 0;
  page_.Clear();
  QUIRE_RETURN_IF_ERROR(
      connection_->Call(request_.archive(), [&](grpc::ClientContext& context) {
        return connection_->stub().ListDocuments(&context, request_, &page_);
      }));
  if (request_.has_filter() && !page_.is_filtered()) {
    return absl::FailedPreconditionError(
        "the server did not apply the filter; it does not know filters: ask "
        "one of a newer version, or filter the list yourself");
  }
  if (!page_.has_next_page_token()) {
    last_page_ = true;
    return absl::OkStatus();
  }
  // A page may be empty, but leads on.
  if (page_.documents().empty() && page_.common_prefixes().empty() &&
      page_.next_page_token() == request_.page_token()) {
    return absl::InternalError("the server's list of documents does not end");
  }
  request_.set_page_token(page_.next_page_token());
  return absl::OkStatus();
}

}  // namespace quire
