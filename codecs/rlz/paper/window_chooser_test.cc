// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/paper/window_chooser.h"

#include <string>

#include "gtest/gtest.h"

#include "codecs/base/bytes.h"
#include "testing/codecs/codec_test_inputs.h"

namespace quire {
namespace {

TEST(WindowChooserTest, FindsWhereTheBlockIsFrom) {
  TestRandom random(1);
  const std::string dictionary = RandomBytes(random, 1000000);
  const WindowChooser chooser(AsBytes(dictionary));
  WindowChooser::Memory memory;
  for (const size_t from :
       {size_t{0}, size_t{100000}, size_t{500500}, dictionary.size() - 20000}) {
    const std::string block =
        EditedPieces(random, dictionary.substr(from, 20000), 16384);
    const size_t window = chooser.Choose(AsBytes(block), memory);
    EXPECT_LE(window, from + 4096);
    EXPECT_GE(window + WindowChooser::kWindowSize, from + 16000);
    EXPECT_LE(window + WindowChooser::kWindowSize, dictionary.size());
  }
}

TEST(WindowChooserTest, TakesAllOfASmallDictionary) {
  TestRandom random(1);
  WindowChooser::Memory memory;
  for (const size_t size : {size_t{0}, size_t{7}, size_t{8}, size_t{32768}}) {
    const std::string dictionary = RandomText(random, size);
    EXPECT_EQ(
        WindowChooser(AsBytes(dictionary)).Choose(AsBytes("text"), memory), 0u);
  }
  // One byte more than a window.
  const std::string dictionary = RandomBytes(random, 32769);
  EXPECT_LE(WindowChooser(AsBytes(dictionary))
                .Choose(AsBytes(dictionary).subspan(20000), memory),
            1u);
}

TEST(WindowChooserTest, DoesNotDependOnTheBlocksBefore) {
  TestRandom random(2);
  const std::string dictionary = RandomText(random, 300000, 20000);
  const WindowChooser chooser(AsBytes(dictionary));
  WindowChooser::Memory used;
  for (int i = 0; i < 20; ++i) {
    const std::string block = EditedPieces(random, dictionary, 5000);
    WindowChooser::Memory fresh;
    EXPECT_EQ(chooser.Choose(AsBytes(block), used),
              chooser.Choose(AsBytes(block), fresh));
  }
  // Nothing in common, or too short for a string: the dictionary's beginning.
  EXPECT_EQ(chooser.Choose(AsBytes(std::string(5000, '\xFF')), used), 0u);
  EXPECT_EQ(chooser.Choose(AsBytes("short"), used), 0u);
}

TEST(WindowChooserTest, TakesAboutAByteForAByte) {
  TestRandom random(3);
  const std::string dictionary = RandomBytes(random, 1 << 20);
  const size_t memory = WindowChooser(AsBytes(dictionary)).MemoryBytes();
  EXPECT_GE(memory, dictionary.size() / 4);
  EXPECT_LE(memory, dictionary.size() * 2);
}

}  // namespace
}  // namespace quire
