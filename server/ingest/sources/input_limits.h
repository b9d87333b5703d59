// SPDX-License-Identifier: GPL-3.0-or-later
//
// Limits on inputs: their claims and their decompressed size.
#ifndef QUIRE_SERVER_INGEST_SOURCES_INPUT_LIMITS_H_
#define QUIRE_SERVER_INGEST_SOURCES_INPUT_LIMITS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "server/ingest/sources/source.h"

namespace quire {

// Default limit on all inputs of a build together.
inline constexpr uint64_t kInputSizeBytesMax = uint64_t{16} << 40;
// A compressed or sparse input may expand to this many bytes per byte on disk
// (gzip itself reaches 1,032), or to kTrustedInputSizeBytes if that is more.
inline constexpr uint64_t kTrustedExpansion = 1024;
inline constexpr uint64_t kTrustedInputSizeBytes = uint64_t{64} << 30;

// Returns the maximum decompressed size of an input of `stored_size_bytes` on
// disk. `limit` is the user's, if any.
uint64_t InputSizeBytesMax(std::optional<uint64_t> limit,
                           uint64_t stored_size_bytes);

// Errors: always ResourceExhausted. `what` is the message without expectation
//   and remedy: "INPUT: decompresses to more".
absl::Status InputTooLarge(absl::string_view what, uint64_t size_bytes_max);

// Attributes of documents that are dropped.
struct DroppedAttributes {
  // Over a limit of the format.
  uint64_t count = 0;
  // Position and size of the first of these, for a message.
  std::string first;
  // Documents whose mode or owner is dropped (SourceDocument).
  uint64_t mode_count = 0;
  uint64_t owner_count = 0;
};

// Checks the documents of every pass of a build, so that the first pass finds
// those that the archive cannot hold.
// Thread-compatible.
class InputLimits {
 public:
  // `limit` is the user's, for all inputs together, in bytes of documents.
  explicit InputLimits(std::optional<uint64_t> limit) : limit_(limit) {}

  // Counts restart with each pass.
  void StartPass();

  // Errors: those of Source::StoredSizeBytes().
  absl::Status StartSource(const Source& source);

  // Checks the claims of the input about `reader`'s document before its bytes
  // are read. Attributes that are too long or out of range are removed from
  // `document` and counted.
  // Errors: InvalidArgument    an id that the archive cannot hold.
  //         ResourceExhausted  the claimed size is over the limit.
  absl::Status StartDocument(const Source& source, const SourceReader& reader,
                             SourceDocument& document);

  // Counts bytes of the current document, read or skipped.
  // Errors: ResourceExhausted  over the limit.
  absl::Status AddText(const Source& source, const SourceReader& reader,
                       uint64_t size_bytes);

  // Dropped so far in this pass.
  const DroppedAttributes& dropped() const { return dropped_; }

 private:
  absl::Status CheckSize(const Source& source, const SourceReader& reader,
                         uint64_t size_bytes) const;

  const std::optional<uint64_t> limit_;
  // Remaining limits of all inputs and of the current one.
  uint64_t rest_bytes_ = 0;
  uint64_t source_rest_bytes_ = 0;
  uint64_t source_size_bytes_max_ = 0;
  DroppedAttributes dropped_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_INPUT_LIMITS_H_
