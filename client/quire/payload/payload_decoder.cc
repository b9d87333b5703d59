// SPDX-License-Identifier: Apache-2.0
#include "client/quire/payload/payload_decoder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/header_fields.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

// Upper bound on codings of one body, each of which takes memory.
constexpr size_t kStepsMax = 5;

// True if a response with this status may have a body, whatever its
// Content-Length (RFC 9112, section 6.3).
bool MayHaveBody(const HttpFields& http) {
  const int code = http.status_code.value_or(200);
  return code != 204 && code != 304 && code / 100 != 1;
}

// Upper bound on the bytes by which a coding makes a body larger.
uint64_t CodingOverhead(uint64_t size_bytes) {
  return 64 + size_bytes / 1000;
}

absl::Status CutShort(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("the record is cut short", what));
}

}  // namespace

absl::StatusOr<bool> PayloadDecoder::TakeHeader(ByteView& bytes,
                                                const char* what) {
  while (!bytes.empty()) {
    const auto end = std::find(bytes.begin(), bytes.end(), '\n');
    const bool has_end = end != bytes.end();
    const absl::string_view line =
        AsText(bytes.first(static_cast<size_t>(end - bytes.begin()) + has_end));
    if (line.size() > kRecordHeaderSizeBytesMax - header_.size()) {
      return absl::DataLossError(
          absl::StrCat("no empty line ends the ", what, " header within ",
                       FormatByteSize(kRecordHeaderSizeBytesMax)));
    }
    header_.append(line.data(), line.size());
    headers_size_bytes_ += line.size();
    bytes = bytes.subspan(line.size());
    // The line without its end. A CR may be in the previous piece.
    line_size_ += line.size() - (has_end ? 1 : 0);
    if (has_end) {
      const bool has_cr =
          header_.size() > 1 && header_[header_.size() - 2] == '\r';
      const bool is_empty = line_size_ == (has_cr ? 1 : 0);
      line_size_ = 0;
      if (EndsHeader(is_empty)) {
        return true;
      }
    }
  }
  return false;
}

bool PayloadDecoder::EndsHeader(bool is_empty_line) const {
  if (state_ == State::kWarcHeader) {
    return is_empty_line ||
           (header_.find('\n') == header_.size() - 1 &&
            !IsWarcRecord(header_) && ParseWarcFields(header_).ok());
  }
  // Empty lines may precede the header.
  return is_empty_line && BlankLinesSize(header_) < header_.size();
}

absl::Status PayloadDecoder::Feed(ByteView record, PayloadSink out) {
  if (state_ == State::kWarcHeader) {
    QUIRE_RETURN_IF_ERROR(TakeWarcHeader(record));
  }
  ByteView block = record.first(
      static_cast<size_t>(std::min<uint64_t>(record.size(), left_size_bytes_)));
  left_size_bytes_ -= block.size();
  if (state_ == State::kHttpHeader) {
    QUIRE_RETURN_IF_ERROR(TakeHttpHeader(block, out));
  }
  return state_ == State::kBody ? TakeBody(block, out) : absl::OkStatus();
}

absl::Status PayloadDecoder::TakeWarcHeader(ByteView& record) {
  QUIRE_ASSIGN_OR_RETURN(const bool is_there, TakeHeader(record, "WARC"));
  if (!is_there) {
    return absl::OkStatus();
  }
  QUIRE_ASSIGN_OR_RETURN(warc_, ParseWarcFields(header_));
  header_.clear();
  left_size_bytes_ = warc_->content_length;
  warc_size_bytes_ = headers_size_bytes_;
  state_ = warc_->type == "revisit" ? State::kEnd
           : HoldsHttp(*warc_)      ? State::kHttpHeader
                                    : State::kBody;
  return absl::OkStatus();
}

bool PayloadDecoder::MayBeginHttp(ByteView block) const {
  // Looks at no more than decides it.
  constexpr size_t kLookedAtSize = kBlankSizeBytesMax + kHttpMagic.size() + 1;
  std::string first = header_.substr(0, kLookedAtSize);
  absl::StrAppend(&first,
                  AsText(block).substr(0, kLookedAtSize - first.size()));
  return MayStartHttp(first);
}

absl::Status PayloadDecoder::TakeHttpHeader(ByteView& block, PayloadSink out) {
  while (state_ == State::kHttpHeader && !block.empty()) {
    if (warc_->type == "response" && !MayBeginHttp(block)) {
      // The block, or the rest after interim responses, is a body without a
      // header.
      state_ = State::kBody;
      headers_size_bytes_ -= header_.size();
      return TakeBody(AsBytes(header_), out);
    }
    QUIRE_ASSIGN_OR_RETURN(const bool is_there, TakeHeader(block, "HTTP"));
    if (!is_there) {
      return absl::OkStatus();
    }
    http_ = ParseHttpFields(header_);
    header_.clear();
    // An interim response (1xx) is followed by the final one.
    const int code = http_->status_code.value_or(200);
    if (code / 100 != 1 || code == 101) {
      state_ = State::kBody;
      QUIRE_RETURN_IF_ERROR(MakeSteps());
    }
  }
  return absl::OkStatus();
}

absl::Status PayloadDecoder::MakeSteps() {
  const std::vector<std::string>& transfer = http_->transfer_codings;
  const std::vector<std::string>& content = http_->content_codings;
  if (transfer.size() + content.size() > kStepsMax) {
    return absl::DataLossError(absl::StrCat(
        "the body has ", transfer.size() + content.size(),
        " codings one upon the other, at most ", kStepsMax, " are decoded"));
  }
  // Such as "utf-8": there is nothing to remove.
  const auto add = [&](const std::string& coding) {
    if (auto step = MakeContentDecoder(coding); step != nullptr) {
      steps_.push_back(std::move(step));
    }
  };
  // Codings are removed in reverse order.
  for (auto coding = transfer.rbegin(); coding != transfer.rend(); ++coding) {
    if (*coding == "chunked") {
      steps_.push_back(MakeChunkDecoder());
    } else {
      add(*coding);
    }
  }
  for (auto coding = content.rbegin(); coding != content.rend(); ++coding) {
    add(*coding);
  }
  step_size_bytes_.resize(steps_.size());
  return absl::OkStatus();
}

absl::Status PayloadDecoder::TakeBody(ByteView body, PayloadSink out) {
  body_size_bytes_ += body.size();
  return Pass(0, body, out);
}

absl::Status PayloadDecoder::Pass(size_t step, ByteView bytes,
                                  PayloadSink out) {
  if (bytes.empty()) {
    return absl::OkStatus();
  }
  if (step == steps_.size()) {
    absl::Status status = out(bytes);
    has_failed_ = !status.ok();
    return status;
  }
  absl::Status status = steps_[step]->Feed(
      bytes, [&](ByteView made) { return TakeStep(step, made, out); });
  return status.ok() ? status : Fail(step, std::move(status), out);
}

absl::Status PayloadDecoder::TakeStep(size_t step, ByteView made,
                                      PayloadSink out) {
  if (made.size() > size_bytes_max_ - step_size_bytes_[step]) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the payload decodes to more than ",
                     FormatByteSize(size_bytes_max_), ", the limit"));
  }
  step_size_bytes_[step] += made.size();
  return Pass(step + 1, made, out);
}

absl::Status PayloadDecoder::FinishSteps(size_t step, bool is_whole,
                                         PayloadSink out) {
  for (size_t i = step; i < steps_.size() && body_size_bytes_ > 0; ++i) {
    absl::Status status = steps_[i]->Finish(
        is_whole, [&](ByteView made) { return TakeStep(i, made, out); });
    if (!status.ok()) {
      return Fail(i, std::move(status), out);
    }
  }
  return absl::OkStatus();
}

absl::Status PayloadDecoder::Fail(size_t step, absl::Status status,
                                  PayloadSink out) {
  // Errors of inner layers pass through the outer ones.
  if (std::exchange(has_failed_, true) || !absl::IsDataLoss(status)) {
    return status;
  }
  QUIRE_RETURN_IF_ERROR(FinishSteps(step + 1, /*is_whole=*/false, out));
  return status;
}

absl::Status PayloadDecoder::FinishBody(PayloadSink out) {
  if (left_size_bytes_ > 0) {
    QUIRE_RETURN_IF_ERROR(FinishSteps(0, /*is_whole=*/false, out));
    return CutShort(absl::StrCat(": ", left_size_bytes_, " of the ",
                                 warc_->content_length,
                                 " bytes of its block are missing"));
  }
  if (state_ == State::kHttpHeader && warc_->type == "response" &&
      !header_.empty() && MayStartHttp(header_) &&
      header_.find_first_not_of("\r\n") == std::string::npos) {
    // Empty lines alone are the body.
    state_ = State::kBody;
    headers_size_bytes_ -= header_.size();
    QUIRE_RETURN_IF_ERROR(TakeBody(AsBytes(header_), out));
  }
  if (state_ == State::kHttpHeader) {
    return CutShort(" inside its HTTP header");
  }
  const bool is_short = http_.has_value() && http_->transfer_codings.empty() &&
                        MayHaveBody(*http_) && body_size_bytes_ > 0 &&
                        http_->content_length.value_or(0) > body_size_bytes_;
  QUIRE_RETURN_IF_ERROR(FinishSteps(0, !is_short, out));
  const bool was_not_coded =
      std::any_of(steps_.begin(), steps_.end(),
                  [](const auto& step) { return step->was_not_coded(); });
  // Otherwise the size may be that of the coded body.
  if (is_short && (!was_not_coded || *http_->content_length - body_size_bytes_ >
                                         CodingOverhead(body_size_bytes_))) {
    return CutShort(absl::StrCat(": its body has ", body_size_bytes_,
                                 " bytes, the Content-Length of HTTP says ",
                                 *http_->content_length));
  }
  return absl::OkStatus();
}

bool PayloadDecoder::lacks_body() const {
  return state_ == State::kBody && http_.has_value() &&
         http_->status_code.has_value() && MayHaveBody(*http_) &&
         http_->content_length != uint64_t{0} &&
         warc_->content_length == headers_size_bytes_ - warc_size_bytes_;
}

std::optional<PlainPayload> PayloadDecoder::plain_payload() const {
  if (state_ != State::kBody || !steps_.empty() || !warc_->truncated.empty()) {
    return std::nullopt;
  }
  const uint64_t http_size_bytes = headers_size_bytes_ - warc_size_bytes_;
  // The HTTP header is a part of the block.
  const PlainPayload plain{headers_size_bytes_,
                           warc_->content_length - http_size_bytes};
  const bool is_truncated =
      http_.has_value() && MayHaveBody(*http_) && plain.size_bytes > 0 &&
      http_->content_length.value_or(0) > plain.size_bytes;
  return is_truncated ? std::nullopt : std::optional<PlainPayload>(plain);
}

absl::Status PayloadDecoder::Finish(PayloadSink out) {
  if (!warc_.has_value()) {
    return header_.empty() ? absl::DataLossError("no WARC record: no bytes")
                           : CutShort(" inside its WARC header");
  }
  if (warc_->type == "revisit") {
    return absl::OkStatus();
  }
  const absl::Status status = FinishBody(out);
  // This explains all other missing bytes.
  if (!warc_->truncated.empty() && (status.ok() || absl::IsDataLoss(status))) {
    return CutShort(absl::StrCat(
        " by the crawler (WARC-Truncated: ",
        PrintableText(absl::string_view(warc_->truncated).substr(0, 40)), ")"));
  }
  return status;
}

}  // namespace quire
