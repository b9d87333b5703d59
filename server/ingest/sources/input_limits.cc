// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/input_limits.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "server/archive/format/archive_format.h"

namespace quire {
namespace {

std::string PlaceOf(const Source& source, const SourceReader& reader) {
  return absl::StrCat(source.name(), ": ", reader.Place());
}

}  // namespace

uint64_t InputSizeBytesMax(std::optional<uint64_t> limit,
                           uint64_t stored_size_bytes) {
  if (limit.has_value()) {
    return *limit;
  }
  const uint64_t stored_max = kInputSizeBytesMax / kTrustedExpansion;
  return std::max(kTrustedInputSizeBytes,
                  std::min(stored_size_bytes, stored_max) * kTrustedExpansion);
}

absl::Status InputTooLarge(absl::string_view what, uint64_t size_bytes_max) {
  return absl::ResourceExhaustedError(absl::StrCat(
      what, " than the limit of ", FormatByteSize(size_bytes_max),
      ", which guards against inputs that expand without bound; if this size ",
      "is right, give a larger --input-size-max"));
}

void InputLimits::StartPass() {
  rest_bytes_ = limit_.value_or(kInputSizeBytesMax);
  dropped_ = {};
}

absl::Status InputLimits::StartSource(const Source& source) {
  QUIRE_ASSIGN_OR_RETURN(const std::optional<uint64_t> stored,
                         source.StoredSizeBytes());
  source_size_bytes_max_ = stored.has_value()
                               ? InputSizeBytesMax(limit_, *stored)
                               : limit_.value_or(kInputSizeBytesMax);
  source_rest_bytes_ = source_size_bytes_max_;
  return absl::OkStatus();
}

absl::Status InputLimits::CheckSize(const Source& source,
                                    const SourceReader& reader,
                                    uint64_t size_bytes) const {
  if (size_bytes <= std::min(rest_bytes_, source_rest_bytes_)) {
    return absl::OkStatus();
  }
  const bool is_total = size_bytes > rest_bytes_;
  return InputTooLarge(
      absl::StrCat(PlaceOf(source, reader), ": with the ",
                   FormatByteSize(size_bytes), " found here ",
                   is_total ? "the inputs hold more" : "this input holds more"),
      is_total ? limit_.value_or(kInputSizeBytesMax) : source_size_bytes_max_);
}

absl::Status InputLimits::StartDocument(const Source& source,
                                        const SourceReader& reader,
                                        SourceDocument& document) {
  if (document.id.size() > kDocumentIdSizeBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        PlaceOf(source, reader), ": its id, ", QuotedText(document.id, 60),
        ", is ", FormatCount(document.id.size()), " bytes long; an id must be ",
        "at most ", FormatCount(kDocumentIdSizeBytesMax),
        " bytes: shorten it in the input, or leave the document out"));
  }
  if (document.size_bytes.has_value()) {
    QUIRE_RETURN_IF_ERROR(CheckSize(source, reader, *document.size_bytes));
  }
  dropped_.mode_count += document.has_mode ? 1 : 0;
  dropped_.owner_count += document.has_owner ? 1 : 0;
  const auto drop = [&](const std::string& what) {
    if (dropped_.count++ == 0) {
      dropped_.first = absl::StrCat(PlaceOf(source, reader), ": ", what);
    }
  };
  const auto check = [&](const char* name, std::string& value) {
    if (value.size() > kAttributeSizeBytesMax) {
      drop(absl::StrCat(name, " of ", FormatCount(value.size()), " bytes"));
      value.clear();
    }
  };
  check("a media type", document.media_type);
  check("a record type", document.record_type);
  const int64_t time_ms = document.capture_time_ms.value_or(0);
  if (time_ms > kCaptureTimeMsMax || time_ms < -kCaptureTimeMsMax) {
    drop(absl::StrCat("a capture time of ", time_ms, " ms since 1970"));
    document.capture_time_ms.reset();
  }
  return absl::OkStatus();
}

absl::Status InputLimits::AddText(const Source& source,
                                  const SourceReader& reader,
                                  uint64_t size_bytes) {
  QUIRE_RETURN_IF_ERROR(CheckSize(source, reader, size_bytes));
  rest_bytes_ -= size_bytes;
  source_rest_bytes_ -= size_bytes;
  return absl::OkStatus();
}

}  // namespace quire
