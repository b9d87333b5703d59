// SPDX-License-Identifier: GPL-3.0-or-later
//
// Checks that an archive takes the memory that it reports, and no more than was
// estimated, for any contents.
#include <malloc.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

#include "codecs/base/bytes.h"
#include "codecs/fsst/decode/fsst_decoder.h"
#include "codecs/fsst/encode/fsst_encoder.h"
#include "codecs/fsst/table/symbol_table.h"
#include "server/archive/archive.h"
#include "server/archive/files/symbol_table_file.h"
#include "server/archive/index/document_index.h"
#include "testing/archive/adversarial_archive.h"
#include "testing/archive/archive_testing.h"
#include "testing/archive/crafted_archive.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

// Returns the heap bytes in use; unset if a sanitizer replaces the allocator.
std::optional<uint64_t> HeapBytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks == 0 ? std::nullopt
                            : std::optional(info.uordblks + info.hblkhd);
}

// Expects the estimate to be at least the memory held, and that to be near the
// memory allocated.
void ExpectAccounted(const std::string& path, double estimate_factor_max) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const ArchiveOutline outline,
                             Archive::ReadOutline(path));
  const uint64_t estimate = outline.memory_bytes;
  const std::optional<uint64_t> before = HeapBytes();
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path));
  const std::optional<uint64_t> after = HeapBytes();
  const uint64_t memory = archive->memory().total_bytes();
  EXPECT_EQ(archive->memory_bytes_max(), estimate);
  EXPECT_GE(estimate, memory);
  constexpr double kSlackBytes = 256 << 10;
  EXPECT_LE(static_cast<double>(estimate),
            static_cast<double>(memory) * estimate_factor_max + kSlackBytes);
  if (before.has_value() && after.has_value()) {
    const double taken =
        static_cast<double>(*after) - static_cast<double>(*before);
    EXPECT_LE(taken, static_cast<double>(memory) * 1.05 + kSlackBytes);
    // Counted already, but allocated later: a table for answers.
    const uint64_t taken_later = archive->memory().symbol_table_bytes;
    EXPECT_GE(taken, static_cast<double>(memory) * 0.95 - kSlackBytes -
                         static_cast<double>(taken_later));
  }
}

TEST(ArchiveMemoryTest, OfManyAttributesAndLongIdsIsAccounted) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a";
  QUIRE_ASSERT_OK(WriteAdversarialArchive(path));
  ExpectAccounted(path, 1.3);
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path));
  for (uint64_t i = 0; i < kAdversarialMediaTypeCount; i += 997) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const Document document,
                               archive->GetDocument({i}));
    ASSERT_EQ(document.id, absl::StrCat("d", i));
    ASSERT_EQ(document.media_type, absl::StrCat("t/", i));
    ASSERT_EQ(document.record_type, "");
  }
  for (uint64_t i = 0; i < kAdversarialLongIdCount; ++i) {
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const Document document,
        archive->GetDocument({kAdversarialMediaTypeCount + i}));
    EXPECT_EQ(document.id.size(), 65535u);
    EXPECT_EQ(document.id.substr(0, 7),
              absl::StrCat("long ", i, " ").substr(0, 7));
    EXPECT_TRUE(document.id == document.media_type);
    EXPECT_TRUE(document.id == document.record_type);
    EXPECT_THAT(archive->FindDocuments(document.id).value(),
                ::testing::ElementsAre(document.ordinal));
  }
}

// A server makes decoders after archives are opened, and some encoders.
TEST(ArchiveMemoryTest, OfSymbolTablesIsAccounted) {
  constexpr size_t kHeapSlackBytes = 1 << 10;
  std::mt19937_64 random(1);  // NOLINT(cert-msc32-c,cert-msc51-cpp)
  for (const size_t symbol_size : {1u, 3u, 8u}) {
    SCOPED_TRACE(symbol_size);
    std::vector<FsstSymbol> symbols;
    for (uint64_t i = 0; i < kFsstSymbolCountMax; ++i) {
      // Different, also from each other's beginnings.
      const uint64_t bytes = (random() & ~uint64_t{0xff}) | i;
      symbols.push_back(
          {.bytes = bytes << (8 * (8 - symbol_size)) >> (8 * (8 - symbol_size)),
           .size = static_cast<uint8_t>(symbol_size)});
    }
    QUIRE_ASSERT_OK_AND_ASSIGN(const SymbolTable table,
                               SymbolTable::FromSymbols(symbols));
    const size_t table_size = table.Serialise().size();
    const std::optional<uint64_t> before = HeapBytes();
    const auto encoder = std::make_unique<FsstEncoder>(table);
    const std::optional<uint64_t> between = HeapBytes();
    const auto decoder = std::make_unique<FsstDecoder>(table);
    const std::optional<uint64_t> after = HeapBytes();
    if (before.has_value() && between.has_value() && after.has_value()) {
      const uint64_t encoder_bytes_max =
          FsstEncoder::MemoryBytesMax(table_size) + kHeapSlackBytes;
      EXPECT_LE(*between - *before, encoder_bytes_max);
      if (symbol_size == kFsstSymbolSizeMax) {
        EXPECT_GE(*between - *before, encoder_bytes_max * 3 / 4);
      }
      EXPECT_LE(*after - *between + sizeof(SymbolTable) + table_size +
                    kHeapSlackBytes,
                kSymbolTableMemoryBytes);
    }
  }
}

// Ids that occur often are also kept in another order.
TEST(ArchiveMemoryTest, OfManyCapturesIsAccounted) {
  for (const uint64_t captures_per_id : {2u, 65u, 100000u}) {
    SCOPED_TRACE(captures_per_id);
    TestSegment segment(200'000);
    for (uint64_t i = 0; i < segment.size(); ++i) {
      segment[i] = {.id = absl::StrCat("page ", i / captures_per_id),
                    .capture_time_ms = static_cast<int64_t>(i * 1000),
                    .record_type = i % 2 == 0 ? "request" : "response"};
    }
    const TemporaryDirectory directory;
    ArchiveWriterOptions options;
    options.codec = ParseCodecSpec("copy").value();
    QUIRE_ASSERT_OK(WriteTestArchive(directory / "a", options, {segment}));
    ExpectAccounted(directory / "a", 3);
  }
}

TEST(ArchiveMemoryTest, OfEachCodecIsAccounted) {
  std::mt19937_64 random(3);
  const TestSegment segment = RandomTestSegment(3000, 100, random);
  std::string dictionary;
  for (const TestDocument& document : segment) {
    dictionary += document.text;
  }
  for (const CodecInfo& codec : AllCodecs()) {
    SCOPED_TRACE(codec.name);
    const TemporaryDirectory directory;
    const std::string path = directory / "a";
    ArchiveWriterOptions options;
    options.codec = ParseCodecSpec(codec.name).value();
    options.block_size_bytes = 4096;
    FitPartitions(options.block_size_bytes, options.codec);
    QUIRE_ASSERT_OK(
        WriteTestArchive(path, options, {segment, segment},
                         std::make_shared<CodecContext>(
                             CodecContext{dictionary, CraftedSymbolTable()})));
    ExpectAccounted(path, 2);
  }
}

// A dictionary is the largest part of most archives. A growing string wastes
// most memory at sizes just above a power of two.
TEST(ArchiveMemoryTest, OfDictionariesOfAnySizeIsAccounted) {
  for (const size_t size_bytes :
       {size_t{1} << 20, (size_t{2} << 20) + 1, size_t{5} << 20}) {
    SCOPED_TRACE(size_bytes);
    const TemporaryDirectory directory;
    ArchiveWriterOptions options;
    options.codec = ParseCodecSpec("rlz").value();
    QUIRE_ASSERT_OK(WriteTestArchive(
        directory / "a", options, {{{.id = "a", .text = "text"}}},
        std::make_shared<CodecContext>(
            CodecContext{.dictionary = std::string(size_bytes, 'x')})));
    ExpectAccounted(directory / "a", 1.05);
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive,
                               Archive::Open(directory / "a"));
    EXPECT_EQ(archive->memory().dictionary_bytes, size_bytes);
  }
}

// Sections that a writer does not make, but that the format allows.
TEST(ArchiveMemoryTest, OfStringColumnsIsAccounted) {
  std::vector<std::string> sections;
  const std::string one_value = CraftedColumn({0});
  // Only empty strings, strings of one byte, and one long string.
  constexpr uint64_t kCount = 100'000;
  const std::string count = CraftedVarints({kCount});
  sections.push_back(count + std::string(kCount, '\0') + one_value);
  std::string single = count;
  for (uint64_t i = 0; i < kCount; ++i) {
    single += "\1x";
  }
  sections.push_back(single + one_value);
  sections.push_back(CraftedVarints({1, 65535}) + std::string(65535, 'x') +
                     CraftedColumn({1}));
  sections.push_back(CraftedVarints({0}) + one_value);
  for (const std::string& section : sections) {
    SCOPED_TRACE(section.size());
    QUIRE_ASSERT_OK_AND_ASSIGN(const StringColumn column,
                               StringColumn::Parse(AsBytes(section), 1));
    EXPECT_GE(StringColumn::EstimateBytes(section.size(), 1),
              column.MemoryBytes());
    EXPECT_LE(column.MemoryBytes(), section.size() * 5 / 4 + 512);
  }
  // A value of no bytes for each of many documents.
  const std::string none = CraftedVarints({0}) + std::string(1, '\0');
  QUIRE_ASSERT_OK_AND_ASSIGN(const StringColumn column,
                             StringColumn::Parse(AsBytes(none), 1 << 20));
  EXPECT_GE(StringColumn::EstimateBytes(none.size(), 1 << 20),
            column.MemoryBytes());
  EXPECT_EQ(column[12345], "");
}

}  // namespace
}  // namespace quire
