// SPDX-License-Identifier: Apache-2.0
#include "client/http/archive_reads.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/memory/memory.h"

#include "client/http/worker_pool.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

thread_local const CallHeaders* current_headers = nullptr;

// Contents of an archive, and the headers of calls that read them.
struct Source {
  Client* client = nullptr;
  std::string archive = {};
  std::string uuid = {};
  CallHeaders headers = {};

  absl::StatusOr<ReadResult> Read(const ReadTarget& target) const {
    const ScopedCallHeaders scope(headers);
    return client->Read(archive, target, {.archive_uuid = uuid});
  }
};

// `uuid` may be empty.
ReadOptions OptionsOf(const std::string& uuid) {
  return {.archive_uuid = uuid.empty() ? std::nullopt : std::optional(uuid)};
}

// Part of a document.
class DocumentPart final : public ByteStore {
 public:
  DocumentPart(Source source, uint64_t ordinal, const ByteSpan& part)
      : source_(std::move(source)), ordinal_(ordinal), part_(part) {}

  uint64_t size_bytes() const override { return part_.size_bytes; }

  absl::StatusOr<std::string> Read(uint64_t offset,
                                   size_t size_bytes) override {
    // By its name: as a range, a document that is withdrawn meanwhile would
    // continue with zeros.
    DocumentKey key = DocumentKey::Ordinal(ordinal_);
    key.part =
        ByteSpan{part_.offset + offset,
                 std::min<uint64_t>(part_.size_bytes - offset, size_bytes)};
    QUIRE_ASSIGN_OR_RETURN(ReadResult result, source_.Read(key));
    return std::move(result.data);
  }

 private:
  const Source source_;
  const uint64_t ordinal_;
  const ByteSpan part_;
};

class LogicalSpace final : public ByteStore {
 public:
  LogicalSpace(Source source, uint64_t size_bytes, uint64_t zeros_hash)
      : source_(std::move(source)),
        size_bytes_(size_bytes),
        zeros_hash_(zeros_hash) {}

  uint64_t size_bytes() const override { return size_bytes_; }

  absl::StatusOr<std::string> Read(uint64_t offset,
                                   size_t size_bytes) override {
    QUIRE_ASSIGN_OR_RETURN(
        ReadResult result,
        source_.Read(ByteSpan{
            offset, std::min<uint64_t>(size_bytes_ - offset, size_bytes)}));
    if (result.zeros_hash != zeros_hash_) {
      return absl::AbortedError(
          "documents of the archive were withdrawn meanwhile; try again");
    }
    return std::move(result.data);
  }

 private:
  const Source source_;
  const uint64_t size_bytes_;
  const uint64_t zeros_hash_;
};

// A deposited file, whose digest must stay.
class DepositedBytes final : public ByteStore {
 public:
  DepositedBytes(Source source, v1::DepositedFile file)
      : source_(std::move(source)), file_(std::move(file)) {}

  uint64_t size_bytes() const override { return file_.size_bytes(); }

  absl::StatusOr<std::string> Read(uint64_t offset,
                                   size_t size_bytes) override {
    const ScopedCallHeaders scope(source_.headers);
    std::string bytes;
    QUIRE_RETURN_IF_ERROR(source_.client->ReadFile(
        source_.archive, file_.path(),
        ByteSpan{offset,
                 std::min<uint64_t>(file_.size_bytes() - offset, size_bytes)},
        [this](const v1::DepositedFile& file) {
          return file.sha256() == file_.sha256()
                     ? absl::OkStatus()
                     : absl::AbortedError(
                           "the file was replaced meanwhile; try again");
        },
        [&bytes](uint64_t, ByteView piece) {
          bytes.append(AsText(piece).data(), piece.size());
          return absl::OkStatus();
        },
        OptionsOf(source_.uuid)));
    return bytes;
  }

 private:
  const Source source_;
  const v1::DepositedFile file_;
};

}  // namespace

absl::Status OutdatedState() {
  return absl::AbortedError(
      "the archive was replaced or has grown meanwhile; try again");
}

DocumentKey KeyOf(const RequestTarget& target) {
  DocumentKey key = target.ordinal.has_value()
                        ? DocumentKey::Ordinal(*target.ordinal)
                        : DocumentKey::Id(target.id);
  key.occurrence = target.occurrence;
  key.record_types = target.record_types;
  key.at_time_ms = target.at_time_ms;
  return key;
}

ScopedCallHeaders::ScopedCallHeaders(const CallHeaders& headers)
    : outer_(std::exchange(current_headers, &headers)) {}

ScopedCallHeaders::~ScopedCallHeaders() {
  current_headers = outer_;
}

absl::StatusOr<std::unique_ptr<ArchiveReads>> ArchiveReads::Connect(
    ClientOptions options) {
  options.trace_parent = [] {
    return current_headers != nullptr ? current_headers->trace_parent
                                      : std::string();
  };
  // Probes do not wait.
  options.told_wait = [](absl::Duration delay) {
    return current_headers != nullptr && WorkerPool::WaitOnThread(delay);
  };
  const bool forwards_tokens = options.security.token_file.empty() &&
                               CanCarryToken(options.address, options.security);
  if (forwards_tokens) {
    options.authorization = [] {
      return current_headers != nullptr ? current_headers->authorization
                                        : std::string();
    };
  }
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<Client> client,
                         Client::Connect(std::move(options)));
  return absl::WrapUnique(new ArchiveReads(std::move(client), forwards_tokens));
}

absl::StatusOr<ReadResult> ArchiveReads::Read(const std::string& archive,
                                              const KnownState& state,
                                              const ReadTarget& part) {
  if (state.is_named) {
    return client_->Read(archive, part, {.archive_uuid = state.uuid});
  }
  absl::StatusOr<ReadResult> result = client_->Read(archive, part);
  if (result.ok() && result->archive_uuid != state.uuid) {
    return OutdatedState();
  }
  return result;
}

absl::StatusOr<ReadResult> ArchiveReads::CheckAccess(const std::string& archive,
                                                     const KnownState& state) {
  return Read(archive, state, ByteSpan{});
}

std::shared_ptr<ByteStore> ArchiveReads::DocumentBytes(
    const HttpRequest& request, const KnownState& state, uint64_t ordinal,
    const ByteSpan& part) {
  return std::make_shared<DocumentPart>(
      Source{client_.get(), request.target.archive, state.uuid,
             request.headers},
      ordinal, part);
}

absl::StatusOr<v1::DepositedFile> ArchiveReads::DescribeDeposit(
    const RequestTarget& target) {
  return client_->DescribeFile(target.archive, target.id,
                               OptionsOf(target.uuid));
}

std::shared_ptr<ByteStore> ArchiveReads::DepositBytes(
    const HttpRequest& request, v1::DepositedFile file) {
  return std::make_shared<DepositedBytes>(
      Source{client_.get(), request.target.archive, request.target.uuid,
             request.headers},
      std::move(file));
}

std::shared_ptr<ByteStore> ArchiveReads::SpaceBytes(const HttpRequest& request,
                                                    const std::string& archive,
                                                    const KnownState& state,
                                                    uint64_t zeros_hash) {
  return std::make_shared<LogicalSpace>(
      Source{client_.get(), archive, state.uuid, request.headers},
      state.size_bytes, zeros_hash);
}

}  // namespace quire
