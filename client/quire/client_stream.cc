// SPDX-License-Identifier: Apache-2.0
//
// Streaming calls of Client.
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"

#include "proto/quire/v1/archive.grpc.pb.h"

#include "client/quire/archive_state.h"
#include "client/quire/client.h"
#include "client/quire/internal/answer_check.h"
#include "client/quire/internal/stream_call.h"
#include "client/quire/internal/wire_call.h"
#include "codecs/base/checksum.h"
#include "codecs/base/endian.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

// Upper bound on archives (FORMAT.md, "Limits"); sums of two do not overflow.
constexpr uint64_t kOffsetMax = uint64_t{1} << 62;

// Returns the size of the state that a scan is of. Of a state that is not known
// here, the scan itself shows whether it exists.
uint64_t EndOf(const v1::ArchiveDescription& archive,
               const std::optional<std::string>& uuid) {
  const std::optional<v1::EarlierState> state =
      uuid.has_value() ? FindState(archive, *uuid) : std::nullopt;
  return state.has_value() ? state->size_bytes() : archive.size_bytes();
}

// Progress of a scan: the rest to request, and the message expected next.
class ScanState {
 public:
  ScanState(absl::string_view archive, const ScanOptions& options)
      : taken_{.next_offset = std::nullopt,
               .left_size_bytes = options.size_bytes},
        to_archive_end_(!options.size_bytes.has_value() &&
                        options.resume_token.empty()) {
    request_.set_archive(std::string(archive));
    request_.set_stored_order(options.stored_order);
    if (options.archive_uuid.has_value()) {
      request_.set_archive_uuid(*options.archive_uuid);
    }
    if (options.resume_token.empty()) {
      taken_.next_offset = options.offset;
      GoOnAtOffset();
    } else {
      request_.set_resume_token(options.resume_token);
    }
  }

  // Begins a stream that continues after the messages taken.
  const v1::ScanRequest& Start(const WireCall& call) {
    received_ = taken_;
    call.FillIn(request_);
    return request_;
  }

  uint64_t next_offset() const { return taken_.next_offset.value_or(0); }

  // Checks that the message is the expected one.
  absl::Status Accept(const v1::ScanResponse& message) {
    return Pass(message, received_);
  }

  absl::Status Take(const v1::ScanResponse& message, absl::string_view text,
                    ScanSink sink) {
    QUIRE_RETURN_IF_ERROR(Pass(message, taken_));
    QUIRE_ASSIGN_OR_RETURN(const std::vector<ScanPlace> places,
                           PlacesOf(message, text));
    if (message.resume_token().empty()) {
      if (!places.empty()) {
        return absl::InternalError(
            "the server sent bytes in stored order without a resume token");
      }
      GoOnAtOffset();
    } else {
      // The token includes the end.
      request_.set_resume_token(message.resume_token());
      request_.clear_size_bytes();
    }
    if (text.empty()) {
      return absl::OkStatus();
    }
    return sink({.offset = message.range().offset(),
                 .data = AsBytes(text),
                 .resume_token = message.resume_token(),
                 .places = places});
  }

  // Error if complete() is false.
  absl::Status Incomplete(uint64_t archive_size_bytes) const {
    if (!taken_.is_stored_order) {
      return absl::DataLossError(
          absl::StrCat("the stream ended early: the scan stopped at offset ",
                       next_offset(), " of ", archive_size_bytes));
    }
    return absl::DataLossError(
        taken_.placed_size_bytes < archive_size_bytes
            ? absl::StrCat("the stream ended early: ", taken_.placed_size_bytes,
                           " of ", archive_size_bytes, " bytes came")
            : absl::StrCat("the places of the bytes that the server sent are "
                           "not the ",
                           archive_size_bytes,
                           " bytes of the archive: some overlap, or lie "
                           "behind its end"));
  }

  // True if all requested bytes were received. Only the server knows the end of
  // a caller's token.
  bool complete(uint64_t archive_size_bytes) const {
    if (taken_.is_stored_order) {
      return !to_archive_end_ ||
             taken_.edges == EdgeOf(0) - EdgeOf(archive_size_bytes);
    }
    if (taken_.left_size_bytes.has_value()) {
      return *taken_.left_size_bytes == 0;
    }
    return !to_archive_end_ || taken_.next_offset == archive_size_bytes;
  }

 private:
  struct Position {
    std::optional<uint64_t> next_offset = {};
    std::optional<uint64_t> left_size_bytes = {};
    // Messages have places; total size of the places so far.
    bool is_stored_order = false;
    uint64_t placed_size_bytes = 0;
    // Sum modulo 2^64 of EdgeOf() at the start of each place less that at its
    // end. Adjacent places cancel each other at their common edge. If the
    // places cover each byte of the archive once, only its own edges remain;
    // otherwise something else remains, except by chance.
    uint64_t edges = 0;

    absl::Status Pass(const v1::ByteRange& range) {
      const uint64_t size_bytes = range.size_bytes();
      // The first message tells where a caller's token continues.
      const uint64_t expected_offset = next_offset.value_or(range.offset());
      if (range.offset() != expected_offset ||
          size_bytes > left_size_bytes.value_or(size_bytes)) {
        return absl::InternalError(absl::StrCat(
            "the server sent ", size_bytes, " bytes at offset ", range.offset(),
            ", where the scan was at offset ", expected_offset));
      }
      next_offset = range.offset() + size_bytes;
      if (left_size_bytes.has_value()) {
        *left_size_bytes -= size_bytes;
      }
      return absl::OkStatus();
    }
  };

  absl::Status Pass(const v1::ScanResponse& message, Position& position) const {
    if (message.places().empty()) {
      return position.is_stored_order
                 ? absl::InternalError(
                       "the server sent bytes without a place in a scan in "
                       "stored order")
                 : position.Pass(message.range());
    }
    if (!request_.stored_order()) {
      return absl::InternalError(
          "the server sent bytes in stored order, which was not asked for");
    }
    position.is_stored_order = true;
    for (const v1::ScanPlace& place : message.places()) {
      const uint64_t end = uint64_t{place.text_offset()} + place.size_bytes();
      if (place.size_bytes() == 0 || end > message.range().size_bytes() ||
          place.offset() > kOffsetMax) {
        return absl::InternalError(absl::StrCat(
            "the server sent a place of ", place.size_bytes(), " bytes from ",
            place.text_offset(), " on of ", message.range().size_bytes(),
            ", at offset ", place.offset()));
      }
      position.placed_size_bytes += place.size_bytes();
      position.edges +=
          EdgeOf(place.offset()) - EdgeOf(place.offset() + place.size_bytes());
    }
    return absl::OkStatus();
  }

  // A number for each offset, unknown to servers.
  uint64_t EdgeOf(uint64_t offset) const {
    uint8_t bytes[sizeof(uint64_t)];
    StoreLittleEndian(offset, bytes);
    return Checksum64(bytes, key_);
  }

  // REQUIRES: Pass() returned OK.
  static absl::StatusOr<std::vector<ScanPlace>> PlacesOf(
      const v1::ScanResponse& message, absl::string_view text) {
    std::vector<ScanPlace> places;
    places.reserve(static_cast<size_t>(message.places_size()));
    for (const v1::ScanPlace& place : message.places()) {
      if (uint64_t{place.text_offset()} + place.size_bytes() > text.size()) {
        return absl::InternalError("the server sent a place behind the text");
      }
      places.push_back({.offset = place.offset(),
                        .data = AsBytes(text).subspan(place.text_offset(),
                                                      place.size_bytes())});
    }
    return places;
  }

  void GoOnAtOffset() {
    request_.set_offset(next_offset());
    if (taken_.left_size_bytes.has_value()) {
      request_.set_size_bytes(*taken_.left_size_bytes);
    }
  }

  v1::ScanRequest request_;
  const uint64_t key_ =
      (uint64_t{std::random_device()()} << 32) | std::random_device()();
  // Messages may be received before earlier ones are taken.
  Position received_;
  Position taken_;
  const bool to_archive_end_;
};

template <typename Message>
absl::StatusOr<absl::string_view> DecodeText(WireCall& call,
                                             const Message& message,
                                             std::string& buffer) {
  QUIRE_ASSIGN_OR_RETURN(const DecodedAnswer answer,
                         call.Decode(SentBytesOf(message), buffer));
  return answer.text;
}

}  // namespace

absl::Status Client::StreamOnce(WireCall& call, const v1::ReadRequest& request,
                                int attempt, const ReadTarget& target,
                                DocumentSink on_document, ByteSink sink,
                                bool& has_begun) {
  std::optional<SpanFollower> follower;
  const auto accept = [&](const v1::ReadStreamResponse& message) {
    if (!follower.has_value()) {
      const absl::StatusOr<ByteSpan> expected = ExpectedSpan(
          target, message.has_document() ? &message.document() : nullptr);
      if (!expected.ok()) {
        return expected.status();
      }
      follower.emplace(*expected);
    }
    return follower->Take(message.range());
  };
  const auto decode = [&](const v1::ReadStreamResponse& message,
                          std::string& buffer) {
    return DecodeText(call, message, buffer);
  };
  const auto take = [&](const v1::ReadStreamResponse& message,
                        absl::string_view text) -> absl::Status {
    if (!has_begun && message.has_document()) {
      has_begun = true;
      QUIRE_RETURN_IF_ERROR(on_document(message.document()));
    }
    has_begun = true;
    return text.empty() ? absl::OkStatus()
                        : sink(message.range().offset(), AsBytes(text));
  };
  const StreamOutcome outcome = RunAnswerStream<v1::ReadStreamResponse>(
      connection_->options(),
      {.archive = request.archive(), .attempt = attempt},
      [&](grpc::ClientContext* context) {
        return connection_->stub().ReadStream(context, request);
      },
      {accept, decode, take});
  QUIRE_RETURN_IF_ERROR(outcome.status);
  if (!follower.has_value()) {
    return absl::DataLossError("the stream ended early: nothing was received");
  }
  return follower->Finish();
}

absl::Status Client::ReadStream(absl::string_view archive,
                                const ReadTarget& target,
                                DocumentSink on_document, ByteSink sink,
                                const ReadOptions& options) {
  RetryGovernor governor(*connection_);
  bool has_begun = false;
  return StreamUntilBegun(governor, archive, target, on_document, sink, options,
                          has_begun);
}

absl::Status Client::StreamUntilBegun(RetryGovernor& governor,
                                      absl::string_view archive,
                                      const ReadTarget& target,
                                      DocumentSink on_document, ByteSink sink,
                                      const ReadOptions& options,
                                      bool& has_begun) {
  WireCall call = connection_->StartCall(archive, options.encoding);
  if (call.may_be_encoded()) {
    QUIRE_ASSIGN_OR_RETURN(const v1::Limits limits,
                           connection_->GetLimits(archive));
    call.SetAnswerSizeMax(limits.chunk_size_bytes_max());
  }
  v1::ReadRequest request =
      MakeReadRequest(archive, options.archive_uuid, target);
  for (;;) {
    call.FillIn(request);
    has_begun = false;
    const absl::Status status =
        StreamOnce(call, request, governor.attempt(), target, on_document, sink,
                   has_begun);
    if (status.ok() || has_begun) {
      return status;
    }
    if (call.MayFallBack(status)) {
      call.FallBack();
      continue;
    }
    QUIRE_RETURN_IF_ERROR(governor.AwaitRetry(status));
  }
}

absl::Status Client::Scan(absl::string_view archive, const ScanOptions& options,
                          ScanSink sink) {
  if (!options.resume_token.empty() && options.size_bytes.has_value()) {
    return absl::InvalidArgumentError(
        "a resume token knows where its scan ends; give no size with it");
  }
  if (options.stored_order &&
      (options.offset != 0 || options.size_bytes.has_value())) {
    return absl::InvalidArgumentError(
        "a scan in stored order is of the whole archive; give no offset and no "
        "size with it");
  }
  // The size must be known: otherwise an early end would look complete.
  QUIRE_ASSIGN_OR_RETURN(const v1::ArchiveDescription before,
                         GetArchive(archive));
  const uint64_t end = EndOf(before, options.archive_uuid);
  WireCall call = connection_->StartScan(before, options.encoding,
                                         options.size_bytes.value_or(end));
  if (call.may_be_encoded()) {
    QUIRE_ASSIGN_OR_RETURN(const v1::Limits limits,
                           connection_->GetLimits(archive));
    call.SetAnswerSizeMax(limits.chunk_size_bytes_max());
  }
  ScanState state(archive, options);
  RetryGovernor governor(*connection_);
  for (;;) {
    const auto take = [&](const v1::ScanResponse& message,
                          absl::string_view text) -> absl::Status {
      governor.Progress();
      return state.Take(message, text, sink);
    };
    const StreamOutcome outcome = RunAnswerStream<v1::ScanResponse>(
        connection_->options(),
        {.archive = archive, .attempt = governor.attempt()},
        [&](grpc::ClientContext* context) {
          return connection_->stub().Scan(context, state.Start(call));
        },
        {[&](const v1::ScanResponse& message) { return state.Accept(message); },
         [&](const v1::ScanResponse& message, std::string& buffer) {
           return DecodeText(call, message, buffer);
         },
         take});
    if (outcome.status.ok()) {
      break;
    }
    if (call.MayFallBack(outcome.status)) {
      call.FallBack();
      continue;
    }
    if (outcome.ended_by_receiver) {
      return outcome.status;
    }
    QUIRE_RETURN_IF_ERROR(governor.AwaitRetry(outcome.status));
  }
  if (state.complete(end)) {
    return absl::OkStatus();
  }
  if (options.archive_uuid.has_value()) {
    return state.Incomplete(end);
  }
  // The archive may have been replaced just before the scan began, and may have
  // grown since.
  QUIRE_ASSIGN_OR_RETURN(const v1::ArchiveDescription after,
                         GetArchive(archive));
  bool is_of_later_state =
      after.uuid() != before.uuid() && state.complete(after.size_bytes());
  for (auto later = after.history().rbegin();
       later != after.history().rend() && later->uuid() != before.uuid();
       ++later) {
    is_of_later_state |= state.complete(later->size_bytes());
  }
  return is_of_later_state ? absl::OkStatus()
                           : state.Incomplete(after.size_bytes());
}

absl::Status Client::GetDictionary(absl::string_view hash, ByteSink sink,
                                   absl::string_view archive) {
  return ReceiveDictionary(*connection_, {.archive = archive}, hash, sink);
}

}  // namespace quire
