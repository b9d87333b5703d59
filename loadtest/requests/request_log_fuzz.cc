// SPDX-License-Identifier: Apache-2.0
//
// Any text is a request log or is refused; what was read is written and read
// again as the same.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/check.h"
#include "loadtest/requests/request_log.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::StatusOr<quire::RequestLog> log = quire::RequestLog::Parse(
      absl::string_view(reinterpret_cast<const char*>(data), size));
  if (!log.ok()) {
    return 0;
  }
  std::string text;
  for (size_t i = 0; i < log->size(); ++i) {
    const uint64_t time_ns = log->has_times() ? log->time_ns(i) : 0;
    const absl::StatusOr<std::string> line = quire::FormatLoggedRequest(
        (*log)[i], log->has_times() ? &time_ns : nullptr);
    QUIRE_CHECK(line.ok());
    text += *line + "\n";
  }
  const absl::StatusOr<quire::RequestLog> again =
      quire::RequestLog::Parse(text);
  QUIRE_CHECK(again.ok() && again->size() == log->size());
  for (size_t i = 0; i < log->size(); ++i) {
    const quire::LoggedRequest a = (*log)[i];
    const quire::LoggedRequest b = (*again)[i];
    QUIRE_CHECK(a.kind == b.kind && a.offset == b.offset &&
                a.size_bytes == b.size_bytes && a.ordinal == b.ordinal &&
                a.id == b.id && log->has_times() == again->has_times() &&
                !(log->has_times() && log->time_ns(i) != again->time_ns(i)));
  }
  return 0;
}
