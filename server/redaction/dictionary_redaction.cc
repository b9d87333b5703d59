// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/redaction/dictionary_redaction.h"

#include <algorithm>
#include <deque>
#include <vector>

#include "codecs/base/status_macros.h"

namespace quire {
namespace {

// Windows of the dictionary, by their positions.
using Windows = std::vector<bool>;

// Returns the windows of [begin, end) whose text `add_text` has, of the
// `candidate_count` that `candidates` has.
absl::Status FindIn(ByteView dictionary, size_t begin, size_t end,
                    const Windows& candidates, size_t candidate_count,
                    size_t sink_count, AddTextParts add_text, Windows& found) {
  WindowTable table(dictionary, candidate_count);
  for (size_t at = begin; at < end;) {
    size_t run_end = at;
    while (run_end < end && candidates[run_end]) {
      ++run_end;
    }
    table.Add(at, run_end);
    at = std::max(run_end, at + 1);
  }
  // By the representatives, which are in [begin, end).
  std::vector<Windows> seen(sink_count, Windows(end - begin));
  std::deque<WindowScanner> scanners;
  std::vector<TextSink*> sinks;
  sinks.reserve(sink_count);
  for (Windows& in_sink : seen) {
    sinks.push_back(
        &scanners.emplace_back(table, [&in_sink, begin](uint32_t position) {
          in_sink[position - begin] = true;
        }));
  }
  QUIRE_RETURN_IF_ERROR(add_text(sinks));
  table.Scan(dictionary.subspan(begin, end - begin + kWindowSizeBytes - 1),
             [&](size_t offset, uint32_t position) {
               found[begin + offset] =
                   std::ranges::any_of(seen, [&](const Windows& in_sink) {
                     return in_sink[position - begin];
                   });
             });
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RedactedDictionary> RedactDictionary(ByteView dictionary,
                                                    AddText add_removed,
                                                    AddTextParts add_kept,
                                                    size_t windows_per_pass,
                                                    size_t sink_count) {
  RedactedDictionary result;
  result.text = std::string(AsText(dictionary));
  if (dictionary.size() < kWindowSizeBytes) {
    return result;
  }
  const size_t window_count = dictionary.size() - kWindowSizeBytes + 1;
  Windows removed(window_count);
  TextCollector collector(
      windows_per_pass,
      [&](ByteView batch, const std::vector<TextInterval>& texts) {
        WindowTable table(batch, batch.size());
        for (const TextInterval& text : texts) {
          table.Add(text.begin, text.end - kWindowSizeBytes + 1);
        }
        table.Scan(dictionary,
                   [&](size_t offset, uint32_t) { removed[offset] = true; });
        return absl::OkStatus();
      });
  QUIRE_RETURN_IF_ERROR(add_removed(collector));
  QUIRE_RETURN_IF_ERROR(collector.Finish());
  Windows kept(window_count);
  for (size_t begin = 0; begin < window_count;) {
    size_t end = begin;
    size_t count = 0;
    for (; end < window_count && count < windows_per_pass; ++end) {
      count += removed[end] ? 1 : 0;
    }
    if (count > 0) {
      QUIRE_RETURN_IF_ERROR(FindIn(dictionary, begin, end, removed, count,
                                   sink_count, add_kept, kept));
    }
    begin = end;
  }
  // End of the windows so far.
  size_t zeros_end = 0;
  for (size_t i = 0; i < dictionary.size(); ++i) {
    if (i < window_count && removed[i] && !kept[i]) {
      ++result.window_count;
      zeros_end = i + kWindowSizeBytes;
    }
    if (i < zeros_end && result.text[i] != '\0') {
      result.text[i] = '\0';
      ++result.zeroed_size_bytes;
    }
  }
  return result;
}

}  // namespace quire
