// SPDX-License-Identifier: Apache-2.0
#include "client/cli/cli_run.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

#include "client/cli/shown_text.h"
#include "client/quire/client_status.h"
#include "codecs/base/byte_size.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

// Upper bound on the messages about damaged blocks that are remembered.
constexpr size_t kNamedBlocksMax = 10'000;

// True if the server asked for more time than the client waited.
bool IsStillRefused(const absl::Status& status) {
  return (absl::IsUnavailable(status) || absl::IsResourceExhausted(status)) &&
         RetryDelayOf(status).has_value();
}

// True if the error is the server's, not of this program.
bool IsFromServer(const absl::Status& status) {
  return ErrorDetailsOf(status).has_value();
}

ProgressMeterOptions ProgressOptions(const CliSettings& settings,
                                     const OutputFile& output) {
  const bool is_terminal = isatty(STDERR_FILENO) == 1;
  // A line among the data would spoil both.
  const bool is_among_data =
      output.is_terminal() && settings.output_dir.empty();
  return {.enabled = !settings.quiet && (settings.progress == "always" ||
                                         (settings.progress == "auto" &&
                                          is_terminal && !is_among_data)),
          .is_terminal = is_terminal,
          .prefix = "quire: "};
}

}  // namespace

CliRun::CliRun(const CliSettings& settings, std::unique_ptr<Client> client,
               std::unique_ptr<OutputFile> output)
    : settings_(settings),
      archive_uuid_(settings.archive_uuid),
      client_(std::move(client)),
      output_(std::move(output)),
      progress_(std::cerr, &absl::Now, ProgressOptions(settings, *output_)) {}

void CliRun::Complain(absl::string_view subject, const absl::Status& status) {
  exit_code_ = std::max(exit_code_, ExitCodeFor(status));
  if (!IsClosedOutput(status)) {
    progress_.Clear();
    std::fputs(MessageFor(subject, status, settings_).c_str(), stderr);
  }
}

void CliRun::ComplainOfItem(absl::string_view subject,
                            const absl::Status& status) {
  if (!settings_.verbose &&
      ErrorReasonOf(status) == v1::ErrorReason_Name(v1::BLOCK_DAMAGED)) {
    const std::string message(status.message());
    const auto found = unnamed_counts_.find(message);
    if (found != unnamed_counts_.end()) {
      ++found->second;
      return;
    }
    if (unnamed_counts_.size() < kNamedBlocksMax) {
      unnamed_counts_.emplace(message, 0);
    }
  }
  Complain(subject, status);
}

void CliRun::NoteUnnamedItems() {
  for (const auto& [message, count] : unnamed_counts_) {
    if (count != 0) {
      Complain(absl::StrCat(count, count == 1 ? " more item" : " more items",
                            " of the same block (-v names each)"),
               absl::DataLossError(message));
    }
  }
}

void CliRun::Note(absl::string_view message) {
  if (!settings_.quiet) {
    progress_.Clear();
    std::fprintf(stderr, "quire: %s\n", std::string(message).c_str());
  }
}

int CliRun::Finish(const absl::Status& status) {
  NoteUnnamedItems();
  if (!status.ok()) {
    Complain("", status);
  }
  if (settings_.verbose) {
    Note(DescribeTraffic(client_->GetWireStats()));
  }
  // Output before a failure is printed; a file is all or nothing.
  const bool commits =
      exit_code_ == kExitGood || (keeps_output_ && status.ok());
  if (commits) {
    const absl::Status committed = output_->Commit();
    if (!committed.ok() && !IsClosedOutput(status)) {
      Complain("", committed);
      NoteOutputOfFailure();
    }
    return exit_code_;
  }
  if (output_->is_standard_output()) {
    const absl::Status flushed = output_->Flush();
    if (!flushed.ok() && flushed != status) {
      Complain("", flushed);
    }
  }
  NoteOutputOfFailure();
  return exit_code_;
}

void CliRun::NoteOutputOfFailure() {
  if (!output_->is_aside()) {
    if (!continuation_.empty()) {
      Note(absl::StrCat("the rest: ", continuation_));
    } else if (!output_->is_standard_output()) {
      Note(absl::StrCat(QuotedText(settings_.output),
                        " was not written in full"));
    }
    return;
  }
  const absl::StatusOr<std::string> kept =
      continuation_.empty() ? std::string() : output_->CommitPartial();
  if (!kept.ok() || kept->empty()) {
    Note(absl::StrCat(QuotedText(settings_.output), " was not written"));
    return;
  }
  Note(absl::StrCat("what came is in ", QuotedText(*kept),
                    "; the rest: ", continuation_, " >> ", QuotedText(*kept)));
}

absl::Status CliRun::WriteData(ByteView data) {
  if (!settings_.force && output_->is_terminal() &&
      absl::StrContains(AsText(data), '\0')) {
    return absl::FailedPreconditionError(
        "binary data would disturb the terminal; -o FILE writes them to a "
        "file, --force prints them");
  }
  return output_->Write(data);
}

absl::Status CliRun::PinContents() {
  if (!archive_uuid_.has_value()) {
    QUIRE_ASSIGN_OR_RETURN(const v1::ArchiveDescription archive,
                           client_->GetArchive(settings_.archive));
    archive_uuid_ = archive.uuid();
  }
  return absl::OkStatus();
}

absl::StatusOr<ReadResult> CliRun::Read(const ReadTarget& target) {
  return client_->Read(settings_.archive, target, read_options());
}

absl::Status CliRun::Print(const ReadTarget& target, bool payload) {
  PayloadOrigin origin;
  std::string data;
  const auto begin = [&](const PayloadOrigin& found) {
    origin = found;
    NoteOrigin(target, found);
    return absl::OkStatus();
  };
  const auto take = [&](ByteView bytes) {
    progress_.Add(bytes.size(), 0);
    if (!settings_.json) {
      return WriteData(bytes);
    }
    data.append(AsText(bytes).data(), bytes.size());
    return absl::OkStatus();
  };
  if (settings_.json && !payload) {
    // Unlike a stream it is repeated if the connection breaks.
    QUIRE_ASSIGN_OR_RETURN(const ReadResult result, Read(target));
    if (result.document.has_value()) {
      QUIRE_RETURN_IF_ERROR(begin({.document = *result.document}));
    }
    QUIRE_RETURN_IF_ERROR(take(AsBytes(result.data)));
  } else {
    QUIRE_RETURN_IF_ERROR(Stream(target, payload, begin, take));
  }
  return settings_.json
             ? output_->Write("{" + JsonData(target, origin, data) + "}\n")
             : absl::OkStatus();
}

absl::Status CliRun::Stream(const ReadTarget& target, bool payload,
                            PayloadOriginSink on_begin, PayloadSink sink) {
  const std::string& archive = settings_.archive;
  if (payload) {
    return ReadPayload(*client_, archive, std::get<DocumentKey>(target),
                       {.read = read_options()}, on_begin, sink);
  }
  return client_->ReadStream(
      archive, target,
      [&](const v1::Document& document) {
        return on_begin({.document = document});
      },
      [&](uint64_t, ByteView data) { return sink(data); }, read_options());
}

void CliRun::NoteTime(const ReadTarget& target, const v1::Document& document) {
  const auto* key = std::get_if<DocumentKey>(&target);
  if (key == nullptr || !key->at_time_ms.has_value()) {
    return;
  }
  if (!document.has_capture_time_ms()) {
    Note(absl::StrCat(DescribeTarget(target), ": has no capture time"));
  } else if (document.capture_time_ms() > *key->at_time_ms) {
    Note(absl::StrCat(DescribeTarget(target),
                      ": there is none so old; this is the oldest, of ",
                      FormatTimeMs(document.capture_time_ms())));
  }
}

void CliRun::NoteOrigin(const ReadTarget& target, const PayloadOrigin& origin) {
  NoteTime(target, origin.revisit.value_or(origin.document));
  const std::string time = origin.document.has_capture_time_ms()
                               ? FormatTimeMs(origin.document.capture_time_ms())
                               : "unknown time";
  if (origin.passed_count > 0) {
    Note(absl::StrCat(
        DescribeTarget(target), ": this is the capture of ", time, "; ",
        FormatCounted(origin.passed_count, "capture", "captures"),
        " that would come first ", origin.passed_count == 1 ? "is a" : "are",
        origin.passed_count == 1 ? " redirect or has" : " redirects or have",
        " no body. --status or --record selects ",
        origin.passed_count == 1 ? "it" : "them"));
  }
  if (!origin.unresolved.empty()) {
    Note(absl::StrCat(DescribeTarget(target), ": ", origin.unresolved,
                      "; this is the capture of ", time));
  } else if (origin.revisit.has_value() && settings_.verbose) {
    Note(absl::StrCat(DescribeTarget(target), ": a revisit of document number ",
                      origin.document.ordinal(), ", of ", time));
  }
}

int ExitCodeFor(const absl::Status& status) {
  if (status.ok() || IsClosedOutput(status)) {
    return kExitGood;
  }
  if (ErrorReasonOf(status) == v1::ErrorReason_Name(v1::DOCUMENT_WITHDRAWN)) {
    return kExitNotFoundOrDamaged;
  }
  if (IsStillRefused(status)) {
    return kExitUnreachable;
  }
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kPermissionDenied:
      return kExitUnreachable;
    case absl::StatusCode::kInvalidArgument:
      return IsFromServer(status) ? kExitNotFoundOrDamaged : kExitUsage;
    default:
      return kExitNotFoundOrDamaged;
  }
}

absl::Status WhyNotRead(const ReadTarget& target, const absl::Status& status,
                        absl::string_view record_hint) {
  if (IsPayloadFault(status)) {
    return absl::Status(status.code(),
                        absl::StrCat(status.message(), "; ", record_hint));
  }
  const auto* key = std::get_if<DocumentKey>(&target);
  const auto* id =
      key == nullptr ? nullptr : std::get_if<std::string>(&key->name);
  if (ErrorReasonOf(status) ==
      v1::ErrorReason_Name(v1::RECORD_TYPE_NOT_FOUND)) {
    return absl::NotFoundError(
        absl::StrCat(status.message(), "; --record-type names others"));
  }
  if (id == nullptr || key->occurrence.has_value() ||
      ErrorReasonOf(status) != v1::ErrorReason_Name(v1::DOCUMENT_NOT_FOUND)) {
    return status;
  }
  return absl::NotFoundError(
      absl::EndsWith(*id, "\r")
          ? "no such document; its last byte is a carriage return: do the "
            "lines end with CR LF?"
          : "no such document");
}

std::string MessageFor(absl::string_view subject, const absl::Status& status,
                       const CliSettings& settings) {
  const absl::string_view server = settings.server;
  std::string message = "quire: ";
  if (!subject.empty()) {
    absl::StrAppend(&message, PrintableMessage(subject), ": ");
  }
  if (absl::IsUnavailable(status) && !IsFromServer(status)) {
    absl::StrAppend(&message, "cannot reach the server at ",
                    PrintableText(server), " (",
                    PrintableMessage(status.message()),
                    "); does it run? --server or QUIRE_SERVER say where");
  } else if (absl::IsUnauthenticated(status) && !IsFromServer(status)) {
    absl::StrAppend(&message, "no connection with ", PrintableText(server),
                    ": ", PrintableMessage(status.message()));
  } else if (absl::IsDeadlineExceeded(status)) {
    absl::StrAppend(&message, PrintableMessage(status.message()),
                    "; --timeout (now ", PrintableText(settings.timeout),
                    ") waits longer, --server or QUIRE_SERVER (now ",
                    PrintableText(server), ") say where");
  } else if (IsStillRefused(status)) {
    absl::StrAppend(&message, PrintableMessage(status.message()),
                    "; --timeout (now ", PrintableText(settings.timeout),
                    ") waits longer");
  } else if (absl::IsUnimplemented(status) && !IsFromServer(status)) {
    absl::StrAppend(&message, "no such call at ", PrintableText(server), " (",
                    PrintableMessage(status.message()),
                    "); is it a Quire server, and not an older one? --server "
                    "or QUIRE_SERVER say where");
  } else if (status.message().empty()) {
    absl::StrAppend(&message, absl::StatusCodeToString(status.code()));
  } else {
    absl::StrAppend(&message, PrintableMessage(status.message()));
  }
  return message + "\n";
}

std::string DescribeTraffic(const WireStats& stats) {
  const WireTraffic total = stats.Total();
  std::string text =
      absl::StrCat(FormatCounted(total.answer_count, "answer", "answers"), ", ",
                   FormatByteSize(total.decoded_size_bytes), " from ",
                   FormatByteSize(total.wire_size_bytes), " on the wire");
  absl::string_view mark = ": ";
  for (const AnswerEncoding encoding :
       {AnswerEncoding::kIdentity, AnswerEncoding::kFsst,
        AnswerEncoding::kStored}) {
    const WireTraffic& traffic = stats.traffic[IndexOf(encoding)];
    if (traffic.answer_count != 0) {
      absl::StrAppend(&text, mark, FormatCount(traffic.answer_count), " ",
                      AnswerEncodingName(encoding));
      mark = ", ";
    }
  }
  if (stats.fetched_size_bytes != 0) {
    absl::StrAppend(&text, "; tables of ",
                    FormatByteSize(stats.fetched_size_bytes), " fetched");
  }
  return text;
}

std::string JsonData(const ReadTarget& target, const PayloadOrigin& origin,
                     absl::string_view data) {
  const auto* span = std::get_if<ByteSpan>(&target);
  std::string json = span == nullptr
                         ? JsonDocument(origin.document)
                         : absl::StrCat("\"offset\":", span->offset,
                                        ",\"size_bytes\":", data.size());
  if (origin.revisit.has_value()) {
    absl::StrAppend(&json, ",\"revisit_ordinal\":", origin.revisit->ordinal());
  }
  if (origin.http.has_value() && origin.http->status_code.has_value()) {
    absl::StrAppend(&json, ",\"http_status\":", *origin.http->status_code);
  }
  if (origin.warc.has_value()) {
    absl::StrAppend(&json, ",\"payload_size_bytes\":", data.size());
  }
  return absl::StrCat(json, ",\"data_base64\":\"", absl::Base64Escape(data),
                      "\"");
}

std::string JsonError(const absl::Status& status) {
  const std::string reason = ErrorReasonOf(status);
  return absl::StrCat("\"error\":{\"code\":\"",
                      absl::StatusCodeToString(status.code()), "\",",
                      reason.empty() ? "" : JsonBytes("reason", reason) + ",",
                      JsonBytes("message", status.message()), "}");
}

bool EndsRun(const absl::Status& status) {
  // A server's FailedPrecondition is that of other contents.
  return IsClosedOutput(status) || absl::IsFailedPrecondition(status);
}

}  // namespace quire
