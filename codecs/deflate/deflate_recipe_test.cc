// SPDX-License-Identifier: Apache-2.0
#include "codecs/deflate/deflate_recipe.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "testing/base/status_matchers.h"
#include "testing/codecs/deflate_test_streams.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kRecipeSeed = 23;

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
  return made;
}

// The source returns pieces of at most `piece_size_max` bytes.
absl::Status Recreate(const DeflateRecipe& recipe, const std::string& text,
                      std::string& out, size_t piece_size_max = SIZE_MAX) {
  DeflateEncoder encoder;
  out.assign(recipe.member_size, '?');
  ByteView left = AsBytes(text);
  return RecreateDeflateMember(
      recipe,
      [&]() -> absl::StatusOr<ByteView> {
        const ByteView piece =
            left.first(std::min(left.size(), piece_size_max));
        left = left.subspan(piece.size());
        if (piece.empty()) {
          return absl::UnavailableError("no text is left");
        }
        return piece;
      },
      encoder, AsMutableBytes(out));
}

TEST(DeflateRecipeTest, MakesMembersAgain) {
  TestRandom random(kRecipeSeed);
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
        if (size > 1 && size <= 1000) {
          QUIRE_EXPECT_OK(Recreate(made.recipe, made.text, out, 1));
          EXPECT_TRUE(out == made.member);
        }
        QUIRE_EXPECT_OK(Recreate(made.recipe, made.text, out, 32771));
        EXPECT_TRUE(out == made.member);
      }
    }
  }
}

TEST(DeflateRecipeTest, SaysWhatIsWrong) {
  TestRandom random(kRecipeSeed);
  const Made made = Make(DeflateContainer::kZlib, RandomText(random, 200000));
  std::string out;
  for (const int more : {-1, 1}) {
    DeflateRecipe recipe = made.recipe;
    recipe.member_size += static_cast<uint64_t>(int64_t{more});
    EXPECT_THAT(Recreate(recipe, made.text, out),
                FailsWith(absl::StatusCode::kDataLoss,
                          HasSubstr(more > 0 ? "gives fewer" : "gives more")));
  }
  // The source's error takes precedence, wherever it occurs.
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{70000}, made.text.size() - 1}) {
    EXPECT_THAT(Recreate(made.recipe, made.text.substr(0, size), out),
                FailsWith(absl::StatusCode::kUnavailable,
                          HasSubstr("no text is left")));
  }
  DeflateEncoder encoder;
  EXPECT_THAT(
      RecreateDeflateMember(
          made.recipe, [] { return absl::StatusOr<ByteView>(ByteView()); },
          encoder, AsMutableBytes(out)),
      FailsWith(absl::StatusCode::kInternal, HasSubstr("is empty")));
}

TEST(DeflateRecipeTest, BoundsTheWorkBySize) {
  EXPECT_GT(DeflateWorkMax(0), 0);
  EXPECT_EQ(DeflateWorkMax(1 << 20) - DeflateWorkMax(0), 64 << 20);
  EXPECT_EQ(DeflateWorkMax(3 << 20) - DeflateWorkMax(1 << 20), 64 << 20);
  EXPECT_EQ(DeflateWorkMax(UINT64_MAX), DeflateWorkMax(kDeflateTextSizeMax));
}

// Two letters in random order: thousands of positions are compared per byte.
std::string LaboriousText(TestRandom& random) {
  std::string text;
  while (text.size() < 200000) {
    text += static_cast<char>('a' + RandomBelow(random, 2));
  }
  return text;
}

TEST(DeflateRecipeTest, EndsWhatTakesTooLong) {
  TestRandom random(kRecipeSeed);
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
      RecreateDeflateMember(
          recipe, [&] { return absl::StatusOr<ByteView>(AsBytes(text)); },
          encoder, AsMutableBytes(out), [&] { return ++asked == 2; }),
      HasCode(absl::StatusCode::kCancelled));
}

// Bytes of 9 bits each in the fixed code, in the smallest possible blocks. zlib
// does not store them: with a small window their text is no longer available.
TEST(DeflateRecipeTest, BoundsTheSizeOfWhatZlibMakes) {
  TestRandom random(kRecipeSeed);
  std::string text;
  for (size_t i = 0; i < 120'000; ++i) {
    text += static_cast<char>(i < 511 ? RandomBelow(random, 144)
                                      : 144 + RandomBelow(random, 112));
  }
  uint64_t size_max = 0;
  for (const int memory_level : {1, 2, 3, 6, 8, 9}) {
    for (const int window_bits : {9, 10, 15}) {
      for (const auto strategy :
           {DeflateStrategy::kDefault, DeflateStrategy::kFixed}) {
        for (const int level : {1, 6, 9}) {
          DeflateRecipe recipe;
          recipe.parameters = {
              .level = static_cast<uint8_t>(level),
              .memory_level = static_cast<uint8_t>(memory_level),
              .window_bits = static_cast<uint8_t>(window_bits),
              .strategy = strategy};
          recipe.text_size = text.size();
          recipe.member_size = ZlibStream(recipe.parameters, text).size();
          QUIRE_EXPECT_OK(CheckDeflateRecipe(recipe))
              << DeflateParametersText(recipe.parameters);
          size_max = std::max(size_max, recipe.member_size);
        }
      }
    }
  }
  // The bound is tight.
  EXPECT_GT(size_max, text.size() + text.size() / 8 + 64);
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
