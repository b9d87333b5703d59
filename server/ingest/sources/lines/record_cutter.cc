// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/lines/record_cutter.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"

namespace quire {
namespace {

constexpr absl::string_view kByteOrderMark = "\xEF\xBB\xBF";

// Returns the size of the first record of RFC 7464, which may have line ends;
// nullopt if the next one does not follow.
std::optional<size_t> SequenceRecordSize(absl::string_view text) {
  const size_t begin = text.find_first_not_of(kRecordBlanks);
  const size_t end = begin == text.npos ? text.npos : text.find('\x1E', begin);
  return end == text.npos ? std::nullopt : std::optional(end);
}

uint64_t LineEndCount(absl::string_view text, char line_end) {
  return static_cast<uint64_t>(std::count(text.begin(), text.end(), line_end));
}

}  // namespace

absl::string_view WithoutByteOrderMark(absl::string_view text) {
  return absl::StartsWith(text, kByteOrderMark)
             ? text.substr(kByteOrderMark.size())
             : text;
}

void RecordCutter::Start(const LineFormat& format) {
  format_ = format;
  line_ = 0;
  next_line_ = 1;
  held_size_bytes_ = 0;
  is_open_ = false;
}

absl::Status RecordCutter::RestError() const {
  const absl::Status& status = text_.status();
  return status.ok()
             ? absl::OkStatus()
             : absl::Status(status.code(),
                            absl::StrCat(status.message(),
                                         "; left out: the rest of the file, ",
                                         "from line ", line_, " on"));
}

absl::Status RecordCutter::Pass() {
  text_.Take(std::exchange(held_size_bytes_, 0));
  std::vector<uint8_t> sink;
  while (is_open_) {
    sink.resize(LineText::kBufferSizeBytes);
    QUIRE_RETURN_IF_ERROR(Read(sink).status());
  }
  text_.Take(std::exchange(held_size_bytes_, 0));
  return absl::OkStatus();
}

absl::StatusOr<bool> RecordCutter::Next() {
  QUIRE_RETURN_IF_ERROR(Pass());
  if (text_.buffered().empty()) {
    text_.Fill();
  }
  line_ = next_line_;
  const size_t size_max = format_.kind == LineFormat::Kind::kLines
                              ? LineText::kBufferSizeBytes
                              : kRecordSizeBytesMax;
  while (true) {
    // The buffer may hold more, after a compressed file.
    const absl::string_view text = text_.buffered().substr(0, size_max);
    const size_t mark_size_bytes =
        line_ == 1 ? text.size() - WithoutByteOrderMark(text).size() : 0;
    if (TakeEnded(text, mark_size_bytes)) {
      return true;
    }
    if (!text_.at_end() && text.size() < size_max) {
      text_.FillMore(size_max);
      continue;
    }
    // A read error leaves an incomplete record.
    QUIRE_RETURN_IF_ERROR(RestError());
    if (text.empty()) {
      return false;
    }
    if (TakeUnended(text, mark_size_bytes)) {
      return true;
    }
  }
}

bool RecordCutter::TakeEnded(absl::string_view text, size_t mark_size_bytes) {
  const char line_end = format_.dialect.line_end;
  if (!format_.spans_lines) {
    const size_t end = text.find(line_end);
    if (end == text.npos) {
      return false;
    }
    held_size_bytes_ = end + 1;
    ++next_line_;
    return true;
  }
  const absl::string_view record = text.substr(mark_size_bytes);
  const std::optional<size_t> size_bytes =
      format_.kind == LineFormat::Kind::kCsv
          ? CsvRecordSize(record, format_.dialect)
          : SequenceRecordSize(record);
  if (!size_bytes.has_value()) {
    return false;
  }
  held_size_bytes_ = mark_size_bytes + *size_bytes;
  next_line_ += LineEndCount(text.substr(0, held_size_bytes_), line_end);
  return true;
}

bool RecordCutter::TakeUnended(absl::string_view text, size_t mark_size_bytes) {
  const char line_end = format_.dialect.line_end;
  held_size_bytes_ = text.size();
  is_open_ = !text_.at_end() || text.size() < text_.buffered().size();
  if (!format_.spans_lines || !absl::StrContains(text, line_end)) {
    ++next_line_;
    return true;
  }
  const absl::string_view record = text.substr(mark_size_bytes);
  const bool is_last =
      !is_open_ &&
      (format_.kind != LineFormat::Kind::kCsv ||
       CsvRecordSize(absl::StrCat(record, std::string(1, line_end)),
                     format_.dialect) == record.size() + 1);
  if (is_last) {
    next_line_ += LineEndCount(text, line_end) + 1;
  } else {
    format_.spans_lines = false;
    is_open_ = false;
  }
  return is_last;
}

absl::StatusOr<size_t> RecordCutter::Read(MutableByteView out) {
  if (held_size_bytes_ == 0 && is_open_) {
    text_.Fill();
    const absl::string_view text = text_.buffered();
    if (text.empty()) {
      is_open_ = false;
      QUIRE_RETURN_IF_ERROR(RestError());
      return 0;
    }
    const size_t line_end = text.find(format_.dialect.line_end);
    is_open_ = line_end == text.npos;
    held_size_bytes_ = is_open_ ? text.size() : line_end + 1;
  }
  const size_t size_bytes = std::min(out.size(), held_size_bytes_);
  std::memcpy(out.data(), text_.buffered().data(), size_bytes);
  text_.Take(size_bytes);
  held_size_bytes_ -= size_bytes;
  return size_bytes;
}

size_t RecordCutter::Skip(uint64_t size_bytes) {
  const auto skipped =
      static_cast<size_t>(std::min<uint64_t>(size_bytes, held_size_bytes_));
  text_.Take(skipped);
  held_size_bytes_ -= skipped;
  return skipped;
}

}  // namespace quire
