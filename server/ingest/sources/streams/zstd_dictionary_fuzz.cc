// SPDX-License-Identifier: GPL-3.0-or-later
//
// Arbitrary bytes as a .warc.zst: the dictionary at its start is read or
// refused, and the frames after it are decoded with it up to a limit.
#include <cstddef>
#include <cstdint>
#include <memory>

#include "codecs/base/check.h"
#include "server/ingest/sources/streams/zstd_dictionary.h"
#include "server/ingest/sources/streams/zstd_stream.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr uint64_t kTextSizeBytesMax = 1 << 20;
  const quire::ByteView bytes(data, size);
  // The frame's contents alone: mutations need not fit its size.
  quire::ZstdDictionary::Parse(bytes).IgnoreError();
  quire::MemoryStream start(bytes);
  const auto dictionary = quire::ReadZstdDictionary(start, "fuzz");
  if (!dictionary.ok()) {
    return 0;
  }
  auto text = quire::OpenZstdStream(
      std::make_unique<quire::MemoryStream>(bytes, size_t{1} + size % 1000),
      "fuzz", *dictionary, uint64_t{8} << 20);
  QUIRE_CHECK(text.ok());
  quire::BoundedStream bounded(*std::move(text), "fuzz", kTextSizeBytesMax);
  const absl::StatusOr<uint64_t> read = bounded.Skip(UINT64_MAX);
  QUIRE_CHECK(!read.ok() || *read <= kTextSizeBytesMax);
  // Also past damage.
  const auto skipped =
      bounded.SkipPart(0, [](absl::string_view /*text*/) { return true; });
  QUIRE_CHECK(!skipped.ok() || !skipped->has_value() ||
              (*skipped)->offset + (*skipped)->size_bytes <= size);
  return 0;
}
