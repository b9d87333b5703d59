// SPDX-License-Identifier: GPL-3.0-or-later
//
// A text with its compressed members inflated: what the dictionary of a codec
// that inflates is chosen from.
#ifndef QUIRE_SERVER_INGEST_INFLATED_TEXT_H_
#define QUIRE_SERVER_INGEST_INFLATED_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/inflate/inflated_block.h"
#include "server/ingest/sources/byte_stream.h"
#include "server/ingest/sources/spool.h"

namespace quire {

struct InflatedTextOptions {
  // Where a file without a name holds the text.
  std::string spool_directory;
  // Members are inflated in blocks of this size, as the codec does.
  size_t block_size_bytes = 0;
  // At least 1. The text does not depend on it. Each takes memory for some 16
  // blocks and, in each of them, for what its members become: at most 1 MiB.
  uint32_t threads = 1;
};

struct InflatedText {
  std::shared_ptr<const InputFile> file;
  uint64_t size_bytes = 0;
  uint64_t member_count = 0;
};

// Thread-compatible.
class TextInflater {
 public:
  // Errors: Unavailable  the directory cannot hold the text.
  static absl::StatusOr<std::unique_ptr<TextInflater>> Create(
      const InflatedTextOptions& options);

  // The next bytes of the text.
  // Errors: Unavailable        no space is left in the directory.
  //         ResourceExhausted  no memory, or no more threads.
  absl::Status Add(ByteView piece);

  // The inflater is of no more use. Errors: as Add().
  absl::StatusOr<InflatedText> Finish();

 private:
  TextInflater(Spool spool, const InflatedTextOptions& options);

  // Inflates the blocks of `pending_` on several threads.
  absl::Status InflateBatch();
  // Every `threads`-th block from the one of this index on.
  void InflateBlocks(size_t first);

  const size_t block_size_bytes_;
  const size_t batch_size_bytes_;
  Spool spool_;
  uint64_t member_count_ = 0;
  std::vector<uint8_t> pending_;
  // One for each thread.
  std::vector<std::unique_ptr<BlockInflater>> inflaters_;
  // One for each block of a batch.
  std::vector<std::vector<uint8_t>> texts_;
  std::vector<uint64_t> member_counts_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_INFLATED_TEXT_H_
