// SPDX-License-Identifier: Apache-2.0
#include "codecs/deflate/deflate_recipe.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/base/checksum.h"
#include "codecs/base/status_matchers.h"
#include "codecs/deflate/deflate_test_streams.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kSeed = 23;

// A member without its header, and its recipe.
struct Made {
  std::string text;
  std::string member;
  DeflateRecipe recipe;
};

Made Make(DeflateContainer container, const std::string& text) {
  const size_t header = container == DeflateContainer::kRaw    ? 0
                        : container == DeflateContainer::kZlib ? 2
                                                               : 10;
  Made made;
  made.text = text;
  made.recipe.container = container;
  made.member =
      ZlibStream(made.recipe.parameters, text, container).substr(header);
  made.recipe.text_size = text.size();
  made.recipe.member_size = made.member.size();
  made.recipe.checksum = Checksum64(AsBytes(made.member));
  return made;
}

absl::Status Recreate(const DeflateRecipe& recipe, const std::string& text,
                      std::string& out) {
  DeflateEncoder encoder;
  out.assign(recipe.member_size, '?');
  return RecreateDeflateMember(recipe, AsBytes(text), encoder,
                               AsMutableBytes(out));
}

TEST(DeflateRecipeTest, MakesMembersAgain) {
  TestRandom random(kSeed);
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{1000}, size_t{90000}}) {
    for (const TestInput& input : DeflateTexts(random, size)) {
      for (const auto container :
           {DeflateContainer::kRaw, DeflateContainer::kZlib,
            DeflateContainer::kGzip}) {
        SCOPED_TRACE(input.name);
        const Made made = Make(container, input.text);
        std::string out;
        QUIRE_EXPECT_OK(Recreate(made.recipe, made.text, out));
        EXPECT_TRUE(out == made.member);
        // And through its stored form.
        std::string stored;
        AppendDeflateRecipe(made.recipe, stored);
        stored += "rest";
        ByteView in = AsBytes(stored);
        QUIRE_ASSERT_OK_AND_ASSIGN(const DeflateRecipe again,
                                   TakeDeflateRecipe(in));
        EXPECT_EQ(again, made.recipe);
        EXPECT_EQ(AsText(in), "rest");
      }
    }
  }
}

TEST(DeflateRecipeTest, DeliversNothingThatDiffers) {
  TestRandom random(kSeed);
  const Made made = Make(DeflateContainer::kZlib, RandomText(random, 20000));
  std::string out;
  DeflateRecipe recipe = made.recipe;
  recipe.checksum ^= 1;
  EXPECT_THAT(Recreate(recipe, made.text, out),
              FailsWith(absl::StatusCode::kDataLoss, HasSubstr("checksum")));
  recipe = made.recipe;
  recipe.parameters.level = 1;
  EXPECT_THAT(Recreate(recipe, made.text, out),
              HasCode(absl::StatusCode::kDataLoss));
  for (const int more : {-1, 1}) {
    recipe = made.recipe;
    recipe.member_size += static_cast<uint64_t>(int64_t{more});
    EXPECT_THAT(Recreate(recipe, made.text, out),
                FailsWith(absl::StatusCode::kDataLoss,
                          HasSubstr(more > 0 ? "gives fewer" : "gives more")));
  }
  EXPECT_THAT(Recreate(made.recipe, made.text + "x", out),
              FailsWith(absl::StatusCode::kDataLoss, HasSubstr("20001")));
  std::string other = made.text;
  other[5000] ^= 1;
  EXPECT_THAT(Recreate(made.recipe, other, out),
              HasCode(absl::StatusCode::kDataLoss));
}

// Two letters in random order: at each byte thousands of places are compared.
std::string LaboriousText(TestRandom& random) {
  std::string text;
  while (text.size() < 200000) {
    text += static_cast<char>('a' + RandomBelow(random, 2));
  }
  return text;
}

TEST(DeflateRecipeTest, EndsWhatTakesTooLong) {
  TestRandom random(kSeed);
  const std::string text = LaboriousText(random);
  DeflateRecipe recipe;
  recipe.text_size = text.size();
  recipe.member_size = text.size();
  recipe.parameters.level = 9;
  std::string out;
  EXPECT_THAT(Recreate(recipe, text, out),
              FailsWith(absl::StatusCode::kDataLoss, HasSubstr("steps")));
  DeflateEncoder encoder;
  int asked = 0;
  EXPECT_THAT(
      RecreateDeflateMember(recipe, AsBytes(text), encoder, AsMutableBytes(out),
                            [&] { return ++asked == 2; }),
      HasCode(absl::StatusCode::kCancelled));
}

TEST(DeflateRecipeTest, RefusesRecipesThatCannotBe) {
  DeflateRecipe recipe;
  recipe.text_size = 1000;
  recipe.member_size = 100;
  QUIRE_EXPECT_OK(CheckDeflateRecipe(recipe));
  for (const auto& [text_size, member_size] :
       std::vector<std::pair<uint64_t, uint64_t>>{
           {1000, 0},
           {1000, 1},
           {200000, 100},
           {10, 90},
           {kDeflateTextSizeMax + 1, kDeflateTextSizeMax},
           {UINT64_MAX, UINT64_MAX},
           {0, UINT64_MAX}}) {
    recipe.text_size = text_size;
    recipe.member_size = member_size;
    EXPECT_THAT(CheckDeflateRecipe(recipe),
                HasCode(absl::StatusCode::kDataLoss))
        << text_size << " " << member_size;
  }
  recipe.text_size = 1000;
  recipe.member_size = 100;
  std::string stored;
  AppendDeflateRecipe(recipe, stored);
  for (size_t size = 0; size < stored.size(); ++size) {
    ByteView in = AsBytes(stored).first(size);
    EXPECT_THAT(TakeDeflateRecipe(in), HasCode(absl::StatusCode::kDataLoss));
    EXPECT_EQ(in.size(), size);
  }
  size_t kinds = 0;
  for (uint32_t kind = 0; kind < kDeflateRecipeKindEnd; ++kind) {
    if (SetDeflateRecipeKind(kind, recipe).ok()) {
      ++kinds;
      EXPECT_EQ(DeflateRecipeKind(recipe), kind);
    }
  }
  EXPECT_EQ(kinds, 3 * (9 * 9 * 7 * 5 + 9));
}

}  // namespace
}  // namespace quire
