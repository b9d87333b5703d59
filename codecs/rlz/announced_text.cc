// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/announced_text.h"

#include "absl/strings/str_cat.h"

namespace quire {

absl::Status AnnouncedText::Add(uint64_t size) {
  if (size > size_ - position_) {
    return absl::FailedPreconditionError(
        absl::StrCat("the text is longer than the ", size_,
                     " bytes counted before: it changed meanwhile"));
  }
  position_ += size;
  return absl::OkStatus();
}

absl::Status AnnouncedText::FinishPass() {
  if (position_ != size_) {
    return absl::FailedPreconditionError(
        absl::StrCat("the text has ", position_, " bytes, not the ", size_,
                     " counted before: it changed meanwhile"));
  }
  position_ = 0;
  return absl::OkStatus();
}

}  // namespace quire
