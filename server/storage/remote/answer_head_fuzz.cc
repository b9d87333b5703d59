// SPDX-License-Identifier: GPL-3.0-or-later
//
// Whatever a store sends as the head of an answer, only the right one is taken.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

#include "server/storage/remote/answer_head.h"
#include "server/storage/remote/store_address.h"

namespace {

void Check(bool condition) {
  if (!condition) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size_bytes) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size_bytes);
  quire::AnswerHead head;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    head.AddLine(line);
    if (const auto range = quire::ParseContentRange(line); range.has_value()) {
      Check(range->first <= range->last && range->last < range->object_size);
    }
  }
  const quire::ContentRange wanted = {
      .first = 0, .last = 9, .object_size = 100};
  if (quire::CheckAnswerHead(head, {.range = wanted, .etag = "\"a\""}).ok()) {
    Check(head.status == 206 && head.etag == "\"a\"" &&
          head.content_length.value_or(10) == 10);
  }
  const auto address = quire::ParseStoreAddress(text, "", "us-east-1");
  if (address.ok()) {
    Check(address->UrlOf("MANIFEST").find_first_of("\r\n ") ==
          std::string::npos);
  }
  return 0;
}
