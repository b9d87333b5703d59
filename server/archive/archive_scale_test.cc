// SPDX-License-Identifier: GPL-3.0-or-later
//
// A million documents: checks that all of them are found, and their memory.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "server/archive/archive.h"
#include "server/archive/archive_writer.h"
#include "testing/archive/archive_testing.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::ElementsAre;

constexpr uint64_t kCount = 1000000;
constexpr uint64_t kLargeBlockSize = 1 << 20;

// Ids are not in order; every hundredth document is empty.
std::string IdOf(uint64_t ordinal) {
  return absl::StrFormat("doc/%07u", ordinal * 7919 % kCount);
}

uint64_t SizeOf(uint64_t ordinal) {
  return ordinal % 100;
}

TEST(ArchiveScaleTest, HoldsAMillionDocuments) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a.quire";
  ArchiveWriterOptions options;
  options.codec = ParseCodecSpec("copy").value();
  options.block_size_bytes = kLargeBlockSize;
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto writer,
                             ArchiveWriter::Create(path, options, nullptr));
  uint64_t size_bytes = 0;
  for (uint64_t i = 0; i < kCount; ++i) {
    const std::string id = IdOf(i);
    QUIRE_ASSERT_OK(writer->AddDocument({.id = id, .size_bytes = SizeOf(i)}));
    size_bytes += SizeOf(i);
  }
  const std::vector<uint8_t> raw(kLargeBlockSize);
  for (uint64_t left = size_bytes; left > 0;) {
    const uint64_t size = std::min(left, kLargeBlockSize);
    QUIRE_ASSERT_OK(writer->AppendBlock(ByteView(raw).first(size), {}));
    left -= size;
  }
  QUIRE_ASSERT_OK(writer->Commit());

  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path));
  ASSERT_EQ(archive->info().document_count, kCount);
  uint64_t start = 0;
  for (uint64_t i = 0; i < kCount; ++i) {
    if (i % 499 == 0) {
      SCOPED_TRACE(absl::StrCat("document ", i));
      EXPECT_THAT(archive->FindDocuments(IdOf(i)).value(),
                  ElementsAre(DocumentOrdinal{i}));
      const Document document = archive->GetDocument({i}).value();
      EXPECT_EQ(document.id, IdOf(i));
      EXPECT_EQ(document.range, (LogicalRange{{start}, SizeOf(i)}));
      if (SizeOf(i) > 0) {
        EXPECT_EQ(archive->DocumentAt({start}).value().value, i);
      }
    }
    start += SizeOf(i);
  }
  uint64_t visited = 0;
  std::string previous;
  archive->VisitDocuments("doc/", std::nullopt, [&](const Document& document) {
    EXPECT_LT(previous, document.id);
    previous = document.id;
    return ++visited < kCount;
  });
  EXPECT_EQ(visited, kCount);
  // Bits per document: 2 + log2(50) and select; four bytes of id and two of 20
  // bits with an eighth and a bit for the order.
  EXPECT_LT(archive->memory().document_starts_bytes * 8 / kCount, 10u);
  EXPECT_LT(archive->memory().document_ids_bytes * 8 / kCount, 65u);
  // Two columns without text.
  EXPECT_LT(archive->memory().document_attributes_bytes, 64u);
}

}  // namespace
}  // namespace quire
