// SPDX-License-Identifier: GPL-3.0-or-later
//
// Parses any bytes as a manifest, and as the message of a valid frame. An
// accepted manifest must be the same after it is written again.
#include <cstddef>
#include <cstdint>
#include <string>

#include "codecs/base/bytes.h"
#include "codecs/base/check.h"
#include "server/archive/format/archive_format.h"
#include "server/archive/format/manifest.h"
#include "server/archive/segment_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace quire;  // NOLINT(google-build-using-namespace)
  const ByteView input(data, size);
  FieldWriter framed;
  framed.Bytes(kManifestMagic);
  framed.Integer(kFormatVersion);
  framed.Integer(static_cast<uint32_t>(size));
  framed.Bytes(input);
  framed.Integer(framed.Checksum());
  const std::string file = framed.Take();
  for (const ByteView bytes : {input, AsBytes(file)}) {
    const auto manifest = ParseManifest(bytes);
    if (!manifest.ok()) {
      continue;
    }
    manifest->Describe(bytes.size());
    for (const ManifestSegment& segment : manifest->segments) {
      SegmentReader::EstimateMemoryBytes(segment);
    }
    const std::string again = EncodeManifest(*manifest);
    const auto same = ParseManifest(AsBytes(again));
    QUIRE_CHECK(same.ok() && EncodeManifest(*same) == again &&
                same->DeriveUuid() == manifest->DeriveUuid());
  }
  return 0;
}
