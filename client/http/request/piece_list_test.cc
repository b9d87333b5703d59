// SPDX-License-Identifier: Apache-2.0
#include "client/http/request/piece_list.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kList = R"({
  "format": 1, "archive": "web", "uuid": "0af-1",
  "pieces": [{"file": ".head", "size_bytes": 12},
             {"space": true, "size_bytes": 9007199254740992},
             {"file": "tail.bin", "size_bytes": 0}]})";

TEST(PieceList, IsParsed) {
  const absl::StatusOr<PieceList> list = ParsePieceList(kList);
  QUIRE_ASSERT_OK(list.status());
  EXPECT_EQ(list->archive, "web");
  EXPECT_EQ(list->uuid, "0af-1");
  EXPECT_THAT(list->pieces,
              ElementsAre(Piece{".head", 12}, Piece{"", uint64_t{1} << 53},
                          Piece{"tail.bin", 0}));
}

TEST(PieceList, NamesTheMemberThatIsWrong) {
  const struct {
    const char* from;
    const char* to;
    const char* message;
  } changes[] = {
      {"\"format\": 1,", "", "it has no \"format\""},
      {"\"format\": 1", "\"format\": 2", "\"format\" must be 1"},
      {"\"format\": 1", "\"format\": 1, \"x\": 1", "it has 5 members"},
      {"\"web\"", "\"a/b\"", "\"archive\" must be"},
      {"\"web\"", "7", "\"archive\" must be"},
      {"\"0af-1\"", "\"\"", "\"uuid\" must be"},
      {"\".head\"", "\"../head\"", "\"file\" must be the name"},
      {"\".head\"", "\"..\"", "\"file\" must be the name"},
      {"\".head\"", "\"\"", "\"file\" must be the name"},
      {"\".head\"", "\"a\\u0000b\"", "\"file\" must be the name"},
      {"\".head\"", "null", "\"file\" must be the name"},
      {"true", "false", "\"space\" must be true"},
      {"\"space\": true", "\"space\": true, \"file\": \"a\"", "3 members"},
      {": 12", ": -12", "\"size_bytes\" must be"},
      {": 12", ": 12.5", "\"size_bytes\" must be"},
      {": 12", ": 1e3", "\"size_bytes\" must be"},
      {": 12", ": \"12\"", "\"size_bytes\" must be"},
      {": 12", ": 9007199254740993", "\"size_bytes\" must be"},
      {": 12", ": 18446744073709551616", "\"size_bytes\" must be"},
      {", \"size_bytes\": 12", "", "a piece has no \"size_bytes\""},
      {"{\"file\": \".head\", \"size_bytes\": 12}", "7", "must be an object"},
      {"]}", "]", "it is not JSON"}};

  for (const auto& change : changes) {
    const std::string text =
        absl::StrReplaceAll(kList, {{change.from, change.to}});
    ASSERT_NE(text, kList) << change.from;
    EXPECT_THAT(ParsePieceList(text).status(),
                FailsWith(absl::StatusCode::kFailedPrecondition,
                          HasSubstr(change.message)))
        << text;
  }
}

TEST(PieceList, IsBounded) {
  const auto with_pieces = [](const std::string& pieces) {
    return ParsePieceList(absl::StrCat(
        R"({"format":1,"archive":"a","uuid":"b","pieces":[)", pieces, "]}"));
  };
  std::string pieces = R"({"file":"a","size_bytes":1})";
  QUIRE_EXPECT_OK(with_pieces(pieces).status());
  for (int i = 1; i < 64; ++i) {
    absl::StrAppend(&pieces, R"(,{"file":"a","size_bytes":1})");
  }
  QUIRE_EXPECT_OK(with_pieces(pieces).status());
  const absl::StatusCode refused = absl::StatusCode::kFailedPrecondition;
  EXPECT_EQ(
      with_pieces(pieces + R"(,{"file":"a","size_bytes":1})").status().code(),
      refused);
  EXPECT_EQ(with_pieces("").status().code(), refused);
  EXPECT_EQ(
      ParsePieceList(std::string(kPieceListSizeBytesMax, '[')).status().code(),
      refused);
  EXPECT_EQ(ParsePieceList(std::string(kPieceListSizeBytesMax + 1, ' '))
                .status()
                .code(),
            refused);
  for (const char* text : {"", "null", "[]", "{}", "\"\"", "\xff"}) {
    EXPECT_EQ(ParsePieceList(text).status().code(), refused) << text;
  }
}

}  // namespace
}  // namespace quire
