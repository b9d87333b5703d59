// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/testing/build_testing.h"

#include <filesystem>

#include "server/archive/archive_verifier.h"
#include "testing/base/status_matchers.h"
#include "testing/codecs/test_codec.h"

namespace quire {

BuildOptions SmallBuildOptions(absl::string_view codec,
                               uint64_t segment_size_bytes) {
  BuildOptions options;
  const TestCodec test_codec = ParseTestCodec(codec);
  options.archive.codec = test_codec.spec;
  options.inflate = test_codec.inflated_text_size_max != 0;
  options.archive.block_size_bytes =
      test_codec.spec.partition_size_bytes == 0 ? 4096 : 8192;
  options.dictionary_size_bytes = 8192;
  options.segment_size_bytes = segment_size_bytes;
  return options;
}

void ExpectDocuments(const std::string& path, const IdsAndContents& documents) {
  QUIRE_ASSERT_OK(VerifyArchive(
      path, {}, [](const ArchiveDamage& d) { ADD_FAILURE() << d.status; }));
  QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents found, ReadInput(path));
  ASSERT_EQ(found.size(), documents.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i], documents[i]) << i;
  }
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
}

}  // namespace quire
