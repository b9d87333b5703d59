// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/deposits/deposit_page.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/bytes.h"
#include "codecs/deflate/deflate_parameters.h"
#include "codecs/deflate/deflate_recipe.h"
#include "server/archive/container/container_part.h"
#include "server/archive/deposits/deposit_directory.h"
#include "server/archive/deposits/deposit_draft.h"
#include "server/archive/deposits/deposits_builder.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using Kind = DepositItem::Kind;

// Documents of 100 bytes each.
uint64_t EndOf(uint64_t offset) {
  return offset / 100 * 100 + 100;
}

DepositTotals TotalsOf(const std::vector<DepositItem>& items) {
  DepositTotals totals;
  for (const DepositItem& item : items) {
    totals.Add(item);
  }
  return totals;
}

uint32_t GzipKind(uint8_t level) {
  return DeflateRecipeKind(
      {.parameters = {.level = level}, .container = DeflateContainer::kGzip});
}

TEST(DepositPageTest, ReadsWhatWasWritten) {
  const std::vector<DepositHeader> headers = {
      {.bytes = "headerof10"},
      {.bytes = std::string(24, 'h'), .text_size_at = 16, .member_size_at = 20},
      {.bytes = "not used.."}};
  const std::vector<DepositItem> items = {
      {.kind = Kind::kLiteral, .size_bytes = 7},
      {.kind = Kind::kMember,
       .size_bytes = 60,
       .text_size_bytes = 50,
       .recipe_kind = GzipKind(6),
       .mtime = 4'000'000'000,
       .header = 1},
      {.kind = Kind::kMember,
       .size_bytes = 61,
       .text_size_bytes = 170,
       .recipe_kind = GzipKind(9),
       .mtime = 5},
      {.kind = Kind::kText, .size_bytes = 33, .text_size_bytes = 33},
      {.kind = Kind::kLiteral, .size_bytes = 90, .text_size_bytes = 97}};
  const std::string page = EncodeDepositPage(items, headers, 250, EndOf);
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const DepositPage parsed,
      DepositPage::Parse(AsBytes(page), TotalsOf(items), 250, EndOf));
  ASSERT_EQ(parsed.items().size(), items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    DepositItem expected = items[i];
    // Only used headers are stored, in order of use.
    expected.header = i == 2 ? 1 : 0;
    EXPECT_EQ(parsed.items()[i], expected) << i;
  }
  EXPECT_EQ(parsed.headers(),
            (std::vector<DepositHeader>{headers[1], headers[0]}));
  // Bytes that are missing, and others.
  for (size_t size = 0; size < page.size(); ++size) {
    EXPECT_TRUE(absl::IsDataLoss(DepositPage::Parse(AsBytes(page).first(size),
                                                    TotalsOf(items), 250, EndOf)
                                     .status()));
  }
  for (const DepositTotals totals : {DepositTotals{.size_bytes = 250,
                                    .text_size_bytes = 350,
                                    .literal_size_bytes = 97},
                                     DepositTotals{.size_bytes = 251,
                                     .text_size_bytes = 351,
                                     .literal_size_bytes = 97},
                                     DepositTotals{.size_bytes = 251,
                                     .text_size_bytes = 350,
                                     .literal_size_bytes = 96}}) {
    EXPECT_TRUE(absl::IsDataLoss(
        DepositPage::Parse(AsBytes(page), totals, 250, EndOf).status()));
  }
}

// A member whose text is one document takes two bytes of size at most.
TEST(DepositPageTest, DocumentsGiveTheSizesOfTexts) {
  std::vector<DepositItem> items;
  for (int i = 0; i < 1000; ++i) {
    items.push_back({.kind = Kind::kMember,
                     .size_bytes = 300,
                     .text_size_bytes = 100,
                     .recipe_kind = GzipKind(6)});
  }
  const std::string page = EncodeDepositPage(
      items, std::vector<DepositHeader>{{"headerof10"}}, 0, EndOf);
  EXPECT_LT(page.size(), 3100);
}

TEST(DepositDraftTest, IsDividedAnywhere) {
  const std::vector<DepositItem> items = {
      {.kind = Kind::kText, .size_bytes = 500, .text_size_bytes = 500},
      {.kind = Kind::kMember,
       .size_bytes = 200,
       .text_size_bytes = 300,
       .recipe_kind = GzipKind(6)},
      {.kind = Kind::kLiteral, .size_bytes = 9}};
  for (uint64_t at = 0; at <= 800; at += 50) {
    DepositDraft draft(
        {.path = "a", .items = items, .headers = {{.bytes = "headerof10"}}});
    const DepositDraft::Part first = draft.Take(at);
    const DepositDraft::Part second = draft.Take(800 - at);
    EXPECT_EQ(draft.state(), DepositState::kKept) << at;
    DepositTotals totals = TotalsOf(first.items);
    EXPECT_EQ(totals.text_size_bytes, at);
    EXPECT_EQ(second.offset, totals.size_bytes);
    for (const DepositItem& item : second.items) {
      totals.Add(item);
    }
    EXPECT_EQ(totals.size_bytes, 709);
    EXPECT_EQ(totals.text_size_bytes, 800);
    EXPECT_EQ(totals.literal_size_bytes, at > 500 && at < 800 ? 209 : 9);
    EXPECT_TRUE(first.begins);
    EXPECT_EQ(first.ends, at == 800);
  }
  DepositDraft draft({.path = "a", .items = items});
  draft.Take(801);
  EXPECT_EQ(draft.state(), DepositState::kAbandoned);
}

class DepositsBuilderTest : public ::testing::Test {
 protected:
  static std::shared_ptr<DepositDraft> Draft(const std::string& path,
                                             uint64_t size_bytes) {
    return std::make_shared<DepositDraft>(
        DepositDraft::File{.path = path,
                           .size_bytes = size_bytes,
                           .items = {{.kind = Kind::kText,
                                      .size_bytes = size_bytes,
                                      .text_size_bytes = size_bytes}}});
  }

  static SegmentDeposits Build(DepositsBuilder& builder, uint64_t text_size) {
    ContainerData data;
    const absl::StatusOr<std::string> head = builder.Build(data);
    EXPECT_TRUE(head.ok()) << head.status();
    const absl::StatusOr<SegmentDeposits> parsed =
        SegmentDeposits::Parse(AsBytes(*head), text_size, uint64_t{1} << 20);
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->Encode(), *head);
    return *parsed;
  }

  ContainerData data_;
};

TEST_F(DepositsBuilderTest, FilesContinue) {
  const auto a = Draft("a", 300);
  DepositsBuilder first;
  QUIRE_ASSERT_OK(first.AddText(nullptr, 10, data_));
  QUIRE_ASSERT_OK(first.AddText(a, 100, data_));
  const SegmentDeposits begin = Build(first, 110);
  ASSERT_EQ(begin.portions().size(), 1);
  EXPECT_TRUE(begin.portions()[0].begins && !begin.portions()[0].ends);
  DepositsBuilder second;
  QUIRE_ASSERT_OK(second.AddText(a, 150, data_));
  QUIRE_ASSERT_OK(second.AddText(a, 50, data_));
  QUIRE_ASSERT_OK(second.AddText(nullptr, 5, data_));
  const SegmentDeposits end = Build(second, 205);
  EXPECT_TRUE(!end.portions()[0].begins && end.portions()[0].ends);
  // Joined, they are one.
  DepositsBuilder joined;
  joined.AddStored(begin.portions()[0]);
  QUIRE_ASSERT_OK(joined.AddText(nullptr, 110, data_));
  joined.AddStored(end.portions()[0]);
  QUIRE_ASSERT_OK(joined.AddText(nullptr, 205, data_));
  const SegmentDeposits all = Build(joined, 315);
  ASSERT_EQ(all.portions().size(), 1);
  EXPECT_TRUE(all.portions()[0].begins && all.portions()[0].ends);
  EXPECT_EQ(all.portions()[0].state, DepositState::kKept);
  EXPECT_EQ(all.portions()[0].text_offset, 10);
  EXPECT_EQ(all.portions()[0].Totals().size_bytes, 300);
  // Without its rest, it is no file any more.
  DepositsBuilder broken;
  broken.AddStored(begin.portions()[0]);
  QUIRE_ASSERT_OK(broken.AddText(nullptr, 110, data_));
  QUIRE_ASSERT_OK(broken.AddText(nullptr, 7, data_));
  EXPECT_EQ(Build(broken, 117).portions()[0].state, DepositState::kAbandoned);
}

TEST_F(DepositsBuilderTest, AbandonsFilesWithOtherText) {
  for (const uint64_t size_bytes : {uint64_t{99}, uint64_t{101}}) {
    DepositsBuilder builder;
    QUIRE_ASSERT_OK(builder.AddText(Draft("a", 100), size_bytes, data_));
    QUIRE_ASSERT_OK(builder.AddText(nullptr, 1, data_));
    EXPECT_EQ(Build(builder, size_bytes + 1).portions()[0].state,
              DepositState::kAbandoned);
  }
}

}  // namespace
}  // namespace quire
