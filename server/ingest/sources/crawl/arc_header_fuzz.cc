// SPDX-License-Identifier: GPL-3.0-or-later
//
// Arbitrary bytes as an ARC: what the header parser accepts is part of the
// line, and the reader returns all bytes, or reports an error.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/strings/match.h"

#include "codecs/base/check.h"
#include "server/ingest/sources/crawl/arc_header.h"
#include "server/ingest/sources/crawl/warc_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const quire::ByteView text(data, size);
  const absl::StatusOr<quire::WarcHeader> header = quire::ParseArcHeader(text);
  QUIRE_CHECK(!header.ok() ||
              (*header->content_length <= uint64_t{INT64_MAX} &&
               absl::StartsWith(quire::AsText(text),
                                absl::string_view(header->target_uri.data(),
                                                  header->target_uri.size()))));
  quire::WarcReader reader(
      std::make_unique<quire::MemoryStream>(text, size_t{1} + size % 100),
      "fuzz", quire::RecordFormat::kArc);
  std::vector<uint8_t> piece(1 + size % 70);
  size_t position = 0;
  while (true) {
    const auto document = reader.Next();
    if (!document.ok()) {
      return 0;
    }
    if (!document->has_value()) {
      break;
    }
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
  }
  QUIRE_CHECK(position == text.size());
  return 0;
}
