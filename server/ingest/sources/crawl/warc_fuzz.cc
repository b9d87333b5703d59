// SPDX-License-Identifier: GPL-3.0-or-later
//
// Arbitrary bytes: the WARC reader returns all of them, or reports an error.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "codecs/base/check.h"
#include "server/ingest/sources/crawl/warc_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) {
    return 0;
  }
  // The first byte chooses the sizes of the stream's pieces.
  const quire::ByteView text(data + 1, size - 1);
  quire::WarcReader reader(std::make_unique<quire::MemoryStream>(
                               text, size_t{1} + size_t{data[0]} * 16),
                           "fuzz");
  std::vector<uint8_t> piece(1 + data[0]);
  size_t position = 0;
  while (true) {
    const auto document = reader.Next();
    if (!document.ok()) {
      return 0;
    }
    if (!document->has_value()) {
      break;
    }
    const size_t start = position;
    while (true) {
      const absl::StatusOr<size_t> got = reader.Read(piece);
      if (!got.ok()) {
        return 0;
      }
      if (*got == 0) {
        break;
      }
      QUIRE_CHECK(position + *got <= text.size() &&
                  std::equal(piece.begin(),
                             piece.begin() + static_cast<ptrdiff_t>(*got),
                             text.begin() + static_cast<ptrdiff_t>(position)));
      position += *got;
    }
    QUIRE_CHECK((*document)->size_bytes.value_or(position - start) ==
                position - start);
  }
  QUIRE_CHECK(position == text.size());
  return 0;
}
