// SPDX-License-Identifier: Apache-2.0
#include "client/cli/byte_span_text.h"

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"

namespace quire {

absl::StatusOr<uint64_t> ParseNamedSize(const char* name,
                                        const std::string& text) {
  absl::StatusOr<uint64_t> size_bytes = ParseByteSize(text);
  if (!size_bytes.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": ", size_bytes.status().message()));
  }
  return size_bytes;
}

absl::StatusOr<ByteSpan> ParsePart(absl::string_view text) {
  const size_t colon = text.find(':');
  if (colon == absl::string_view::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("--range must be OFFSET:LENGTH, such as 0:1KiB, got ",
                     QuotedText(text)));
  }
  ByteSpan span;
  QUIRE_ASSIGN_OR_RETURN(
      span.offset,
      ParseNamedSize("OFFSET of --range", std::string(text.substr(0, colon))));
  QUIRE_ASSIGN_OR_RETURN(
      span.size_bytes,
      ParseNamedSize("LENGTH of --range", std::string(text.substr(colon + 1))));
  return span;
}

}  // namespace quire
