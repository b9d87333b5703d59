// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_RLZ_ANNOUNCED_TEXT_H_
#define QUIRE_CODECS_RLZ_ANNOUNCED_TEXT_H_

#include <cstdint>

#include "absl/status/status.h"

namespace quire {

// Holds a dictionary builder's caller to the size of the text that it
// announced, in each pass anew. Thread-compatible.
class AnnouncedText {
 public:
  // In bytes.
  explicit AnnouncedText(uint64_t size) : size_(size) {}

  uint64_t size() const { return size_; }

  // How much of the text was added in this pass, in bytes.
  uint64_t position() const { return position_; }

  // Counts `size` bytes more of the pass. Errors: FailedPrecondition  that is
  // more than was announced; nothing is counted then.
  absl::Status Add(uint64_t size);

  // The next pass begins. Errors: FailedPrecondition  less than was announced.
  absl::Status FinishPass();

 private:
  const uint64_t size_;
  uint64_t position_ = 0;
};

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_ANNOUNCED_TEXT_H_
