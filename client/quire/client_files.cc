// SPDX-License-Identifier: Apache-2.0
//
// Calls of Client for deposited files.
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "proto/quire/v1/archive.grpc.pb.h"

#include "client/quire/client.h"
#include "client/quire/internal/connection.h"
#include "client/quire/internal/stream_call.h"
#include "codecs/base/checksum.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

// The bytes of a file that are still to come.
class FileFollower {
 public:
  FileFollower(std::optional<ByteSpan> part, DepositedFileSink on_file,
               ByteSink sink)
      : part_(part), on_file_(on_file), sink_(sink) {}

  // Begins a stream that continues after the bytes taken.
  void FillIn(v1::ReadFileRequest& request) {
    is_described_ = false;
    if (part_.has_value()) {
      request.mutable_range()->set_offset(part_->offset);
      request.mutable_range()->set_size_bytes(part_->size_bytes);
    }
  }

  absl::Status Take(const v1::ReadFileResponse& message) {
    if (!std::exchange(is_described_, true)) {
      QUIRE_RETURN_IF_ERROR(TakeFile(message));
    }
    if (Checksum64(AsBytes(message.data())) != message.checksum()) {
      return absl::DataLossError(
          "received bytes of the file do not match their checksum");
    }
    if (message.range().offset() != part_->offset ||
        message.range().size_bytes() != message.data().size() ||
        message.data().size() > part_->size_bytes) {
      return absl::InternalError(absl::StrCat(
          "the server sent bytes of the file at offset ",
          message.range().offset(), " where ", part_->offset, " was expected"));
    }
    if (message.data().empty()) {
      return absl::OkStatus();
    }
    const uint64_t offset = part_->offset;
    part_->offset += message.data().size();
    part_->size_bytes -= message.data().size();
    return sink_(offset, AsBytes(message.data()));
  }

  absl::Status Finish() const {
    return part_.has_value() && part_->size_bytes == 0
               ? absl::OkStatus()
               : absl::DataLossError("the stream of the file ended early");
  }

 private:
  absl::Status TakeFile(const v1::ReadFileResponse& message) {
    if (!message.has_file() || !message.file().has_size_bytes()) {
      return absl::InternalError("the server did not describe the file");
    }
    if (sha256_.has_value()) {
      return *sha256_ == message.file().sha256()
                 ? absl::OkStatus()
                 : absl::AbortedError(
                       "the file was replaced meanwhile; read it again");
    }
    sha256_ = message.file().sha256();
    if (!part_.has_value()) {
      part_ = ByteSpan{0, message.file().size_bytes()};
    }
    return on_file_(message.file());
  }

  // Unset: the whole file, whose size is not known yet.
  std::optional<ByteSpan> part_;
  DepositedFileSink on_file_;
  ByteSink sink_;
  // Set once the file was described.
  std::optional<std::string> sha256_;
  bool is_described_ = false;
};

}  // namespace

absl::Status Client::ListFiles(absl::string_view archive,
                               absl::string_view prefix,
                               DepositedFileSink on_file,
                               const ReadOptions& options) {
  v1::ListFilesRequest request;
  request.set_archive(std::string(archive));
  request.set_prefix(std::string(prefix));
  if (options.archive_uuid.has_value()) {
    request.set_archive_uuid(*options.archive_uuid);
  }
  for (;;) {
    v1::ListFilesResponse response;
    QUIRE_RETURN_IF_ERROR(
        connection_->Call(archive, [&](grpc::ClientContext& context) {
          return connection_->stub().ListFiles(&context, request, &response);
        }));
    for (const v1::DepositedFile& file : response.files()) {
      QUIRE_RETURN_IF_ERROR(on_file(file));
    }
    if (!response.has_next_page_token()) {
      return absl::OkStatus();
    }
    if (response.files().empty()) {
      return absl::InternalError("the server's list of files does not end");
    }
    request.set_page_token(response.next_page_token());
  }
}

absl::Status Client::ReadFile(absl::string_view archive, absl::string_view path,
                              std::optional<ByteSpan> part,
                              DepositedFileSink on_file, ByteSink sink,
                              const ReadOptions& options) {
  v1::ReadFileRequest request;
  request.set_archive(std::string(archive));
  request.set_path(std::string(path));
  if (options.archive_uuid.has_value()) {
    request.set_archive_uuid(*options.archive_uuid);
  }
  FileFollower follower(part, on_file, sink);
  RetryGovernor governor(*connection_);
  for (;;) {
    follower.FillIn(request);
    const StreamOutcome outcome = RunStreamCall<v1::ReadFileResponse>(
        connection_->options(),
        {.archive = archive, .attempt = governor.attempt()},
        [&](grpc::ClientContext* context) {
          return connection_->stub().ReadFile(context, request);
        },
        [&](v1::ReadFileResponse& message) -> absl::Status {
          governor.Progress();
          return follower.Take(message);
        });
    if (outcome.status.ok()) {
      return follower.Finish();
    }
    if (outcome.ended_by_receiver) {
      return outcome.status;
    }
    QUIRE_RETURN_IF_ERROR(governor.AwaitRetry(outcome.status));
  }
}

absl::StatusOr<v1::DepositedFile> Client::DescribeFile(
    absl::string_view archive, absl::string_view path,
    const ReadOptions& options) {
  v1::DepositedFile found;
  QUIRE_RETURN_IF_ERROR(ReadFile(
      archive, path, ByteSpan{},
      [&found](const v1::DepositedFile& file) {
        found = file;
        return absl::OkStatus();
      },
      [](uint64_t, ByteView) { return absl::OkStatus(); }, options));
  return found;
}

}  // namespace quire
