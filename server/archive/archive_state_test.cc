// SPDX-License-Identifier: GPL-3.0-or-later
//
// Earlier states of an archive, and parts that archives opened one after the
// other share.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "server/archive/archive.h"
#include "server/archive/archive_writer.h"
#include "server/archive/stored_order.h"
#include "testing/archive/archive_testing.h"
#include "testing/archive/crafted_archive.h"
#include "testing/base/status_matchers.h"
#include "testing/base/test_level.h"

namespace quire {
namespace {

namespace fs = std::filesystem;

ArchiveWriterOptions Options(const char* codec) {
  ArchiveWriterOptions options;
  options.codec = ParseCodecSpec(codec).value();
  options.block_size_bytes = 4096;
  return options;
}

// Documents of few ids, types and times.
TestSegment RandomSegment(size_t count, std::mt19937_64& random) {
  TestSegment segment(count);
  for (TestDocument& document : segment) {
    document.id = absl::StrCat("d/", random() % 4, "/", random() % 3);
    document.text = std::string(random() % 3, 'x');
    document.record_type =
        std::vector<std::string>{"", "response", "revisit"}[random() % 3];
    if (random() % 3 != 0) {
      document.capture_time_ms = static_cast<int64_t>(random() % 10);
    }
  }
  return segment;
}

// Returns the documents of the first `count` of all segments.
std::vector<TestSegment> FirstOf(const std::vector<TestSegment>& segments,
                                 size_t count) {
  std::vector<TestSegment> first;
  for (const TestSegment& segment : segments) {
    const size_t taken = std::min(count, segment.size());
    first.emplace_back(segment.begin(),
                       segment.begin() + static_cast<ptrdiff_t>(taken));
    count -= taken;
  }
  return first;
}

std::shared_ptr<const Archive> Make(const std::string& path,
                                    const std::vector<TestSegment>& segments) {
  QUIRE_EXPECT_OK(WriteTestArchive(path, Options("copy"), segments));
  return Archive::Open(path).value();
}

std::vector<std::string> List(const Archive& archive, uint64_t end,
                              const std::string& prefix,
                              const std::string& delimiter,
                              const Archive::IdCursor* after) {
  std::vector<std::string> entries;
  archive.VisitListing(
      {.prefix = prefix, .delimiter = delimiter, .after = after, .end = end},
      [&](const Document& document) {
        entries.push_back(
            absl::StrCat(document.id, "@", document.ordinal.value));
        return true;
      },
      [&](absl::string_view common) {
        entries.emplace_back(common);
        return true;
      });
  return entries;
}

void ExpectEqualLookUps(const Archive& whole, uint64_t end,
                        const Archive& first) {
  for (const std::string id :
       {"d/0/0", "d/1/2", "d/3/1", "d/2/0", "none", ""}) {
    for (std::optional<uint64_t> occurrence :
         {std::optional<uint64_t>(), std::optional<uint64_t>(0u),
          std::optional<uint64_t>(3u), std::optional<uint64_t>(90u)}) {
      const auto found = whole.FindDocument(id, occurrence, end);
      const auto expected = first.FindDocument(id, occurrence);
      EXPECT_EQ(found.count, expected.count) << id;
      EXPECT_EQ(found.ordinal, expected.ordinal) << id;
    }
    for (const int64_t time : {INT64_MIN, int64_t{3}, INT64_MAX}) {
      const absl::string_view types[] = {"response", ""};
      const DocumentSelection selection = {.record_types = types,
                                           .at_time_ms = time};
      const auto found = whole.FindCapture(id, selection, end);
      const auto expected = first.FindCapture(id, selection);
      EXPECT_EQ(found.count, expected.count) << id;
      EXPECT_EQ(found.ordinal, expected.ordinal) << id << " at " << time;
    }
    auto types = whole.RecordTypesOf(id, 9, end);
    auto expected_types = first.RecordTypesOf(id, 9);
    std::ranges::sort(types);
    std::ranges::sort(expected_types);
    EXPECT_EQ(types, expected_types);
  }
  const Archive::IdCursor after = {.id = "d/1/1", .ordinal = 5};
  const Archive::IdCursor after_prefix = {.id = "d/1/",
                                          .is_common_prefix = true};
  for (const std::string prefix : {"", "d/", "d/2", "d/2/1", "x"}) {
    for (const std::string delimiter : {"", "/"}) {
      for (const Archive::IdCursor* const cursor :
           {static_cast<const Archive::IdCursor*>(nullptr), &after,
            &after_prefix}) {
        EXPECT_EQ(
            List(whole, end, prefix, delimiter, cursor),
            List(first, Archive::kAllDocuments, prefix, delimiter, cursor));
      }
    }
  }
}

// A state need not end with a segment: segments may have been merged.
TEST(ArchiveStateTest, LookUpsSeeTheDocumentsOfTheStateAlone) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937_64 random(seed);
  const TemporaryDirectory directory;
  for (int round = 0; round < 4; ++round) {
    // Some ids have more documents than are compared one by one.
    const std::vector<TestSegment> segments = {
        RandomSegment(random() % 40, random), RandomSegment(1500, random),
        RandomSegment(random() % 300, random)};
    size_t count = 0;
    for (const TestSegment& segment : segments) {
      count += segment.size();
    }
    const auto whole =
        Make(directory / absl::StrCat("whole-", round), segments);
    for (int i = 0; i < 4; ++i) {
      const size_t end = i == 0 ? segments[0].size() : random() % (count + 1);
      SCOPED_TRACE(absl::StrCat("end ", end, " of ", count));
      const auto first = Make(directory / absl::StrCat("first-", round, "-", i),
                              FirstOf(segments, end));
      ExpectEqualLookUps(*whole, end, *first);
    }
  }
}

class SharedArchiveTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto context = std::make_shared<CodecContext>(
        CodecContext{std::string(500, 'd'), CraftedSymbolTable()});
    QUIRE_ASSERT_OK(WriteTestArchive(
        path_, Options("rlz"),
        {{{.id = "a", .text = "text a"}}, {{.id = "b", .text = "text b"}}},
        context));
  }

  void Append() const {
    auto change = ArchiveChange::Begin(path_);
    ASSERT_TRUE(change.ok()) << change.status();
    const auto writer = ArchiveWriter::Append(*std::move(change), "test");
    QUIRE_ASSERT_OK(WriteTestSegment({{.id = "c", .text = "text c"}}, 4096,
                                     nullptr, *writer));
    QUIRE_ASSERT_OK(writer->Commit());
  }

  // Memory of the parts that an archive has and others do not.
  static uint64_t NewBytes(const Archive& archive, const Archive& before) {
    std::map<const void*, uint64_t> parts;
    archive.VisitMemoryParts(
        [&](const void* part, uint64_t bytes) { parts[part] = bytes; });
    uint64_t sum = 0;
    for (const auto& [part, bytes] : parts) {
      sum += bytes;
    }
    EXPECT_EQ(sum, archive.memory_bytes_max());
    before.VisitMemoryParts(
        [&](const void* part, uint64_t /*bytes*/) { parts.erase(part); });
    sum = 0;
    for (const auto& [part, bytes] : parts) {
      sum += bytes;
    }
    return sum;
  }

  std::shared_ptr<const Archive> Open(const Archive* shared) const {
    return Archive::Open(path_, {.shared = shared}).value();
  }

  // Replaces a file by an equal one.
  void Renew(const std::string& name) const {
    const std::string file = absl::StrCat(path_, "/", name);
    const std::string bytes = ReadTestFile(file);
    WriteTestFile(path_ + "/new", bytes);
    fs::rename(path_ + "/new", file);
  }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_ / "a.quire";
};

TEST_F(SharedArchiveTest, AnArchiveThatGrewOpensOnlyItsNewSegment) {
  std::shared_ptr<const Archive> before = Open(nullptr);
  EXPECT_FALSE(Archive::MayHaveChanged(*before));
  Append();
  EXPECT_TRUE(Archive::MayHaveChanged(*before));
  const auto outline = Archive::ReadOutline(path_, before.get());
  QUIRE_ASSERT_OK(outline);
  const auto after = Open(before.get());
  EXPECT_EQ(after->OpenedSegmentId(0), before->OpenedSegmentId(0));
  EXPECT_EQ(after->OpenedSegmentId(1), before->OpenedSegmentId(1));
  EXPECT_NE(after->OpenedSegmentId(2), after->OpenedSegmentId(1));
  EXPECT_EQ(after->dictionary().data(), before->dictionary().data());
  EXPECT_EQ(NewBytes(*after, *before), outline->new_memory_bytes);
  EXPECT_LT(outline->new_memory_bytes, outline->memory_bytes);
  EXPECT_EQ(outline->memory_bytes, after->memory_bytes_max());
  EXPECT_EQ(after->memory().total_bytes(),
            Open(nullptr)->memory().total_bytes());
  // Shared parts outlive the archive that opened them.
  before.reset();
  EXPECT_EQ(ReadTestRange(*after, {{0}, 18}).value(), "text atext btext c");
  EXPECT_EQ(after->FindDocument("b", std::nullopt).ordinal->value, 1u);
}

TEST_F(SharedArchiveTest, OtherFilesAreOpenedAgain) {
  const auto before = Open(nullptr);
  Renew("segment-00000001");
  const auto after = Open(before.get());
  EXPECT_EQ(after->OpenedSegmentId(0), before->OpenedSegmentId(0));
  EXPECT_NE(after->OpenedSegmentId(1), before->OpenedSegmentId(1));
  EXPECT_EQ(after->dictionary().data(), before->dictionary().data());
  for (const auto& entry : fs::directory_iterator(path_)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("dictionary-")) {
      Renew(name);
      break;
    }
  }
  const auto last = Open(after.get());
  EXPECT_NE(last->dictionary().data(), before->dictionary().data());
  EXPECT_EQ(last->OpenedSegmentId(1), after->OpenedSegmentId(1));
}

TEST_F(SharedArchiveTest, AnotherArchiveSharesNothing) {
  const auto before = Open(nullptr);
  fs::remove_all(path_);
  QUIRE_ASSERT_OK(WriteTestArchive(
      path_, Options("copy"),
      {{{.id = "a", .text = "text a"}}, {{.id = "b", .text = "text b"}}}));
  const auto after = Open(before.get());
  EXPECT_NE(after->OpenedSegmentId(0), before->OpenedSegmentId(0));
  EXPECT_EQ(NewBytes(*after, *before), after->memory_bytes_max());
}

// The stored order of an earlier state is that of its segments.
TEST(StoredOrderOfStateTest, EndsWithTheState) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a";
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto created,
      ArchiveWriter::Create(path, Options("copy"), nullptr));
  const auto write = [](ArchiveWriter& writer) {
    const TestSegment segment = {{.id = "a", .text = "bbaa"}};
    return WriteTestSegment(segment, "aabb",
                            {{.size_bytes = 2, .stored_offset = 2},
                             {.size_bytes = 2, .stored_offset = 0}},
                            4096, nullptr, writer);
  };
  QUIRE_ASSERT_OK(write(*created));
  QUIRE_ASSERT_OK_AND_ASSIGN(const ArchiveInfo before, created->Commit());
  auto change = ArchiveChange::Begin(path);
  ASSERT_TRUE(change.ok()) << change.status();
  const auto writer = ArchiveWriter::Append(*std::move(change), "test");
  QUIRE_ASSERT_OK(write(*writer));
  QUIRE_ASSERT_OK(writer->Commit());
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path));
  const ArchiveView state = archive->FindState(before.uuid).value();
  for (const auto& [view, size] :
       {std::pair(state, 4), std::pair(ArchiveView(*archive), 8)}) {
    ASSERT_TRUE(StoredOrder::IsThere(view));
    StoredOrder order(view);
    uint64_t covered = 0;
    while (!order.at_end()) {
      const auto range = order.Peek(
          100, 10, [](const std::vector<BlockSlice>&) { return true; });
      for (const StoredPlace& place : range.places) {
        covered += place.size_bytes;
        EXPECT_LE(place.offset + place.size_bytes, view.size_bytes);
      }
      order.Pass(range);
    }
    EXPECT_EQ(covered, static_cast<uint64_t>(size));
  }
  // A state that ends within a segment has none.
  ArchiveView cut = *archive;
  cut.size_bytes = 6;
  EXPECT_FALSE(StoredOrder::IsThere(cut));
}

}  // namespace
}  // namespace quire
