// SPDX-License-Identifier: GPL-3.0-or-later
//
// Descriptions of segments without a manifest, compared with the manifest.
// archive_salvage_test has the damage.
#include <fcntl.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "server/archive/files/archive_directory.h"
#include "server/archive/segment_reader.h"
#include "testing/archive/archive_testing.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

// Blocks of one size, or of several that do not repeat.
TestBlockSizes RandomSizes(std::mt19937_64& random) {
  TestBlockSizes sizes(4096);
  if (random() % 2 == 0) {
    sizes.sizes_bytes.clear();
    for (size_t i = 0; i < 1 + random() % 6; ++i) {
      sizes.sizes_bytes.push_back(1 + random() % 9000);
    }
  }
  return sizes;
}

// Writes segments, some with their text in another order.
void WriteSegments(const std::string& path, std::mt19937_64& random) {
  ArchiveWriterOptions options;
  options.codec = ParseCodecSpec("zstd").value();
  options.block_size_bytes = 4096;
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto codec,
      MakePayloadCodec(options.codec, nullptr, CodecUse::kEncodeAndDecode));
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto writer,
                             ArchiveWriter::Create(path, options, nullptr));
  for (int i = 0; i < 4; ++i) {
    TestSegment segment = RandomTestSegment(1 + random() % 30, 6000, random);
    if (random() % 2 == 0) {
      QUIRE_ASSERT_OK(
          WriteTestSegment(segment, RandomSizes(random), codec.get(), *writer));
      continue;
    }
    segment.push_back({.id = "halves", .text = "second halffirst half"});
    std::string stored;
    for (const TestDocument& document : segment) {
      stored += document.text;
    }
    const uint64_t size = stored.size();
    std::rotate(stored.begin(), stored.end() - 10, stored.end());
    QUIRE_ASSERT_OK(
        WriteTestSegment(segment, stored, {{size - 10, 10}, {10, 0}},
                         RandomSizes(random), codec.get(), *writer));
  }
  QUIRE_ASSERT_OK(writer->Commit());
}

TEST(SegmentRecoveryTest, DescribesWhatTheManifestHas) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937_64 random(seed);
    const TemporaryDirectory directory;
    const std::string path = directory / "a";
    ASSERT_NO_FATAL_FAILURE(WriteSegments(path, random));
    QUIRE_ASSERT_OK_AND_ASSIGN(const ArchiveDirectory archive,
                               OpenKnownArchive(path));
    const Manifest& manifest = archive.manifest;
    ASSERT_EQ(manifest.segments.size(), 4u);
    for (const ManifestSegment& segment : manifest.segments) {
      const std::string name = SegmentFileName(segment.number);
      QUIRE_ASSERT_OK_AND_ASSIGN(
          const ReadableFile file,
          OpenReadableFile(archive.fd.get(), name, name));
      QUIRE_ASSERT_OK_AND_ASSIGN(
          const ManifestSegment found,
          SegmentReader::Describe(
              file, {.number = segment.number,
                     .block_size_bytes = manifest.block_size_bytes,
                     .codec_id = static_cast<uint32_t>(manifest.codec.id)}));
      ManifestSegment expected = segment;
      // Only the manifest has the level.
      expected.codec_level = 0;
      EXPECT_EQ(found, expected) << name;
    }
  }
}

}  // namespace
}  // namespace quire
