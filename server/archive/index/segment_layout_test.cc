// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/index/segment_layout.h"

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "server/archive/format/layout_section.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

struct Sample {
  LayoutSection layout;
  uint64_t size_bytes = 0;
};

// Stored text in pieces, each used once in order or sometimes again.
Sample RandomLayout(uint64_t seed) {
  std::mt19937_64 random(seed);
  RunList runs;
  Sample sample;
  uint64_t stored = 0;
  for (size_t i = 2 + random() % 200; i > 0; --i) {
    const uint64_t size = 512 + random() % 100000;
    if (stored > size && random() % 2 == 0) {
      runs.Append(size, random() % (stored - size));
    } else {
      runs.Append(size, stored);
      stored += size;
    }
    sample.size_bytes += size;
  }
  runs.Append(512, 0);
  sample.size_bytes += 512;
  sample.layout = {.stored_text_size_bytes = stored,
                   .runs = std::move(runs).Take(),
                   .checksums = {}};
  return sample;
}

absl::StatusOr<SegmentLayout> Parse(const Sample& sample,
                                    const std::string& section) {
  return SegmentLayout::Parse(AsBytes(section), sample.size_bytes,
                              sample.layout.stored_text_size_bytes,
                              sample.layout.runs.size());
}

TEST(SegmentLayoutTest, FindsEachByteWhereItIsStored) {
  for (uint64_t seed = 1; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    const Sample sample = RandomLayout(seed);
    QUIRE_ASSERT_OK_AND_ASSIGN(const SegmentLayout layout,
                               Parse(sample, EncodeLayout(sample.layout)));
    EXPECT_FALSE(layout.is_identity());
    uint64_t start = 0;
    for (uint64_t run = 0; run < sample.layout.runs.size(); ++run) {
      const StoredRun& expected = sample.layout.runs[run];
      for (const uint64_t at :
           {uint64_t{0}, expected.size_bytes / 2, expected.size_bytes - 1}) {
        EXPECT_EQ(layout.RunAt(start + at), run);
        const auto piece = layout.PieceOf(run, start + at);
        EXPECT_EQ(piece.stored_offset, expected.stored_offset + at);
        EXPECT_EQ(piece.size_bytes, expected.size_bytes - at);
      }
      start += expected.size_bytes;
    }
    EXPECT_LE(layout.MemoryBytes(),
              SegmentLayout::EstimateBytes(sample.size_bytes,
                                           sample.layout.stored_text_size_bytes,
                                           sample.layout.runs.size()));
  }
}

TEST(SegmentLayoutTest, NamesAllUsesOfStoredText) {
  const Sample sample = {{.stored_text_size_bytes = 3000,
                          .runs = {{2000, 0}, {1000, 500}, {1000, 2000}},
                          .checksums = {}},
                         4000};
  QUIRE_ASSERT_OK_AND_ASSIGN(const SegmentLayout layout,
                             Parse(sample, EncodeLayout(sample.layout)));
  std::vector<std::pair<uint64_t, uint64_t>> uses;
  layout.VisitUses(1000, 1200, [&](uint64_t offset, uint64_t size_bytes) {
    uses.emplace_back(offset, size_bytes);
  });
  EXPECT_THAT(uses,
              testing::ElementsAre(std::pair(1000, 1000), std::pair(2500, 500),
                                   std::pair(3000, 200)));
}

TEST(SegmentLayoutTest, TheIdentityTakesNoMemory) {
  const SegmentLayout layout(1000);
  EXPECT_TRUE(layout.is_identity());
  EXPECT_EQ(layout.RunAt(999), 0u);
  EXPECT_EQ(layout.PieceOf(0, 900).stored_offset, 900u);
  EXPECT_EQ(layout.PieceOf(0, 900).size_bytes, 100u);
  EXPECT_EQ(layout.MemoryBytes(), 0u);
}

TEST(SegmentLayoutTest, RefusesARunWithoutText) {
  // The runs on both sides are long enough: nothing else is wrong.
  const Sample sample = {{.stored_text_size_bytes = 3000,
                          .runs = {{2000, 0}, {0, 1000}, {1000, 2000}},
                          .checksums = {}},
                         3000};
  EXPECT_THAT(Parse(sample, EncodeLayout(sample.layout)),
              FailsWith(absl::StatusCode::kDataLoss,
                        testing::HasSubstr("run 1 has 0 of 1000 bytes")));
}

TEST(TextChecksummerTest, MakesASectionThatParses) {
  const std::string text((3 << 20) - 7, 'x');
  TextChecksummer checksummer;
  for (size_t at = 0; at < text.size(); at += 700'000) {
    checksummer.Add(
        AsBytes(text).subspan(at, std::min<size_t>(700'000, text.size() - at)));
  }
  const std::vector<TextChecksum> checksums = checksummer.Take();
  ASSERT_EQ(checksums.size(), 3u);
  EXPECT_EQ(checksums[2],
            (TextChecksum{(1 << 20) - 7,
                          Checksum64(AsBytes(text).subspan(2 << 20))}));
  const std::string section = EncodeTextChecksums(checksums);
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::vector<TextChecksum> parsed,
                             ParseTextChecksums(AsBytes(section), text.size()));
  EXPECT_EQ(parsed, checksums);
  for (const uint64_t size_bytes : {text.size() - 1, text.size() + 1}) {
    EXPECT_THAT(ParseTextChecksums(AsBytes(section), size_bytes),
                HasCode(absl::StatusCode::kDataLoss));
  }
  for (size_t size = 0; size < section.size(); ++size) {
    EXPECT_THAT(ParseTextChecksums(AsBytes(section).first(size), text.size()),
                HasCode(absl::StatusCode::kDataLoss));
  }
}

// A damaged layout is rejected or stays within its stated bounds.
TEST(SegmentLayoutTest, RefusesOrBearsWhatIsDamaged) {
  std::mt19937_64 random(7);
  for (uint64_t i = 0; i < 20000; ++i) {
    const Sample sample = RandomLayout(1 + i % 5);
    std::string section = EncodeLayout(sample.layout);
    for (size_t flips = 1 + random() % 3; flips > 0; --flips) {
      section[random() % std::min<size_t>(section.size(), 200)] =
          static_cast<char>(random());
    }
    section.resize(random() % 4 == 0 ? random() % section.size()
                                     : section.size());
    const auto layout = Parse(sample, section);
    if (!layout.ok()) {
      continue;
    }
    uint64_t offset = 0;
    for (uint64_t run = 0; run < layout->run_count(); ++run) {
      const auto piece = layout->PieceOf(run, offset);
      ASSERT_LE(piece.stored_offset + piece.size_bytes,
                sample.layout.stored_text_size_bytes);
      offset += piece.size_bytes;
    }
    ASSERT_EQ(offset, sample.size_bytes);
  }
}

}  // namespace
}  // namespace quire
