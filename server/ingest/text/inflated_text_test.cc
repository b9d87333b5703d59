// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/text/inflated_text.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "server/archive/archive.h"
#include "server/archive/archive_verifier.h"
#include "server/ingest/build_pipeline.h"
#include "server/ingest/testing/ingest_testing.h"
#include "server/ingest/testing/memory_source.h"
#include "testing/base/sanitized.h"
#include "testing/base/status_matchers.h"
#include "testing/codecs/deflate_test_streams.h"

namespace quire {
namespace {

constexpr size_t kMemberBlockSize = 32 << 10;

std::string Member(uint64_t seed) {
  return GzipProgramStream(9, MakeTestText(9000, seed));
}

absl::StatusOr<std::string> ReadAll(const InflatedText& text) {
  std::string all(text.size_bytes, '?');
  MutableByteView rest = AsMutableBytes(all);
  while (!rest.empty()) {
    QUIRE_ASSIGN_OR_RETURN(const size_t got,
                           text.file->ReadAt(all.size() - rest.size(), rest));
    if (got == 0) {
      return absl::DataLossError("short");
    }
    rest = rest.subspan(got);
  }
  return all;
}

TEST(InflatedTextTest, DoesNotDependOnThreadsOrPieces) {
  const TemporaryDirectory directory;
  constexpr uint64_t kMembers = Fewer(90u);
  std::string text;
  for (uint64_t i = 0; i < kMembers; ++i) {
    text += MakeTestText(11000 + i, i);
    text += Member(i);
  }
  std::string expected;
  for (const uint32_t threads : {1u, 2u, 3u}) {
    for (const size_t piece_size : {777u, 100'000u}) {
      QUIRE_ASSERT_OK_AND_ASSIGN(
          const auto inflater,
          TextInflater::Create(
              {.spool_directory = directory / "", .threads = threads}));
      for (size_t begin = 0; begin < text.size(); begin += piece_size) {
        QUIRE_ASSERT_OK(inflater->Add(AsBytes(text.substr(begin, piece_size))));
      }
      QUIRE_ASSERT_OK_AND_ASSIGN(const InflatedText made, inflater->Finish());
      EXPECT_EQ(made.members.size(), kMembers);
      QUIRE_ASSERT_OK_AND_ASSIGN(std::string all, ReadAll(made));
      if (expected.empty()) {
        expected = std::move(all);
        EXPECT_GT(expected.size(), text.size());
      } else {
        EXPECT_TRUE(all == expected);
      }
    }
  }
}

// A member at each border of the windows of 2 MiB, two of which one thread
// searches at a time.
TEST(InflatedTextTest, FindsMembersWhereWindowsMeet) {
  const TemporaryDirectory directory;
  const std::string filler = MakeTestText(300'000, 1);
  const std::string plain = MakeTestText(9000, 7);
  const std::string member = GzipProgramStream(9, plain);
  constexpr size_t kWindowSize = size_t{2} << 20;
  constexpr size_t kBorders = kIsSanitized ? 3 : 5;
  std::string text;
  std::string expected;
  const auto fill = [&](size_t size) {
    while (text.size() < size) {
      const std::string piece =
          filler.substr(0, std::min(filler.size(), size - text.size()));
      text += piece;
      expected += piece;
    }
  };
  for (size_t i = 1; i <= kBorders; ++i) {
    fill(i * kWindowSize - member.size() / 2);
    text += member;
    expected += member.substr(0, 10) + plain;
  }
  for (const uint32_t threads : {1u, 2u}) {
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const auto inflater,
        TextInflater::Create(
            {.spool_directory = directory / "", .threads = threads}));
    QUIRE_ASSERT_OK(inflater->Add(AsBytes(text)));
    QUIRE_ASSERT_OK_AND_ASSIGN(const InflatedText made, inflater->Finish());
    EXPECT_EQ(made.members.size(), kBorders) << threads;
    QUIRE_ASSERT_OK_AND_ASSIGN(const std::string all, ReadAll(made));
    EXPECT_TRUE(all == expected) << threads;
  }
}

TEST(InflatedTextTest, EndsWhenItIsCancelled) {
  const TemporaryDirectory directory;
  const std::atomic<bool> cancel = true;
  for (const uint32_t threads : {1u, 2u}) {
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const auto inflater,
        TextInflater::Create({.spool_directory = directory / "",
                              .threads = threads,
                              .cancel = &cancel}));
    QUIRE_ASSERT_OK(inflater->Add(AsBytes(Member(1))));
    EXPECT_THAT(inflater->Finish(), HasCode(absl::StatusCode::kCancelled));
  }
}

BuildOptions InflatingOptions() {
  BuildOptions options;
  options.archive.codec = *ParseCodecSpec("rlz");
  options.archive.block_size_bytes = kMemberBlockSize;
  options.archive.replace = true;
  options.dictionary_size_bytes = 64 << 10;
  options.threads = 2;
  options.inflate = true;
  return options;
}

// Builds, verifies all blocks, and returns the archive's info.
ArchiveInfo BuildAndVerify(const std::string& path,
                           const IdsAndContents& documents,
                           const BuildOptions& options) {
  const auto summary = BuildArchive(path, OneSource(documents), options);
  EXPECT_THAT(summary, IsOk());
  const auto report = VerifyArchive(path, {}, [](const ArchiveDamage&) {});
  EXPECT_THAT(report, IsOk());
  const auto archive = Archive::Open(path);
  EXPECT_THAT(archive, IsOk());
  // Checks the blocks by the documents' ranges.
  const auto scratch = (*archive)->codec().NewScratch();
  for (uint64_t i = 0; i < documents.size(); ++i) {
    const auto document = (*archive)->GetDocument(DocumentOrdinal{i});
    EXPECT_THAT(document, IsOk());
    const auto slices = (*archive)->Plan(document->range);
    EXPECT_THAT(slices, IsOk());
    std::string text;
    for (const BlockSlice& slice : *slices) {
      std::string block((*archive)->BlockSizeBytes(slice.block), '\0');
      QUIRE_EXPECT_OK(
          (*archive)->ReadBlock(slice.block, AsMutableBytes(block), *scratch));
      text.append(block, slice.offset_in_block, slice.size_bytes);
    }
    EXPECT_TRUE(text == documents[i].second) << documents[i].first;
  }
  return summary->info;
}

TEST(InflatedTextTest, MakesArchivesSmallerThatComeBackEqual) {
  const TemporaryDirectory directory;
  IdsAndContents documents;
  for (uint64_t i = 0; i < (kIsSanitized ? 12u : 60u); ++i) {
    // Two versions of each text, which have nothing in common as gzip members.
    std::string text = MakeTestText(20000, i / 2);
    text[i % 2 * 40] = 'X';
    documents.emplace_back(absl::StrCat("document-", i),
                           GzipProgramStream(9, text));
  }
  for (const ReorderMode reorder :
       {ReorderMode::kOff, ReorderMode::kAuto, ReorderMode::kFull}) {
    BuildOptions options = InflatingOptions();
    options.reorder = reorder;
    const ArchiveInfo with =
        BuildAndVerify(directory / "with", documents, options);
    EXPECT_TRUE(with.has_recipes);
    options.inflate = false;
    const ArchiveInfo without =
        BuildAndVerify(directory / "without", documents, options);
    EXPECT_FALSE(without.has_recipes);
    EXPECT_LT(with.stored_size_bytes, without.stored_size_bytes * 9 / 10);
  }
}

// Members of several blocks, also at borders of the search's windows, in
// segments that end at any document.
TEST(InflatedTextTest, CutsBlocksAroundLargeMembers) {
  const TemporaryDirectory directory;
  IdsAndContents documents;
  uint64_t member_bytes = 0;
  const std::string text = MakeTestText(600'000, 1);
  for (uint64_t i = 0; i < 14; ++i) {
    const std::string member =
        GzipProgramStream(6, text.substr(1000 * i, 150'000 + 30'000 * i));
    member_bytes += member.size();
    documents.emplace_back(
        absl::StrCat("document-", i),
        i % 3 == 0 ? member : MakeTestText(40'000, i) + member);
  }
  ASSERT_GT(member_bytes, 1u << 20);
  BuildOptions options = InflatingOptions();
  options.segment_size_bytes = 1 << 19;
  options.dictionary_size_bytes = 1 << 20;
  const ArchiveInfo with =
      BuildAndVerify(directory / "with", documents, options);
  EXPECT_TRUE(with.has_varying_blocks);
  EXPECT_GT(with.block_size_bytes_max, uint32_t{kMemberBlockSize});
  ASSERT_EQ(with.found_members.size(), 1u);
  const FoundMembers& found = with.found_members[0];
  EXPECT_EQ(found.container, DeflateContainer::kGzip);
  EXPECT_EQ(found.count, documents.size());
  // Without their headers.
  EXPECT_EQ(found.size_bytes, member_bytes - 10 * documents.size());
  EXPECT_GT(found.text_size_bytes, found.size_bytes);
  EXPECT_EQ(found.inflated.count, found.count);
  EXPECT_EQ(found.inflated.size_bytes, found.size_bytes);
  EXPECT_GT(found.inflated.stored_size_bytes, 0u);
  EXPECT_LT(found.inflated.stored_size_bytes, found.size_bytes / 2);
  options.threads = 3;
  const ArchiveInfo again =
      BuildAndVerify(directory / "with", documents, options);
  EXPECT_EQ(again.uuid, with.uuid);
  EXPECT_EQ(again.found_members, with.found_members);
  options.inflate_member_size_bytes_max = 100'000;
  const ArchiveInfo bounded =
      BuildAndVerify(directory / "bounded", documents, options);
  EXPECT_EQ(bounded.codec.id, CodecId::kRlz);
  // The text of all members is in the dictionary.
  EXPECT_LT(with.stored_size_bytes, bounded.stored_size_bytes / 2);
}

TEST(InflatedTextTest, ChangesNothingWithoutMembers) {
  const TemporaryDirectory directory;
  const IdsAndContents documents = {{"a", MakeTestText(90000, 1)},
                                    {"b", MakeTestText(5000, 2)}};
  BuildOptions options = InflatingOptions();
  const ArchiveInfo with =
      BuildAndVerify(directory / "with", documents, options);
  options.inflate = false;
  const ArchiveInfo without =
      BuildAndVerify(directory / "without", documents, options);
  EXPECT_EQ(with.codec.id, CodecId::kRlz);
  EXPECT_EQ(with.uuid, without.uuid);
  EXPECT_EQ(with.stored_size_bytes, without.stored_size_bytes);
}

TEST(InflatedTextTest, CountsMembersThatAreTooLarge) {
  const TemporaryDirectory directory;
  const std::string text = MakeTestText(100'000, 3);
  const IdsAndContents documents = {
      {"a", GzipProgramStream(9, text)},
      {"b", GzipProgramStream(9, text.substr(0, 50'000))},
      {"c", GzipProgramStream(9, text.substr(1))}};
  BuildOptions options = InflatingOptions();
  // The same if nothing is inflated in the end.
  for (const auto& [size_max, count] :
       {std::pair<size_t, uint64_t>(100'000, 0), {60'000, 2}, {10'000, 3}}) {
    options.inflate_member_size_bytes_max = size_max;
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const BuildSummary summary,
        BuildArchive(directory / "archive", OneSource(documents), options));
    EXPECT_EQ(summary.oversized_members.count, count) << size_max;
    EXPECT_EQ(summary.oversized_members.size_bytes > 0, count > 0);
  }
}

TEST(InflatedTextTest, LeavesFewMembersAsTheyAre) {
  const TemporaryDirectory directory;
  const std::string member = GzipProgramStream(9, MakeTestText(9000, 3));
  const BuildOptions options = InflatingOptions();
  for (const size_t times : {size_t{400}, size_t{600}}) {
    const ArchiveInfo info = BuildAndVerify(
        directory / "archive",
        {{"a", MakeTestText(times * member.size(), 1)}, {"b", member}},
        options);
    EXPECT_EQ(info.has_recipes, times < 512);
  }
}

}  // namespace
}  // namespace quire
