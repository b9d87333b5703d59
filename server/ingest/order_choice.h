// SPDX-License-Identifier: GPL-3.0-or-later
//
// Decides which orders of a text a build tries (order_trial.h).
#ifndef QUIRE_SERVER_INGEST_ORDER_CHOICE_H_
#define QUIRE_SERVER_INGEST_ORDER_CHOICE_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "server/ingest/build_options.h"
#include "server/ingest/text/reordered_text.h"

namespace quire {

// Returns the reordering options of a text of `text_size_bytes` for `build` in
// `mode`, which is not kOff. `directory` is that of the archive; kAuto is the
// order that it tries for codecs without a dictionary.
ReorderOptions ReorderOptionsFor(const BuildOptions& build, ReorderMode mode,
                                 std::string directory,
                                 uint64_t text_size_bytes);

// Returns false if `text` is that of the documents in order.
bool HasLayout(const ReorderedText& text);

// Returns false if duplicates are so little of the text, of `text_size_bytes`,
// that an archive with a dictionary cannot become smaller by the part
// `gain_min`. Counts text by the size of samples compressed with zstd. Errors:
// those of ReadStoredText().
absl::StatusOr<bool> MayBeWorthReordering(const ReorderedText& text,
                                          uint64_t text_size_bytes,
                                          double gain_min);

// Returns false if similar text need not be moved together, as a dictionary of
// `dictionary_size_bytes` has the repeated text of `text_size_bytes`: it is
// smaller than its limit, or is itself most of the text.
bool MayBeWorthMoving(uint64_t dictionary_size_bytes,
                      uint64_t dictionary_size_bytes_max,
                      uint64_t text_size_bytes);

// Returns the memory of all segments' runs, in bytes.
uint64_t RunMemoryBytes(const ReorderedText& text);

// Returns the approximate size of all segments' layouts in the archive.
double LayoutSizeBytes(const ReorderedText& text);

// Estimates the size of the dictionary in the archive: about a fifth larger
// than it becomes. Errors: Cancelled.
absl::StatusOr<double> DictionarySizeBytes(ByteView dictionary,
                                           const std::atomic<bool>* cancel);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_ORDER_CHOICE_H_
