// SPDX-License-Identifier: Apache-2.0
//
// The calls of Client that answer in a stream.
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

#include "proto/quire/v1/archive.grpc.pb.h"

#include "client/quire/answer_check.h"
#include "client/quire/client.h"
#include "client/quire/stream_call.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

absl::string_view View(const std::string& text) {
  return {text.data(), text.size()};
}

// How far a scan came: what is still to be asked for, and what must come next.
class ScanState {
 public:
  ScanState(absl::string_view archive, const ScanOptions& options)
      : left_size_bytes_(options.size_bytes),
        to_archive_end_(!options.size_bytes.has_value() &&
                        options.resume_token.empty()) {
    request_.set_archive(std::string(archive));
    request_.add_accepted_encodings(v1::WIRE_ENCODING_IDENTITY);
    if (options.resume_token.empty()) {
      next_offset_ = options.offset;
      GoOnAtOffset();
    } else {
      request_.set_resume_token(options.resume_token);
    }
  }

  const v1::ScanRequest& request() const { return request_; }

  uint64_t next_offset() const { return next_offset_.value_or(0); }

  absl::Status Take(const v1::ScanResponse& message, ScanSink sink) {
    QUIRE_RETURN_IF_ERROR(CheckPayload(message.encoding(), message.checksum(),
                                       View(message.data())));
    const uint64_t size_bytes = message.data().size();
    const uint64_t offset = message.range().offset();
    // Where a token of the caller's goes on, the first message tells.
    const uint64_t expected_offset = next_offset_.value_or(offset);
    if (offset != expected_offset ||
        message.range().size_bytes() != size_bytes ||
        size_bytes > left_size_bytes_.value_or(size_bytes)) {
      return absl::InternalError(absl::StrCat(
          "the server sent ", size_bytes, " bytes, named ",
          message.range().size_bytes(), " bytes at offset ", offset,
          ", where the scan was at offset ", expected_offset));
    }
    next_offset_ = offset + size_bytes;
    if (left_size_bytes_.has_value()) {
      *left_size_bytes_ -= size_bytes;
    }
    if (message.resume_token().empty()) {
      GoOnAtOffset();
    } else {
      // The token knows the end, too.
      request_.set_resume_token(message.resume_token());
      request_.clear_size_bytes();
    }
    if (size_bytes == 0) {
      return absl::OkStatus();
    }
    return sink({.offset = offset,
                 .data = AsBytes(View(message.data())),
                 .resume_token = View(message.resume_token())});
  }

  // Whether all that was asked is there. Where a token of the caller's ends is
  // known to the server alone.
  bool complete(uint64_t archive_size_bytes) const {
    if (left_size_bytes_.has_value()) {
      return *left_size_bytes_ == 0;
    }
    return !to_archive_end_ || next_offset_ == archive_size_bytes;
  }

 private:
  void GoOnAtOffset() {
    request_.set_offset(next_offset());
    if (left_size_bytes_.has_value()) {
      request_.set_size_bytes(*left_size_bytes_);
    }
  }

  v1::ScanRequest request_;
  std::optional<uint64_t> next_offset_;
  std::optional<uint64_t> left_size_bytes_;
  const bool to_archive_end_;
};

}  // namespace

absl::Status Client::ReadStream(absl::string_view archive,
                                const ReadTarget& target,
                                DocumentSink on_document, ByteSink sink) {
  const v1::ReadRequest request = MakeReadRequest(archive, target);
  std::optional<SpanFollower> follower;
  const auto take = [&](v1::ReadStreamResponse& message) -> absl::Status {
    QUIRE_RETURN_IF_ERROR(CheckPayload(message.encoding(), message.checksum(),
                                       View(message.data())));
    if (!follower.has_value()) {
      QUIRE_ASSIGN_OR_RETURN(
          const ByteSpan expected,
          ExpectedSpan(target,
                       message.has_document() ? &message.document() : nullptr));
      follower.emplace(expected);
      if (message.has_document()) {
        QUIRE_RETURN_IF_ERROR(on_document(message.document()));
      }
    }
    QUIRE_RETURN_IF_ERROR(
        follower->Take(message.range(), message.data().size()));
    if (message.data().empty()) {
      return absl::OkStatus();
    }
    return sink(message.range().offset(), AsBytes(View(message.data())));
  };
  const StreamOutcome outcome = RunStreamCall<v1::ReadStreamResponse>(
      connection_->options(),
      [&](grpc::ClientContext* context) {
        return connection_->stub().ReadStream(context, request);
      },
      take);
  QUIRE_RETURN_IF_ERROR(outcome.status);
  if (!follower.has_value()) {
    return absl::DataLossError("the stream ended early: nothing was received");
  }
  return follower->Finish();
}

absl::Status Client::Scan(absl::string_view archive, const ScanOptions& options,
                          ScanSink sink) {
  if (!options.resume_token.empty() && options.size_bytes.has_value()) {
    return absl::InvalidArgumentError(
        "a resume token knows where its scan ends; give no size with it");
  }
  // How much there is must be known, or an early end would pass for the end.
  QUIRE_ASSIGN_OR_RETURN(const v1::ArchiveDescription before,
                         GetArchive(archive));
  ScanState state(archive, options);
  ResumeGovernor governor(connection_->options());
  for (;;) {
    const StreamOutcome outcome = RunStreamCall<v1::ScanResponse>(
        connection_->options(),
        [&](grpc::ClientContext* context) {
          return connection_->stub().Scan(context, state.request());
        },
        [&](v1::ScanResponse& message) {
          governor.Progress();
          return state.Take(message, sink);
        });
    if (outcome.status.ok()) {
      break;
    }
    const std::optional<absl::Duration> delay =
        outcome.ended_by_receiver ? std::nullopt
                                  : governor.DelayAfter(outcome.status);
    if (!delay.has_value()) {
      return outcome.status;
    }
    absl::SleepFor(*delay);
  }
  if (state.complete(before.size_bytes())) {
    return absl::OkStatus();
  }
  // The archive may have been replaced just before the scan began.
  QUIRE_ASSIGN_OR_RETURN(const v1::ArchiveDescription after,
                         GetArchive(archive));
  if (after.uuid() != before.uuid() && state.complete(after.size_bytes())) {
    return absl::OkStatus();
  }
  return absl::DataLossError(
      absl::StrCat("the stream ended early: the scan stopped at offset ",
                   state.next_offset(), " of ", after.size_bytes()));
}

absl::Status Client::GetDictionary(absl::string_view hash, ByteSink sink) {
  v1::GetDictionaryRequest request;
  request.set_hash(std::string(hash));
  uint64_t next_offset = 0;
  std::optional<uint64_t> size_bytes;
  ResumeGovernor governor(connection_->options());
  const auto take = [&](v1::GetDictionaryResponse& message) -> absl::Status {
    governor.Progress();
    QUIRE_RETURN_IF_ERROR(CheckPayload(
        v1::WIRE_ENCODING_IDENTITY, message.checksum(), View(message.data())));
    if (!size_bytes.has_value()) {
      size_bytes = message.size_bytes();
    }
    if (message.offset() != next_offset ||
        message.size_bytes() != *size_bytes ||
        message.data().size() > *size_bytes - next_offset) {
      return absl::InternalError(absl::StrCat(
          "the server sent bytes of the dictionary at offset ",
          message.offset(), " where ", next_offset, " was expected"));
    }
    if (message.data().empty()) {
      return absl::OkStatus();
    }
    next_offset += message.data().size();
    return sink(message.offset(), AsBytes(View(message.data())));
  };
  for (;;) {
    request.set_offset(next_offset);
    const StreamOutcome outcome = RunStreamCall<v1::GetDictionaryResponse>(
        connection_->options(),
        [&](grpc::ClientContext* context) {
          return connection_->stub().GetDictionary(context, request);
        },
        take);
    if (outcome.status.ok()) {
      return size_bytes == next_offset
                 ? absl::OkStatus()
                 : absl::DataLossError("the dictionary's stream ended early");
    }
    const std::optional<absl::Duration> delay =
        outcome.ended_by_receiver ? std::nullopt
                                  : governor.DelayAfter(outcome.status);
    if (!delay.has_value()) {
      return outcome.status;
    }
    absl::SleepFor(*delay);
  }
}

}  // namespace quire
