// SPDX-License-Identifier: GPL-3.0-or-later
//
// Collects the captures of a segment while it is written, and sorts them.
#ifndef QUIRE_SERVER_ARCHIVE_CAPTURES_CAPTURES_BUILDER_H_
#define QUIRE_SERVER_ARCHIVE_CAPTURES_CAPTURES_BUILDER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "server/archive/captures/capture_leaf.h"
#include "server/archive/container/container_part.h"

namespace quire {

// Holds some 60 bytes and the key for each capture. Thread-compatible.
class CapturesBuilder {
 public:
  // Adds a capture, in any order. REQUIRES: its document has no other.
  // Errors: InvalidArgument  over a limit of the format.
  absl::Status Add(const SegmentCapture& capture);

  bool empty() const { return entries_.empty(); }

  // Appends all parts to `data` and returns the head of the sub-section. The
  // builder is unusable afterwards. REQUIRES: !empty(). Errors: Internal.
  absl::StatusOr<std::string> Build(ContainerData& data);

 private:
  // A capture in a chunk: its key, and what follows it.
  struct Entry {
    const char* text = nullptr;
    int64_t time_ms = 0;
    uint32_t key_size_bytes = 0;
    uint32_t ordinal = 0;
    uint32_t url_size_bytes = 0;
    // kStatedUrl: the URL follows the key. Otherwise SegmentCapture's.
    uint32_t id_skip_bytes = 0;
    uint16_t status = 0;
    uint16_t digest_size_bytes = 0;
    bool has_sha1 = false;
  };

  static constexpr uint32_t kStatedUrl = UINT32_MAX;

  static absl::string_view KeyOf(const Entry& entry) {
    return {entry.text, entry.key_size_bytes};
  }

  static SegmentCapture CaptureOf(const Entry& entry);
  char* Allocate(size_t size_bytes);

  // Chunks, so that texts never move.
  std::vector<std::unique_ptr<char[]>> chunks_;
  size_t chunk_left_ = 0;
  char* chunk_next_ = nullptr;
  std::vector<Entry> entries_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_CAPTURES_CAPTURES_BUILDER_H_
