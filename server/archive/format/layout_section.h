// SPDX-License-Identifier: GPL-3.0-or-later
//
// The layout of a segment whose stored text differs from the text of its
// documents (FORMAT.md, "Layout"), and checksums of the documents' text
// (FORMAT.md, "Text checksums").
#ifndef QUIRE_SERVER_ARCHIVE_FORMAT_LAYOUT_SECTION_H_
#define QUIRE_SERVER_ARCHIVE_FORMAT_LAYOUT_SECTION_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"
#include "codecs/reorder/stored_run.h"

namespace quire {

// A piece of a segment's text. Pieces follow each other without gaps.
struct TextChecksum {
  uint64_t size_bytes = 0;
  // Checksum64() of the piece.
  uint64_t checksum = 0;

  bool operator==(const TextChecksum&) const = default;
};

// Divides a text into pieces of 1 MiB, the last one shorter, and takes their
// checksums. Movable. Thread-compatible.
class TextChecksummer {
 public:
  static constexpr uint64_t kPieceSizeBytes = uint64_t{1} << 20;

  void Add(ByteView text);
  // Returns the checksums of all text since the last call.
  std::vector<TextChecksum> Take();

 private:
  void EndPiece();

  std::vector<TextChecksum> checksums_;
  // Checksum of the current piece; null before its first byte.
  std::unique_ptr<Checksummer64> checksum_;
  uint64_t piece_size_bytes_ = 0;
};

// The section of `checksums`.
std::string EncodeTextChecksums(std::span<const TextChecksum> checksums);

// `section` is untrusted. Sizes in the result are at least 1 and add up to
// `size_bytes`. Errors: DataLoss  not the checksums of `size_bytes` of text.
absl::StatusOr<std::vector<TextChecksum>> ParseTextChecksums(
    ByteView section, uint64_t size_bytes);

struct LayoutSection {
  // Size of the stored text; each byte of it is in a run.
  uint64_t stored_text_size_bytes = 0;
  // Runs in the order of the text; no run continues the one before it.
  std::vector<StoredRun> runs;
  // Checksums of the documents' text, for a section of their own.
  std::vector<TextChecksum> checksums;
};

// The section of `layout`, without the checksums.
std::string EncodeLayout(const LayoutSection& layout);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_FORMAT_LAYOUT_SECTION_H_
