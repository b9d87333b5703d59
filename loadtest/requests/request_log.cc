// SPDX-License-Identifier: Apache-2.0
#include "loadtest/requests/request_log.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "codecs/base/status_macros.h"

namespace quire {
namespace {

constexpr uint64_t kNsPerSecond = 1'000'000'000;
// Ten years; with it no sum of times can overflow.
constexpr uint64_t kSecondsMax = 315'360'000;

bool IsDigits(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c >= '0' && c <= '9';
  });
}

// Digits alone: no sign, no spaces.
std::optional<uint64_t> ParseCount(absl::string_view text) {
  uint64_t count = 0;
  return IsDigits(text) && absl::SimpleAtoi(text, &count)
             ? std::optional<uint64_t>(count)
             : std::nullopt;
}

std::optional<uint64_t> ParseSecondsNs(absl::string_view text) {
  const size_t dot = text.find('.');
  const std::optional<uint64_t> whole = ParseCount(text.substr(0, dot));
  if (!whole.has_value() || *whole > kSecondsMax) {
    return std::nullopt;
  }
  if (dot == absl::string_view::npos) {
    return *whole * kNsPerSecond;
  }
  std::string fraction(text.substr(dot + 1));
  if (!IsDigits(fraction) || fraction.size() > 9) {
    return std::nullopt;
  }
  fraction.resize(9, '0');
  return *whole * kNsPerSecond + *ParseCount(fraction);
}

absl::Status AtLine(const absl::Status& status, uint64_t line_number) {
  return absl::InvalidArgumentError(
      absl::StrCat("line ", line_number, ": ", status.message()));
}

}  // namespace

absl::Status RequestLog::AddTime(absl::string_view seconds) {
  const std::optional<uint64_t> time_ns = ParseSecondsNs(seconds);
  if (!time_ns.has_value()) {
    return absl::InvalidArgumentError(
        "the time is not +SECONDS with at most nine digits of fraction, or is "
        "more than ten years");
  }
  if (times_ns_.size() != kinds_.size()) {
    return absl::InvalidArgumentError(
        "has a time, and lines before it have none");
  }
  if (!times_ns_.empty() && *time_ns < times_ns_.back()) {
    return absl::InvalidArgumentError(
        "its time is before that of the line "
        "before");
  }
  times_ns_.push_back(*time_ns);
  return absl::OkStatus();
}

absl::Status RequestLog::AddLine(absl::string_view line) {
  if (line.empty() || line.front() == '#') {
    return absl::OkStatus();
  }
  if (line.front() == '+') {
    const size_t tab = line.find('\t');
    QUIRE_RETURN_IF_ERROR(AddTime(line.substr(1, tab - 1)));
    line.remove_prefix(tab == absl::string_view::npos ? line.size() : tab + 1);
  } else if (has_times()) {
    return absl::InvalidArgumentError(
        "has no time, and lines before it have one");
  }
  const size_t tab = line.find('\t');
  if (tab == absl::string_view::npos) {
    return absl::InvalidArgumentError(
        "is not OFFSET<tab>LENGTH, id<tab>ID or ordinal<tab>NUMBER");
  }
  const absl::string_view word = line.substr(0, tab);
  const absl::string_view rest = line.substr(tab + 1);
  if (word == "id") {
    kinds_.push_back(LoggedRequest::Kind::kId);
    first_.push_back(ids_.size());
    second_.push_back(rest.size());
    ids_.append(rest.data(), rest.size());
    return absl::OkStatus();
  }
  const std::optional<uint64_t> number = ParseCount(rest);
  const bool is_ordinal = word == "ordinal";
  const std::optional<uint64_t> offset =
      is_ordinal ? std::optional<uint64_t>(0) : ParseCount(word);
  if (!offset.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", std::string(word),
                     "' is neither an offset nor 'id' nor "
                     "'ordinal'"));
  }
  if (!number.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", std::string(rest), "' is no ", is_ordinal ? "ordinal" : "length"));
  }
  kinds_.push_back(is_ordinal ? LoggedRequest::Kind::kOrdinal
                              : LoggedRequest::Kind::kRange);
  first_.push_back(is_ordinal ? *number : *offset);
  second_.push_back(is_ordinal ? 0 : *number);
  return absl::OkStatus();
}

absl::Status RequestLog::CheckNotEmpty() const {
  return kinds_.empty() ? absl::InvalidArgumentError("has no requests")
                        : absl::OkStatus();
}

absl::StatusOr<RequestLog> RequestLog::Parse(absl::string_view text) {
  RequestLog log;
  for (uint64_t line_number = 1; !text.empty(); ++line_number) {
    const size_t end = text.find('\n');
    if (const absl::Status status = log.AddLine(text.substr(0, end));
        !status.ok()) {
      return AtLine(status, line_number);
    }
    text.remove_prefix(end == absl::string_view::npos ? text.size() : end + 1);
  }
  QUIRE_RETURN_IF_ERROR(log.CheckNotEmpty());
  return log;
}

absl::StatusOr<RequestLog> RequestLog::Open(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    return absl::NotFoundError(absl::StrCat(path, ": cannot be opened"));
  }
  RequestLog log;
  std::string line;
  for (uint64_t line_number = 1; std::getline(in, line); ++line_number) {
    if (const absl::Status status = log.AddLine(line); !status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": ", AtLine(status, line_number).message()));
    }
  }
  if (in.bad()) {
    return absl::NotFoundError(absl::StrCat(path, ": cannot be read"));
  }
  if (!log.CheckNotEmpty().ok()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": has no requests"));
  }
  return log;
}

LoggedRequest RequestLog::operator[](size_t index) const {
  LoggedRequest request{.kind = kinds_[index]};
  switch (request.kind) {
    case LoggedRequest::Kind::kRange:
      request.offset = first_[index];
      request.size_bytes = second_[index];
      break;
    case LoggedRequest::Kind::kId:
      request.id =
          absl::string_view(ids_).substr(first_[index], second_[index]);
      break;
    case LoggedRequest::Kind::kOrdinal:
      request.ordinal = first_[index];
      break;
  }
  return request;
}

absl::StatusOr<std::string> FormatLoggedRequest(const LoggedRequest& request,
                                                const uint64_t* time_ns) {
  std::string line;
  if (time_ns != nullptr) {
    line = absl::StrFormat("+%d.%09d\t", *time_ns / kNsPerSecond,
                           *time_ns % kNsPerSecond);
  }
  switch (request.kind) {
    case LoggedRequest::Kind::kRange:
      absl::StrAppend(&line, request.offset, "\t", request.size_bytes);
      break;
    case LoggedRequest::Kind::kId:
      if (request.id.find('\n') != absl::string_view::npos) {
        return absl::InvalidArgumentError("an id with a line end");
      }
      absl::StrAppend(&line, "id\t", request.id);
      break;
    case LoggedRequest::Kind::kOrdinal:
      absl::StrAppend(&line, "ordinal\t", request.ordinal);
      break;
  }
  return line;
}

}  // namespace quire
