// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_RLZ_ANNOUNCED_TEXT_H_
#define QUIRE_CODECS_RLZ_ANNOUNCED_TEXT_H_

#include <cstdint>

#include "absl/status/status.h"

namespace quire {

// Checks that each pass over a dictionary builder's text has the announced
// size. Thread-compatible.
class AnnouncedText {
 public:
  // In bytes.
  explicit AnnouncedText(uint64_t size) : size_(size) {}

  uint64_t size() const { return size_; }

  // Bytes added in this pass.
  uint64_t position() const { return position_; }

  // Counts `size` more bytes of the pass. Errors: FailedPrecondition  more than
  // was announced; then nothing is counted.
  absl::Status Add(uint64_t size);

  // Starts the next pass. Errors: FailedPrecondition  less than was announced.
  absl::Status FinishPass();

 private:
  const uint64_t size_;
  uint64_t position_ = 0;
};

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_ANNOUNCED_TEXT_H_
