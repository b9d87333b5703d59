// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_LOADTEST_CODEC_BENCH_CHOSEN_DICTIONARY_H_
#define QUIRE_LOADTEST_CODEC_BENCH_CHOSEN_DICTIONARY_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "loadtest/requests/source_text.h"

namespace quire {

struct ChosenDictionary {
  std::string text;
  // CPU time of this thread, reading the source not included.
  double choose_cpu_seconds = 0;
};

// A dictionary of `size_bytes` for codecs over `text`, by one of the methods
// that codecs/rlz has: "coverage" or "uniform".
// Errors: InvalidArgument  no such method, or a size that it refuses.
//         Unavailable      the text cannot be read any more.
absl::StatusOr<ChosenDictionary> ChooseDictionary(const SourceText& text,
                                                  absl::string_view method,
                                                  uint64_t size_bytes);

// Bytes of `text` as `xz -9e` makes it, which is how archives keep dictionaries
// of up to 64 MiB. Takes about half a second for a MiB, and 700 MB of memory.
// Errors: Internal  liblzma refused.
absl::StatusOr<size_t> XzSizeBytes(absl::string_view text);

// The same by zlib -9: as the programs of "Access Time Tradeoffs in Archive
// Compression" count a dictionary.
// Errors: Internal  zlib refused.
absl::StatusOr<size_t> ZlibSizeBytes(absl::string_view text);

}  // namespace quire

#endif  // QUIRE_LOADTEST_CODEC_BENCH_CHOSEN_DICTIONARY_H_
