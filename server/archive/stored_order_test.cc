// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/stored_order.h"

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "server/archive/archive_writer.h"
#include "testing/archive/archive_testing.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

constexpr uint32_t kBlockSize = 4096;

// Any two consecutive runs have at least this size together.
constexpr uint64_t kPiece = 600;

// Writes random stored text, and runs that cover all of it, some of it often.
void WriteRandomSegment(uint64_t seed, ArchiveWriter& writer,
                        std::string& text) {
  std::mt19937_64 random(seed);
  std::string stored(2000 + random() % 60000, '\0');
  for (char& byte : stored) {
    byte = static_cast<char>(random());
  }
  std::vector<StoredRun> runs;
  std::string own;
  // Contiguous runs are one run.
  const auto add = [&](uint64_t from, uint64_t size) {
    own += stored.substr(from, size);
    if (!runs.empty() &&
        runs.back().stored_offset + runs.back().size_bytes == from) {
      runs.back().size_bytes += size;
    } else if (size > 0) {
      runs.push_back({size, from});
    }
  };
  std::vector<uint64_t> cuts = {0, stored.size()};
  for (uint64_t i = random() % 40; i > 0; --i) {
    cuts.push_back(random() % (stored.size() / kPiece) * kPiece);
  }
  std::ranges::sort(cuts);
  std::vector<size_t> order(cuts.size() - 1);
  for (size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
  }
  std::ranges::shuffle(order, random);
  for (const size_t i : order) {
    // The whole text once, and then parts of it, which cross boundaries.
    add(random() % (stored.size() - 2 * kPiece), kPiece + random() % kPiece);
    add(cuts[i], cuts[i + 1] - cuts[i]);
  }
  QUIRE_ASSERT_OK(WriteTestSegment({{.id = absl::StrCat(seed), .text = own}},
                                   stored, runs, {kBlockSize}, nullptr,
                                   writer));
  text += own;
}

class StoredOrderTest : public ::testing::Test {
 protected:
  void WriteArchive(uint64_t seed) {
    text_.clear();
    const ArchiveWriterOptions options = {.codec = {.id = CodecId::kCopy},
                                          .block_size_bytes = kBlockSize,
                                          .replace = true};
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const auto writer,
        ArchiveWriter::Create(directory_ / "a", options, nullptr));
    for (uint64_t i = 0; i < 3; ++i) {
      WriteRandomSegment(3 * seed + i, *writer, text_);
    }
    QUIRE_ASSERT_OK(writer->Commit().status());
    QUIRE_ASSERT_OK_AND_ASSIGN(archive_, Archive::Open(directory_ / "a"));
  }

  std::string TextOf(const std::vector<BlockSlice>& blocks) {
    std::string text;
    const auto scratch = archive_->codec().NewScratch();
    for (const BlockSlice& slice : blocks) {
      EXPECT_EQ(slice.size_bytes, archive_->BlockSizeBytes(slice.block));
      std::string block(slice.size_bytes, '?');
      QUIRE_EXPECT_OK(
          archive_->ReadBlock(slice.block, AsMutableBytes(block), *scratch));
      text += block;
    }
    return text;
  }

  TemporaryDirectory directory_;
  std::string text_;
  std::shared_ptr<const Archive> archive_;
};

TEST_F(StoredOrderTest, GivesEachByteItsPlacesOnce) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    WriteArchive(seed);
    ASSERT_TRUE(StoredOrder::IsThere(*archive_));
    EXPECT_GT(StoredOrder::MemoryBytes(*archive_), 0u);
    std::mt19937_64 random(seed);
    const size_t places_max = 1 + random() % 9;
    const uint64_t size_max = random() % 20000;
    const size_t blocks_max = 1 + random() % 5;
    std::string made(text_.size(), '?');
    std::string count(text_.size(), '\0');
    StoredOrder order(*archive_);
    QUIRE_ASSERT_OK(order.GoTo({}));
    StoredOrder::Position position;
    while (!order.at_end()) {
      // Sometimes another one resumes.
      if (random() % 4 == 0) {
        StoredOrder other(*archive_);
        QUIRE_ASSERT_OK(other.GoTo(position));
        order = std::move(other);
      }
      EXPECT_EQ(order.offset(), position.offset);
      const StoredOrder::BlockRange range = order.Peek(
          size_max, places_max,
          [&](const auto& slices) { return slices.size() <= blocks_max; });
      const StoredOrder::BlockRange same = order.Peek(
          size_max, places_max,
          [&](const auto& slices) { return slices.size() <= blocks_max; });
      EXPECT_EQ(same.places, range.places);
      EXPECT_EQ(same.next, range.next);
      const std::string text = TextOf(range.blocks);
      ASSERT_EQ(text.size(), range.size_bytes);
      EXPECT_LE(range.blocks.size(), blocks_max);
      ASSERT_FALSE(range.places.empty());
      EXPECT_LE(range.places.size(), places_max);
      for (const StoredPlace& place : range.places) {
        made.replace(place.offset, place.size_bytes, text, place.offset_in_text,
                     place.size_bytes);
        for (uint32_t i = 0; i < place.size_bytes; ++i) {
          ++count[place.offset + i];
        }
      }
      order.Pass(range);
      position = range.next;
    }
    EXPECT_TRUE(made == text_);
    EXPECT_EQ(count, std::string(text_.size(), '\1'));
    EXPECT_EQ(position.offset, archive_->info().stored_text_size_bytes);
    // At the end there are no more blocks, and not every offset begins one.
    StoredOrder end(*archive_);
    QUIRE_EXPECT_OK(end.GoTo(position));
    EXPECT_TRUE(end.at_end());
    for (const StoredOrder::Position wrong :
         {StoredOrder::Position{position.offset + 1, 0},
          StoredOrder::Position{0, 1'000'000}, StoredOrder::Position{1, 0}}) {
      StoredOrder nowhere(*archive_);
      EXPECT_THAT(nowhere.GoTo(wrong), HasCode(absl::StatusCode::kOutOfRange));
    }
  }
}

// A block that very many runs refer to is returned in as many messages; none of
// them examines all of the runs again.
TEST_F(StoredOrderTest, WorksInProportionToThePlacesOfABlock) {
  constexpr uint64_t kPlaceCount = 20'000;
  constexpr size_t kPlacesMax = 50;
  std::string stored(3 * kBlockSize, '\0');
  std::mt19937_64 random(1);
  for (char& byte : stored) {
    byte = static_cast<char>(random());
  }
  // Runs of the second block, no two of which are contiguous, then all text.
  std::vector<StoredRun> runs;
  std::string text;
  for (uint64_t i = 0; i < kPlaceCount; ++i) {
    runs.push_back({kPiece, kBlockSize + i * 7 % (kBlockSize - kPiece)});
    text += stored.substr(runs.back().stored_offset, kPiece);
  }
  runs.push_back({stored.size(), 0});
  text += stored;
  const ArchiveWriterOptions options = {.codec = {.id = CodecId::kCopy},
                                        .block_size_bytes = kBlockSize};
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto writer,
      ArchiveWriter::Create(directory_ / "many", options, nullptr));
  QUIRE_ASSERT_OK(WriteTestSegment({{.id = "all", .text = text}}, stored, runs,
                                   {kBlockSize}, nullptr, *writer));
  QUIRE_ASSERT_OK(writer->Commit().status());
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive,
                             Archive::Open(directory_ / "many"));
  StoredOrder order(*archive);
  QUIRE_ASSERT_OK(order.GoTo({}));
  uint64_t place_count = 0;
  uint64_t range_count = 0;
  while (!order.at_end()) {
    const StoredOrder::BlockRange range = order.Peek(
        kBlockSize, kPlacesMax, [](const auto& /*slices*/) { return true; });
    place_count += range.places.size();
    ++range_count;
    order.Pass(range);
  }
  // Each block also has a place of the run over all text.
  EXPECT_EQ(place_count, kPlaceCount + 3);
  EXPECT_GE(range_count, kPlaceCount / kPlacesMax);
  EXPECT_LE(order.work(), 4 * (place_count + range_count));
}

}  // namespace
}  // namespace quire
