// SPDX-License-Identifier: GPL-3.0-or-later
//
// Removes from a dictionary what only removed text contains.
#ifndef QUIRE_SERVER_REDACTION_DICTIONARY_REDACTION_H_
#define QUIRE_SERVER_REDACTION_DICTIONARY_REDACTION_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "server/redaction/window_table.h"

namespace quire {

// Limit on the windows that are looked for in one pass over a text: 160 MB.
inline constexpr size_t kWindowsPerPassMax = size_t{1} << 23;

struct RedactedDictionary {
  // The new dictionary, as large as the old one.
  std::string text;
  // Number of bytes that became zero.
  uint64_t zeroed_size_bytes = 0;
  // Windows of the dictionary that only removed text has, and are zero.
  uint64_t window_count = 0;
};

// Adds a whole text to a sink. Its errors are returned.
using AddText = absl::FunctionRef<absl::Status(TextSink&)>;

// The same, in parts, several times: each to any of the sinks. Threads may use
// different sinks at the same time. Every window of the text must be in some
// part.
using AddTextParts =
    absl::FunctionRef<absl::Status(std::span<TextSink* const>)>;

// Zeros the windows (window_table.h) of `dictionary` that the removed text has
// and the kept text does not have. `add_removed` is called once; the dictionary
// is scanned once for each `windows_per_pass` of its windows. `add_kept` is
// called once for each `windows_per_pass` windows of the dictionary that the
// removed text has, with `sink_count` sinks, at least 1. The result does not
// depend on these numbers. Memory: a WindowTable of `windows_per_pass` windows
// with their text, a bit for each byte of the dictionary in each sink, two bits
// for each of them, and a copy of it.
absl::StatusOr<RedactedDictionary> RedactDictionary(
    ByteView dictionary, AddText add_removed, AddTextParts add_kept,
    size_t windows_per_pass = kWindowsPerPassMax, size_t sink_count = 1);

}  // namespace quire

#endif  // QUIRE_SERVER_REDACTION_DICTIONARY_REDACTION_H_
