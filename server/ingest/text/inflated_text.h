// SPDX-License-Identifier: GPL-3.0-or-later
//
// A text with its compressed members inflated, for choosing the dictionary of a
// codec that inflates; and the offsets of the members, around which blocks are
// cut.
#ifndef QUIRE_SERVER_INGEST_INFLATED_TEXT_H_
#define QUIRE_SERVER_INGEST_INFLATED_TEXT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/deflate/deflate_finder.h"
#include "codecs/payload/recipe.h"
#include "server/archive/format/archive_description.h"
#include "server/ingest/blocks/block_cutter.h"
#include "server/ingest/sources/spool.h"
#include "server/ingest/sources/streams/byte_stream.h"

namespace quire {

struct InflatedTextOptions {
  // Directory of an unnamed file that holds the text.
  std::string spool_directory;
  // Members with more text stay compressed. At most kInflatedLargeSizeMax.
  size_t member_text_size_max = kInflatedBlockSizeMax;
  // At least 1. The text does not depend on it. Each takes at most some 45 MiB
  // and four times the longest text of a member.
  uint32_t threads = 1;
  // If it becomes true, the search ends with Cancelled, within about a
  // second. May be null; must outlive the inflater.
  const std::atomic<bool>* cancel = nullptr;
};

struct InflatedText {
  std::shared_ptr<const InputFile> file;
  uint64_t size_bytes = 0;
  // In order of offset; they do not overlap. Takes 24 bytes for each.
  std::vector<MemberPlace> members;
  // In order of container.
  std::vector<FoundMembers> found;
  // Parameters of the members. Takes 16 bytes for each.
  KnownDeflateMembers known;

  // Members with too much text or too many bytes to be inflated.
  FoundMembers::Refused Oversized() const;

  // True if the members are a large enough part of a text of `raw_size_bytes`.
  // Inflating a few changes the dictionary and the block boundaries, which may
  // make an archive larger by some 0.03 % of the text.
  bool IsWorthInflating(uint64_t raw_size_bytes) const;
};

// Thread-compatible.
class TextInflater {
 public:
  // Errors: Unavailable  the directory cannot hold the text.
  static absl::StatusOr<std::unique_ptr<TextInflater>> Create(
      const InflatedTextOptions& options);

  // Adds the next bytes of the text.
  // Errors: Unavailable        no space left in the directory.
  //         ResourceExhausted  no memory, or no more threads.
  //         Cancelled          InflatedTextOptions::cancel.
  absl::Status Add(ByteView piece);

  // The inflater is unusable afterwards. Errors: as Add().
  absl::StatusOr<InflatedText> Finish();

 private:
  TextInflater(Spool spool, const InflatedTextOptions& options);

  // A part of the text that one thread searches for members.
  struct Window {
    // Offsets are from the front of `pending_`.
    std::vector<MemberPlace> members;
    // Concatenated text of the first of them.
    std::vector<uint8_t> texts;
    size_t with_text_count = 0;
    KnownDeflateMembers known;
  };

  // Searches the first windows of `pending_` for members on several threads,
  // and removes them from its front.
  absl::Status InflateWindows(size_t count);
  void FindMembers(DeflateFinder& finder, size_t index);
  absl::Status FindInThreads(size_t count);
  // Appends the result of a window to the spool.
  absl::Status Append(const Window& window);
  // Appends the text from the end of the last call to `end`.
  absl::Status AppendGap(size_t end);

  bool IsCancelled() const { return cancel_ != nullptr && cancel_->load(); }

  Spool spool_;
  const std::atomic<bool>* const cancel_;
  std::vector<MemberPlace> members_;
  KnownDeflateMembers known_;
  // The text from `pending_offset_` on; the first `appended_size_` bytes are
  // already in the spool.
  std::vector<uint8_t> pending_;
  uint64_t pending_offset_ = 0;
  size_t appended_size_ = 0;
  // One per thread.
  std::vector<std::unique_ptr<DeflateFinder>> finders_;
  std::vector<Window> windows_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_INFLATED_TEXT_H_
