// SPDX-License-Identifier: GPL-3.0-or-later
//
// Arbitrary bytes as a dictionary's header, as a symbol table's file, and as
// compressed bytes of each method.
#include <cstddef>
#include <cstdint>

#include "codecs/base/bytes.h"
#include "codecs/base/check.h"
#include "codecs/base/endian.h"
#include "server/archive/format/archive_format.h"
#include "server/archive/format/section_compression.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace quire;  // NOLINT(google-build-using-namespace)
  const ByteView input(data, size);
  if (size >= kDictionaryHeaderSizeBytes) {
    const auto header =
        ParseDictionaryHeader(input.first(kDictionaryHeaderSizeBytes));
    QUIRE_CHECK(!header.ok() ||
                EncodeDictionaryHeader(*header) ==
                    AsText(input.first(kDictionaryHeaderSizeBytes)));
  }
  const auto table = ParseSymbolTableFile(input);
  QUIRE_CHECK(!table.ok() || EncodeSymbolTableFile(*table) == AsText(input));
  if (size < 3) {
    return 0;
  }
  const uint64_t text_size = LoadLittleEndian<uint16_t>(data);
  const auto method = static_cast<CompressionMethod>(data[2] % 3);
  const ByteView stored = input.subspan(3);
  const auto text = Decompress(method, stored, text_size);
  QUIRE_CHECK(!text.ok() || text->size() == text_size);
  // Sometimes compress as well.
  if (data[2] >= 240) {
    const auto compressed = CompressStrongly(stored, kSectionEffort);
    QUIRE_CHECK(compressed.ok());
    const auto same = Decompress(compressed->method, AsBytes(compressed->bytes),
                                 stored.size());
    QUIRE_CHECK(same.ok() && *same == AsText(stored));
  }
  return 0;
}
