// SPDX-License-Identifier: GPL-3.0-or-later
//
// What an input may claim, and what it may become when it is decompressed.
#ifndef QUIRE_SERVER_INGEST_SOURCES_INPUT_LIMITS_H_
#define QUIRE_SERVER_INGEST_SOURCES_INPUT_LIMITS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "server/ingest/sources/source.h"

namespace quire {

// Without a limit from the user, all inputs of a build hold at most this.
inline constexpr uint64_t kInputSizeBytesMax = uint64_t{16} << 40;
// And a compressed or sparse input holds at most this many bytes for each byte
// that it takes on disk (gzip itself reaches 1,032), where that is more than
// kTrustedInputSizeBytes.
inline constexpr uint64_t kTrustedExpansion = 1024;
inline constexpr uint64_t kTrustedInputSizeBytes = uint64_t{64} << 30;

// What an input that takes `stored_size_bytes` on disk may hold, decompressed.
// `limit` is what the user gave, if anything.
uint64_t InputSizeBytesMax(std::optional<uint64_t> limit,
                           uint64_t stored_size_bytes);

// Errors: always ResourceExhausted. `what` is all of the message but what was
// expected and what to do: "INPUT: decompresses to more".
absl::Status InputTooLarge(absl::string_view what, uint64_t size_bytes_max);

// Attributes that were not kept because they were over a limit of the format.
struct DroppedAttributes {
  uint64_t count = 0;
  // Where the first of them was and how large it was; for a message.
  std::string first;
};

// Checks the documents of all passes of a build as they come, so that the first
// pass already finds what the archive could not hold.
// Thread-compatible.
class InputLimits {
 public:
  // `limit` is the user's, for all inputs together, in bytes of documents.
  explicit InputLimits(std::optional<uint64_t> limit) : limit_(limit) {}

  // Each pass counts anew.
  void StartPass();

  // Errors: those of Source::StoredSizeBytes().
  absl::Status StartSource(const Source& source);

  // Checks what the input says of the document that `reader` is at, before its
  // bytes are read. Attributes that are too long or out of range are removed
  // from `document` and counted.
  // Errors: InvalidArgument    an id that the archive cannot hold.
  //         ResourceExhausted  the size that it claims is over the limit.
  absl::Status StartDocument(const Source& source, const SourceReader& reader,
                             SourceDocument& document);

  // Counts bytes of the current document, read or passed over.
  // Errors: ResourceExhausted  over the limit.
  absl::Status AddText(const Source& source, const SourceReader& reader,
                       uint64_t size_bytes);

  // In this pass, up to now.
  const DroppedAttributes& dropped() const { return dropped_; }

 private:
  absl::Status CheckSize(const Source& source, const SourceReader& reader,
                         uint64_t size_bytes) const;

  const std::optional<uint64_t> limit_;
  // What is left of the limits of all inputs and of the current one.
  uint64_t rest_bytes_ = 0;
  uint64_t source_rest_bytes_ = 0;
  uint64_t source_size_bytes_max_ = 0;
  DroppedAttributes dropped_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_INPUT_LIMITS_H_
