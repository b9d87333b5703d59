// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/text/reordered_text.h"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/base/checksum.h"
#include "codecs/base/status_macros.h"
#include "codecs/reorder/content_chunker.h"
#include "codecs/reorder/first_number_table.h"
#include "codecs/reorder/offset_list.h"
#include "server/ingest/sources/spool.h"
#include "server/ingest/testing/ingest_testing.h"
#include "server/ingest/text/build_memory.h"
#include "server/ingest/text/text_migration.h"
#include "testing/base/noise.h"
#include "testing/base/sanitized.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

constexpr int kTinyCount = Fewer(1'000'000);

using Moves = ReorderOptions::Moves;
using Segments = std::vector<std::vector<std::string>>;

absl::StatusOr<ReorderedText> Reorder(
    const Segments& segments, size_t piece_size = 1 << 20,
    uint64_t duplicate_size_bytes_min = 512, Moves moves = Moves::kNothing,
    std::optional<ReorderPrice> price = {}, uint64_t memory_bytes_max = 1 << 30,
    uint64_t* held_bytes_max = nullptr, uint64_t seek_cost_bytes = 0) {
  QUIRE_ASSIGN_OR_RETURN(
      const auto reorderer,
      TextReorderer::Create(
          {.spool_directory = ::testing::TempDir(),
           .segment_size_bytes = 1 << 20,
           .memory_bytes_max = memory_bytes_max,
           .seek_cost_bytes = seek_cost_bytes,
           .duplicate_size_bytes_min = duplicate_size_bytes_min,
           .moves = moves,
           .price = price}));
  for (const std::vector<std::string>& segment : segments) {
    for (const std::string& text : segment) {
      for (size_t i = 0; i < text.size(); i += piece_size) {
        QUIRE_RETURN_IF_ERROR(reorderer->Add(
            AsBytes(text).subspan(i, std::min(piece_size, text.size() - i))));
      }
      QUIRE_RETURN_IF_ERROR(reorderer->EndDocument({.id = "x"}));
    }
    QUIRE_RETURN_IF_ERROR(reorderer->EndSegment());
  }
  if (held_bytes_max != nullptr) {
    *held_bytes_max = reorderer->held_bytes_max();
  }
  return reorderer->Finish();
}

// Returns the stored text of all segments.
std::string StoredBytes(const ReorderedText& text) {
  std::string bytes(text.size_bytes, '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    const auto got =
        text.file->ReadAt(done, AsMutableBytes(bytes).subspan(done));
    if (!got.ok() || *got == 0) {
      ADD_FAILURE() << "the file is too short";
      break;
    }
    done += *got;
  }
  return bytes;
}

// Checks that readers accept the layouts and restore the text.
void ExpectRestores(const ReorderedText& text, const Segments& segments) {
  const std::string stored = StoredBytes(text);
  EXPECT_EQ(Checksum64(AsBytes(stored)), text.checksum);
  ASSERT_EQ(text.segments.size(), segments.size());
  uint64_t segment_offset = 0;
  for (size_t s = 0; s < segments.size(); ++s) {
    const ReorderedText::Segment& segment = text.segments[s];
    std::string expected;
    for (const std::string& document : segments[s]) {
      expected += document;
    }
    std::string restored;
    const std::vector<StoredRun>& runs = segment.layout.runs;
    for (size_t i = 0; i < runs.size(); ++i) {
      restored += stored.substr(segment_offset + runs[i].stored_offset,
                                runs[i].size_bytes);
      if (i > 0) {
        EXPECT_GE(runs[i].size_bytes + runs[i - 1].size_bytes,
                  kRunPairSizeBytesMin);
        EXPECT_NE(runs[i].stored_offset,
                  runs[i - 1].stored_offset + runs[i - 1].size_bytes);
      }
    }
    EXPECT_TRUE(restored == expected) << "segment " << s;
    EXPECT_EQ(segment.documents.count(), segments[s].size());
    EXPECT_EQ(segment.documents.size_bytes(), expected.size());
    uint64_t checked_bytes = 0;
    for (const TextChecksum& piece : segment.layout.checksums) {
      EXPECT_EQ(piece.checksum, Checksum64(AsBytes(expected).subspan(
                                    checked_bytes, piece.size_bytes)));
      checked_bytes += piece.size_bytes;
    }
    EXPECT_EQ(checked_bytes, expected.size());
    segment_offset += segment.layout.stored_text_size_bytes;
  }
  EXPECT_EQ(segment_offset, stored.size());
}

TEST(ReorderedTextTest, StoresADuplicateDocumentOnce) {
  const std::string text = Noise(100000, 1);
  const Segments segments = {{text, Noise(3000, 2), text, text}};
  QUIRE_ASSERT_OK_AND_ASSIGN(const ReorderedText reordered, Reorder(segments));
  EXPECT_EQ(reordered.size_bytes, 103000u);
  EXPECT_EQ(reordered.segments[0].layout.runs,
            (std::vector<StoredRun>{{103000, 0}, {100000, 0}, {100000, 0}}));
  ExpectRestores(reordered, segments);
}

TEST(ReorderedTextTest, TextWithoutDuplicatesIsOneRun) {
  const Segments segments = {{Noise(300000, 3), "", Noise(10, 4)}};
  QUIRE_ASSERT_OK_AND_ASSIGN(const ReorderedText reordered, Reorder(segments));
  EXPECT_EQ(reordered.segments[0].layout.runs,
            (std::vector<StoredRun>{{300010, 0}}));
  ExpectRestores(reordered, segments);
}

TEST(ReorderedTextTest, FindsNoDuplicatesInOtherSegments) {
  const std::string text = Noise(20000, 5);
  const Segments segments = {{text}, {text}, {}};
  QUIRE_ASSERT_OK_AND_ASSIGN(const ReorderedText reordered, Reorder(segments));
  EXPECT_EQ(reordered.size_bytes, 40000u);
  ExpectRestores(reordered, segments);
}

// Two texts with the same key in the table of duplicates, which keeps 42 bits
// of a hash. Found by trying five million texts.
TEST(ReorderedTextTest, ComparesTheBytesOfTextsWithTheSameHash) {
  std::vector<std::string> texts;
  for (const char* number : {"01145391", "01973223"}) {
    texts.push_back(number + std::string(592, 'x'));
    ASSERT_EQ(ContentChunker(2 << 10).Next(AsBytes(texts.back())), 600u);
  }
  FirstNumberTable table;
  table.Add(Checksum64(AsBytes(texts[0])), 7);
  ASSERT_EQ(table.Find(Checksum64(AsBytes(texts[1]))), 7u);
  const Segments segments = {texts};
  QUIRE_ASSERT_OK_AND_ASSIGN(const ReorderedText reordered, Reorder(segments));
  EXPECT_EQ(reordered.size_bytes, 1200u);
  ExpectRestores(reordered, segments);
}

// Each checksum covers 1 MiB of text.
TEST(ReorderedTextTest, ExactMultiplesOfAChecksumHaveNoEmptyOne) {
  for (const size_t count : {size_t{1}, size_t{2}}) {
    const Segments segments = {
        {Noise(count * TextChecksummer::kPieceSizeBytes, count)}};
    QUIRE_ASSERT_OK_AND_ASSIGN(const ReorderedText reordered,
                               Reorder(segments));
    EXPECT_EQ(reordered.segments[0].layout.checksums.size(), count);
    ExpectRestores(reordered, segments);
  }
}

TEST(ReorderedTextTest, KeepsDuplicatesThatAreTooShort) {
  const std::string text = Noise(8000, 6);
  const Segments segments = {{text, Noise(5000, 7), text, Noise(5000, 8)}};
  QUIRE_ASSERT_OK_AND_ASSIGN(const ReorderedText kept,
                             Reorder(segments, 1 << 20, 8001));
  EXPECT_EQ(kept.size_bytes, 26000u);
  ExpectRestores(kept, segments);
  QUIRE_ASSERT_OK_AND_ASSIGN(const ReorderedText left_out,
                             Reorder(segments, 1 << 20, 8000));
  EXPECT_EQ(left_out.size_bytes, 18000u);
  ExpectRestores(left_out, segments);
}

TEST(ReorderedTextTest, AMillionTinyDocumentsTakeLittleMemory) {
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto reorderer,
      TextReorderer::Create({.spool_directory = ::testing::TempDir(),
                             .segment_size_bytes = 1 << 20,
                             .moves = Moves::kChunks}));
  for (int i = 0; i < kTinyCount; ++i) {
    QUIRE_ASSERT_OK(reorderer->Add(AsBytes(std::to_string(i))));
    QUIRE_ASSERT_OK(reorderer->EndDocument({.id = "x"}));
  }
  QUIRE_ASSERT_OK_AND_ASSIGN(const ReorderedText reordered,
                             reorderer->Finish());
  EXPECT_EQ(reordered.segments[0].documents.count(), uint64_t{kTinyCount});
  EXPECT_LT(reorderer->held_bytes_max(), 1u << 20);
}

TEST(ReorderedTextTest, AMillionTinyDocumentsAreOneRun) {
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto reorderer,
      TextReorderer::Create({.spool_directory = ::testing::TempDir(),
                             .segment_size_bytes = 1 << 20}));
  for (int i = 0; i < kTinyCount; ++i) {
    QUIRE_ASSERT_OK(reorderer->Add(AsBytes("tiny")));
    QUIRE_ASSERT_OK(reorderer->EndDocument({.id = "x"}));
  }
  QUIRE_ASSERT_OK_AND_ASSIGN(const ReorderedText reordered,
                             reorderer->Finish());
  EXPECT_EQ(reordered.segments[0].layout.runs.size(), 1u);
  EXPECT_EQ(reordered.size_bytes, 4 * uint64_t{kTinyCount});
}

TEST(ReorderedTextTest, RestoresAnythingWhateverThePieces) {
  for (uint64_t seed = 0; seed < Fewer(40u); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    Segments segments(1 + random() % 3);
    std::vector<std::string> earlier = {std::string(70000, '\0'),
                                        Noise(5000, seed)};
    for (std::vector<std::string>& segment : segments) {
      for (size_t i = random() % 20; i > 0; --i) {
        std::string text;
        for (size_t parts = random() % 5; parts > 0; --parts) {
          const std::string& from = earlier[random() % earlier.size()];
          if (random() % 2 == 0 && !from.empty()) {
            text += from.substr(random() % from.size(), random() % 40000);
          } else {
            text += Noise(random() % 9000, random());
          }
        }
        earlier.push_back(text);
        segment.push_back(std::move(text));
      }
    }
    const uint64_t minimum = uint64_t{512} << (random() % 6);
    const ReorderPrice price = {.block_size_bytes = 4096};
    for (const auto moves : {Moves::kNothing, Moves::kChunks}) {
      for (const auto& given : {std::optional<ReorderPrice>(), {price}}) {
        QUIRE_ASSERT_OK_AND_ASSIGN(
            const ReorderedText whole,
            Reorder(segments, 1 << 20, minimum, moves, given));
        ExpectRestores(whole, segments);
        QUIRE_ASSERT_OK_AND_ASSIGN(
            const ReorderedText in_pieces,
            Reorder(segments, 1 + random() % 5000, minimum, moves, given));
        EXPECT_EQ(whole.checksum, in_pieces.checksum);
        for (size_t s = 0; s < segments.size(); ++s) {
          EXPECT_EQ(whole.segments[s].layout.runs,
                    in_pieces.segments[s].layout.runs);
        }
      }
    }
  }
}

// Three texts, each in four versions with small differences.
TEST(ReorderedTextTest, MovesVersionsOfATextTogether) {
  Segments segments(1);
  std::mt19937_64 random(9);
  for (uint64_t version = 0; version < 4; ++version) {
    for (uint64_t text = 0; text < 3; ++text) {
      std::string changed = Noise(60000, 100 + text);
      for (size_t i = 200; i < changed.size(); i += 900) {
        changed[i] = static_cast<char>(random());
      }
      segments[0].push_back(std::move(changed));
    }
  }
  QUIRE_ASSERT_OK_AND_ASSIGN(const ReorderedText reordered,
                             Reorder(segments, 1 << 20, 512, Moves::kChunks));
  ExpectRestores(reordered, segments);
  // For most parts that begin in the first text, a similar one follows
  // directly.
  const std::string stored = StoredBytes(reordered);
  size_t near_count = 0;
  size_t count = 0;
  for (size_t i = 400; i + 100 < 60000; i += 2000) {
    const std::string sample = segments[0][0].substr(i, 60);
    const size_t first = stored.find(sample);
    ASSERT_NE(first, std::string::npos);
    const size_t second = stored.find(sample, first + 1);
    ++count;
    near_count += second != std::string::npos && second - first < 10000 ? 1 : 0;
  }
  EXPECT_GT(near_count, count / 2);
}

TEST(ReorderedTextTest, TakesSixtyFourBytesAChunkAtMost) {
  for (const Moves moves : {Moves::kNothing, Moves::kChunks}) {
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const auto reorderer,
        TextReorderer::Create({.spool_directory = ::testing::TempDir(),
                               .segment_size_bytes = 1 << 20,
                               .moves = moves}));
    // No duplicate or similar text: the maximum to remember.
    const ContentChunker chunker(2048);
    size_t chunk_count = 0;
    for (uint64_t i = 0; i < (kIsSanitized ? 32u : 128u); ++i) {
      const std::string text = Noise(1 << 20, i);
      for (ByteView rest = AsBytes(text); !rest.empty(); ++chunk_count) {
        rest = rest.subspan(chunker.Next(rest));
      }
      QUIRE_ASSERT_OK(reorderer->Add(AsBytes(text)));
      QUIRE_ASSERT_OK(reorderer->EndDocument({.id = "x"}));
    }
    QUIRE_ASSERT_OK(reorderer->EndSegment());
    EXPECT_LE(reorderer->held_bytes_max(), 64 * chunk_count);
    EXPECT_GE(reorderer->held_bytes_max(), 8 * chunk_count);
  }
}

void ExpectSame(const ReorderedText& a, const ReorderedText& b) {
  EXPECT_EQ(a.checksum, b.checksum);
  EXPECT_EQ(a.size_bytes, b.size_bytes);
  ASSERT_EQ(a.segments.size(), b.segments.size());
  for (size_t s = 0; s < a.segments.size(); ++s) {
    EXPECT_EQ(a.segments[s].layout.runs, b.segments[s].layout.runs);
    EXPECT_EQ(a.segments[s].layout.checksums, b.segments[s].layout.checksums);
  }
}

// Versions of a few texts that change in many places, and noise.
Segments ChangingTexts(size_t size_bytes) {
  Segments segments(2);
  std::mt19937_64 random(17);
  for (std::vector<std::string>& segment : segments) {
    for (uint64_t text = 0; text < 3; ++text) {
      std::string changed = Noise(size_bytes, text);
      for (uint64_t version = 0; version < 4; ++version) {
        for (size_t i = random() % 900; i < changed.size();
             i += 100 + random() % 4000) {
          changed[i] = static_cast<char>(random());
        }
        segment.push_back(changed);
      }
    }
    segment.push_back(Noise(size_bytes, random()));
  }
  return segments;
}

TEST(ReorderedTextTest, IsTheSameWithinAnyMemoryThatIsEnough) {
  const Segments segments = ChangingTexts(600'000);
  const ReorderPrice price = {.block_size_bytes = 65536};
  for (const auto& given : {std::optional<ReorderPrice>(), {price}}) {
    uint64_t most = 0;
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const ReorderedText in_memory,
        Reorder(segments, 1 << 20, 512, Moves::kChunks, given, 1 << 30, &most));
    ExpectRestores(in_memory, segments);
    // Finds the smallest sufficient limit by bisection.
    uint64_t too_little = 0;
    uint64_t enough = most + (100 << 10);
    while (enough - too_little > 5000) {
      const uint64_t limit = (too_little + enough) / 2;
      uint64_t held = 0;
      const absl::StatusOr<ReorderedText> within =
          Reorder(segments, 1 << 20, 512, Moves::kChunks, given, limit, &held);
      if (within.ok()) {
        EXPECT_LE(held, limit);
        ExpectSame(*within, in_memory);
        enough = limit;
      } else {
        EXPECT_EQ(within.status().code(), absl::StatusCode::kResourceExhausted);
        EXPECT_THAT(std::string(within.status().message()),
                    testing::HasSubstr("give about"));
        too_little = limit;
      }
    }
    // The search is exact to some 5000 bytes.
    EXPECT_LT(enough, most + 10'000);
  }
}

TEST(ReorderedTextTest, IsTheSameInOnePassInSeveralAndByChunk) {
  const Segments segments = ChangingTexts(200'000);
  uint64_t held = 0;
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const ReorderedText by_chunk,
      Reorder(segments, 1 << 20, 512, Moves::kChunks, {}, 1 << 30, &held));
  const uint64_t table_bytes = held;
  EXPECT_LT(table_bytes, 1u << 20);
  for (const uint64_t seek_cost_bytes : {1u, 3000u, 100'000u}) {
    for (const uint64_t memory_bytes :
         {400u << 10, 600u << 10, 2u << 20, 1u << 30}) {
      QUIRE_ASSERT_OK_AND_ASSIGN(
          const ReorderedText in_passes,
          Reorder(segments, 1 << 20, 512, Moves::kChunks, {}, memory_bytes,
                  &held, seek_cost_bytes));
      ExpectSame(in_passes, by_chunk);
      EXPECT_LE(held, memory_bytes);
      // Its purpose: to collect as much as there is memory for.
      EXPECT_GE(held, std::min(memory_bytes - 2 * seek_cost_bytes,
                               by_chunk.size_bytes / 2) *
                          9 / 10);
    }
  }
}

TEST(ReorderedTextTest, TheTableOfDuplicatesIsWithinTheMemoryToo) {
  const Segments segments = {{Noise(20 << 20, 1)}};
  EXPECT_EQ(Reorder(segments, 1 << 20, 512, Moves::kNothing, {}, 100'000)
                .status()
                .code(),
            absl::StatusCode::kResourceExhausted);
  // 10,240 chunks of 15 bytes.
  QUIRE_EXPECT_OK(
      Reorder(segments, 1 << 20, 512, Moves::kNothing, {}, 300'000).status());
}

// The example of Lin et al.: with three passes over 15 GB in chunks of 8 KiB,
// reading chunks one by one pays off if seeks reach at most 1.6 % of them. In
// other words: the two further passes cost as much as a seek for each such
// chunk if these are that far apart.
TEST(TextMigrationTest, PassesPayWhereThePaperSaysSo) {
  const double text_bytes = 15e9;
  const double chunk_count = text_bytes / 8192;
  const double seek_count =
      2 * text_bytes / static_cast<double>(kHardDiskSeekCostBytes);
  EXPECT_NEAR(seek_count / chunk_count, 16.0 / 1024, 0.001);
}

TEST(TextMigrationTest, TextThatIsNotWhatWasWrittenIsAnError) {
  QUIRE_ASSERT_OK_AND_ASSIGN(Spool spool,
                             Spool::Create(::testing::TempDir(), "text"));
  const std::string text = Noise(10000, 1);
  QUIRE_ASSERT_OK(spool.Append(AsBytes(text)));
  OffsetList units;
  units.Append(0);
  units.Append(5000);
  for (const bool is_right : {true, false}) {
    BuildMemory memory(1 << 20);
    TextMigration migration(
        {.text = spool,
         .checksum = Checksum64(AsBytes(is_right ? text : Noise(10000, 2))),
         .units = units,
         .memory = memory});
    std::vector<StoredRun> runs = {{10000, 0}};
    std::string written;
    const absl::Status status = migration.Run(runs, [&](ByteView piece) {
      written.append(piece.begin(), piece.end());
      return absl::OkStatus();
    });
    EXPECT_EQ(status.code(),
              is_right ? absl::StatusCode::kOk : absl::StatusCode::kDataLoss);
    EXPECT_EQ(written, is_right ? text : "");
  }
}

// A unit that moves must not leave a run of a few bytes: readers reject two
// consecutive runs with less than kRunPairSizeBytesMin together.
TEST(TextMigrationTest, DuplicatesThatPassACutByAFewBytesStayWhole) {
  const std::string first = Noise(5000, 1);
  const std::string text =
      first + Noise(5000, 2) + first.substr(0, 4990) + Noise(10, 3);
  for (const uint64_t over : std::vector<uint64_t>{1, 100, 510, 600}) {
    SCOPED_TRACE(over);
    // One ends just past the cut at 5000, one begins just before it.
    for (const std::vector<StoredRun>& duplicates :
         {std::vector<StoredRun>{{1000 + over, 4000}, {1, 100}},
          std::vector<StoredRun>{{1, 100}, {over + 1000, 5000 - over}}}) {
      QUIRE_ASSERT_OK_AND_ASSIGN(Spool spool,
                                 Spool::Create(::testing::TempDir(), "text"));
      QUIRE_ASSERT_OK(spool.Append(AsBytes(text)));
      OffsetList units;
      for (uint64_t i = 0; i < text.size(); i += 5000) {
        units.Append(i);
      }
      std::vector<StoredRun> runs = {{text.size(), 0}};
      runs.insert(runs.end(), duplicates.begin(), duplicates.end());
      std::string expected;
      for (const StoredRun& run : runs) {
        expected += text.substr(run.stored_offset, run.size_bytes);
      }
      BuildMemory memory(1 << 20);
      TextMigration migration({.text = spool,
                               .checksum = Checksum64(AsBytes(text)),
                               .units = units,
                               .memory = memory});
      std::string written;
      QUIRE_ASSERT_OK(migration.Run(runs, [&](ByteView piece) {
        written.append(piece.begin(), piece.end());
        return absl::OkStatus();
      }));
      // With enough text on both sides of the cut the third unit comes second.
      EXPECT_EQ(written == text, over < kRunPairSizeBytesMin);
      std::string restored;
      for (size_t i = 0; i < runs.size(); ++i) {
        restored += written.substr(runs[i].stored_offset, runs[i].size_bytes);
        if (i > 0) {
          EXPECT_GE(runs[i].size_bytes + runs[i - 1].size_bytes,
                    kRunPairSizeBytesMin);
        }
      }
      EXPECT_TRUE(restored == expected);
    }
  }
}

TEST(TextMigrationTest, TextThatChangesBetweenItsPassesIsAnError) {
  QUIRE_ASSERT_OK_AND_ASSIGN(Spool spool,
                             Spool::Create(::testing::TempDir(), "text"));
  const std::string text = Noise(54321, 1);
  QUIRE_ASSERT_OK(spool.Append(AsBytes(text)));
  OffsetList units;
  units.Append(0);
  units.Append(50000);
  BuildMemory memory(1 << 20);
  TextMigration migration({.text = spool,
                           .checksum = Checksum64(AsBytes(text)),
                           .units = units,
                           .memory = memory});
  std::vector<StoredRun> runs = {{text.size(), 0}};
  std::string written;
  // The second unit has been read once when the first is written.
  const absl::Status status = migration.Run(runs, [&](ByteView piece) {
    written.append(piece.begin(), piece.end());
    EXPECT_EQ(ChangeUnnamedFiles(text.size(), 51000), 1);
    return absl::OkStatus();
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(written, text.substr(0, 50000));
}

}  // namespace
}  // namespace quire
