// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/redaction/segment_redaction.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

#include "server/archive/format/layout_section.h"
#include "server/redaction/window_table.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The stored text of a segment, and how its documents' text is made of it.
struct Stored {
  std::string text;
  std::vector<StoredRun> runs;

  uint64_t size_bytes() const {
    uint64_t size = 0;
    for (const StoredRun& run : runs) {
      size += run.size_bytes;
    }
    return size;
  }

  std::string Read() const {
    std::string read;
    for (const StoredRun& run : runs) {
      read += text.substr(run.stored_offset, run.size_bytes);
    }
    return read;
  }

  absl::StatusOr<SegmentLayout> Layout() const {
    if (runs.size() == 1) {
      return SegmentLayout(size_bytes());
    }
    const std::string section = EncodeLayout(
        {.stored_text_size_bytes = text.size(), .runs = runs, .checksums = {}});
    return SegmentLayout::Parse(AsBytes(section), size_bytes(), text.size(),
                                runs.size());
  }
};

// Returns the stored text after the change, from blocks of random sizes.
std::string Rewrite(const Stored& stored, const SegmentRedaction& plan,
                    std::mt19937_64& random) {
  std::string text;
  for (size_t at = 0; at < stored.text.size();) {
    const size_t size =
        std::min<size_t>(stored.text.size() - at, random() % 50 + 1);
    const ByteView block = AsBytes(stored.text).subspan(at, size);
    const std::vector<uint8_t> changed = plan.Apply(at, block);
    EXPECT_EQ(plan.Changes(at, at + size), AsText(changed) != AsText(block));
    text += std::string(AsText(changed));
    at += size;
  }
  return text + std::string(plan.end_zeros_size_bytes, '\0');
}

// Random runs that overlap, repeat, and leave no byte out.
Stored RandomStored(std::mt19937_64& random) {
  Stored stored;
  const size_t size = random() % 300 + 2;
  // Without zeros; windows differ.
  for (size_t i = 0; i < size; ++i) {
    stored.text.push_back(static_cast<char>(random() % 255 + 1));
  }
  std::vector<TextInterval> parts;
  for (size_t at = 0; at < size;) {
    const size_t end = std::min<size_t>(size, at + random() % 60 + 1);
    parts.push_back({at, end});
    at = end;
  }
  for (size_t count = random() % 12; count > 0; --count) {
    const size_t begin = random() % size;
    parts.push_back(
        {begin, std::min<size_t>(size, begin + random() % 120 + 1)});
  }
  if (random() % 4 != 0) {
    std::ranges::shuffle(parts, random);
  }
  RunList runs;
  for (const TextInterval& part : parts) {
    runs.Append(part.end - part.begin, part.begin);
  }
  stored.runs = std::move(runs).Take();
  return stored;
}

// Parts of the text, in order and not adjacent.
std::vector<TextInterval> RandomParts(uint64_t size_bytes,
                                      std::mt19937_64& random) {
  std::vector<TextInterval> parts;
  for (uint64_t at = random() % 80; at < size_bytes;) {
    const uint64_t end = std::min(size_bytes, at + random() % 90 + 1);
    parts.push_back({at, end});
    at = end + random() % 90 + 1;
  }
  return parts;
}

std::set<std::string> StoredWindows(const std::string& text) {
  std::set<std::string> windows;
  for (size_t i = 0; i + kWindowSizeBytes <= text.size(); ++i) {
    windows.insert(text.substr(i, kWindowSizeBytes));
  }
  return windows;
}

class RandomRedactionTest : public ::testing::TestWithParam<uint64_t> {};

INSTANTIATE_TEST_SUITE_P(Seeds, RandomRedactionTest,
                         ::testing::Range<uint64_t>(0, 40));

TEST_P(RandomRedactionTest, LeavesTheRestAndNoWindowOfTheRemoved) {
  std::mt19937_64 random(GetParam());
  for (int round = 0; round < 50; ++round) {
    SCOPED_TRACE(absl::StrCat("seed ", GetParam(), " round ", round));
    const Stored before = RandomStored(random);
    const std::vector<TextInterval> removed =
        RandomParts(before.size_bytes(), random);
    QUIRE_ASSERT_OK_AND_ASSIGN(const SegmentLayout layout, before.Layout());
    const uint32_t block_size_bytes = random() % 2 == 0 ? 4096 : 8;
    const SegmentRedaction plan =
        PlanSegmentRedaction(layout, before.size_bytes(), before.text.size(),
                             removed, block_size_bytes);
    Stored after = {Rewrite(before, plan, random), plan.runs};
    if (plan.runs.empty()) {
      after.runs = before.runs;
    }
    ASSERT_EQ(after.text.size(), plan.stored_text_size_bytes);
    // Also checks that each byte is in a run, and that none continues the one
    // before.
    QUIRE_ASSERT_OK(after.Layout());
    EXPECT_LE(after.text.size(), after.size_bytes());
    EXPECT_LE(plan.end_zeros_size_bytes, block_size_bytes);

    const std::string text = before.Read();
    std::string expected = text;
    std::set<std::string> secret;
    for (const TextInterval& part : removed) {
      const std::string piece = text.substr(part.begin, part.end - part.begin);
      secret.merge(StoredWindows(piece));
      expected.replace(part.begin, piece.size(), piece.size(), '\0');
    }
    ASSERT_EQ(after.Read(), expected);
    for (const std::string& window : StoredWindows(expected)) {
      secret.erase(window);
    }
    for (const std::string& window : StoredWindows(after.text)) {
      ASSERT_FALSE(secret.contains(window));
    }

    // The parts that stay are the bytes that remaining text uses.
    std::string kept;
    for (uint64_t at = 0; at < before.text.size();) {
      const uint64_t end =
          std::min<uint64_t>(before.text.size(), at + random() % 70 + 1);
      plan.VisitKept(at, end, [&](TextInterval part, bool continues) {
        EXPECT_TRUE(part.begin < part.end && at <= part.begin &&
                    part.end <= end && (part.begin == at || !continues));
        if (!continues) {
          kept.push_back('\0');
        }
        kept += before.text.substr(part.begin, part.end - part.begin);
      });
      at = end;
    }
    std::string without_runs_of_zeros;
    for (const char byte : after.text) {
      if (byte != '\0' || !without_runs_of_zeros.ends_with('\0')) {
        without_runs_of_zeros.push_back(byte);
      }
    }
    const auto trimmed = [](std::string bytes) {
      bytes.erase(0, bytes.starts_with('\0') ? 1 : 0);
      bytes.resize(bytes.size() - (bytes.ends_with('\0') ? 1 : 0));
      return bytes;
    };
    EXPECT_EQ(trimmed(kept), trimmed(without_runs_of_zeros));
  }
}

TEST(SegmentRedactionTest, ZerosTextInItsOwnOrder) {
  const std::vector<TextInterval> removed = {{3, 5}, {8, 10}};
  const SegmentRedaction plan =
      PlanSegmentRedaction(SegmentLayout(10), 10, 10, removed, 4096);
  EXPECT_EQ(plan.zeros, removed);
  EXPECT_THAT(plan.runs, IsEmpty());
  EXPECT_THAT(plan.cuts, IsEmpty());
  EXPECT_EQ(plan.stored_text_size_bytes, 10u);
  EXPECT_EQ(plan.shared_size_bytes, 0u);
  EXPECT_FALSE(plan.Changes(5, 8));
  EXPECT_TRUE(plan.Changes(4, 5));
}

// Two documents of 100 bytes are stored one after the other because the
// first document, which has the text of both, came before them.
TEST(SegmentRedactionTest, CutsWhatOnlyTheRemovedDocumentJoined) {
  const Stored stored = {std::string(100, 'a') + std::string(100, 'b'),
                         {{200, 0}, {100, 100}, {100, 0}}};
  QUIRE_ASSERT_OK_AND_ASSIGN(const SegmentLayout layout, stored.Layout());
  const std::vector<TextInterval> removed = {{0, 200}};
  const SegmentRedaction plan =
      PlanSegmentRedaction(layout, 400, 200, removed, 4096);
  EXPECT_THAT(plan.zeros, IsEmpty());
  EXPECT_THAT(plan.cuts, ElementsAre(100u));
  EXPECT_EQ(plan.shared_size_bytes, 200u);
  EXPECT_EQ(plan.end_zeros_size_bytes, 199u);
  EXPECT_EQ(plan.stored_text_size_bytes, 400u);
  EXPECT_THAT(plan.runs, ElementsAre(StoredRun{1, 100}, StoredRun{199, 201},
                                     StoredRun{100, 101}, StoredRun{100, 0}));
}

// The same document twice, once removed.
TEST(SegmentRedactionTest, KeepsTextThatIsShared) {
  const Stored stored = {std::string(100, 'a'), {{100, 0}, {100, 0}}};
  QUIRE_ASSERT_OK_AND_ASSIGN(const SegmentLayout layout, stored.Layout());
  const std::vector<TextInterval> removed = {{100, 200}};
  const SegmentRedaction plan =
      PlanSegmentRedaction(layout, 200, 100, removed, 16);
  EXPECT_FALSE(plan.Changes(0, 100));
  EXPECT_EQ(plan.end_zeros_size_bytes, 16u);
  EXPECT_EQ(plan.runs.size(), 7u);
}

}  // namespace
}  // namespace quire
