// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/redaction/window_table.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"

#include "server/redaction/dictionary_redaction.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Texts = std::vector<std::string>;

std::set<std::string> WindowsIn(const Texts& texts) {
  std::set<std::string> windows;
  for (const std::string& text : texts) {
    for (size_t i = 0; i + kWindowSizeBytes <= text.size(); ++i) {
      windows.insert(text.substr(i, kWindowSizeBytes));
    }
  }
  return windows;
}

// Returns a text of few different words, so that windows are repeated.
std::string RandomText(size_t size, std::mt19937_64& random) {
  const char* const words[] = {"aaaaaaaaaaaaaaaa", "lorem ipsum dolor",
                               "sit amet consectetur adipiscing elit sed do",
                               "x", "eiusmod tempor incididunt"};
  std::string text;
  while (text.size() < size) {
    text += words[random() % 5];
  }
  text.resize(size);
  return text;
}

Texts RandomTexts(size_t count, std::mt19937_64& random) {
  Texts texts;
  for (size_t i = 0; i < count; ++i) {
    texts.push_back(RandomText(random() % 200, random));
  }
  return texts;
}

// Adds each text in pieces of random sizes.
void AddInPieces(const Texts& texts, std::mt19937_64& random, TextSink& sink) {
  for (const std::string& text : texts) {
    const size_t piece_size_max = random() % 3 == 0 ? 3 : random() % 100 + 1;
    for (size_t at = 0; at < text.size();) {
      const size_t size =
          std::min(text.size() - at, random() % piece_size_max + 1);
      sink.Add(AsBytes(text).subspan(at, size));
      at += size;
    }
    sink.Break();
  }
}

TEST(WindowTableTest, FindsExactlyTheWindowsOfBoth) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const std::string text = RandomText(random() % 600 + 32, random);
    const size_t count = text.size() - kWindowSizeBytes + 1;
    const size_t begin = random() % count;
    const size_t end = begin + random() % (count - begin + 1);
    WindowTable table(AsBytes(text), end - begin);
    table.Add(begin, end);
    const std::set<std::string> in_table =
        begin == end ? std::set<std::string>()
                     : WindowsIn({text.substr(
                           begin, end - begin + kWindowSizeBytes - 1)});
    EXPECT_EQ(table.count(), in_table.size());
    const Texts texts = RandomTexts(5, random);
    std::set<std::string> expected;
    std::ranges::set_intersection(in_table, WindowsIn(texts),
                                  std::inserter(expected, expected.end()));
    std::set<std::string> found;
    WindowScanner scanner(table, [&](uint32_t position) {
      EXPECT_TRUE(begin <= position && position < end);
      found.insert(text.substr(position, kWindowSizeBytes));
    });
    AddInPieces(texts, random, scanner);
    EXPECT_EQ(found, expected);
  }
}

TEST(WindowTableTest, ABreakEndsAText) {
  const std::string text = "0123456789abcdefghijklmnopqrstuv";
  WindowTable table(AsBytes(text), 1);
  table.Add(0, 1);
  std::vector<uint32_t> found;
  WindowScanner scanner(
      table, [&found](uint32_t position) { found.push_back(position); });
  scanner.Add(AsBytes(text).first(20));
  scanner.Break();
  scanner.Add(AsBytes(text).subspan(20));
  EXPECT_THAT(found, IsEmpty());
  scanner.Break();
  scanner.Add(AsBytes(text).first(20));
  scanner.Add(AsBytes(text).subspan(20));
  EXPECT_THAT(found, ElementsAre(0u));
}

TEST(RedactDictionaryTest, ZerosExactlyWhatOnlyRemovedTextHas) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const Texts removed = RandomTexts(random() % 4, random);
    const Texts kept = RandomTexts(random() % 4, random);
    // Text of both, and of neither.
    std::string dictionary = RandomText(random() % 100, random);
    for (int i = 0; i < 4; ++i) {
      const Texts& texts = random() % 2 == 0 ? removed : kept;
      dictionary += texts.empty() ? "nothing" : texts[random() % texts.size()];
    }
    std::string expected = dictionary;
    const auto in_removed = WindowsIn(removed);
    const auto in_kept = WindowsIn(kept);
    uint64_t window_count = 0;
    for (size_t i = 0; i + kWindowSizeBytes <= dictionary.size(); ++i) {
      const std::string window = dictionary.substr(i, kWindowSizeBytes);
      if (in_removed.contains(window) && !in_kept.contains(window)) {
        ++window_count;
        expected.replace(i, kWindowSizeBytes, kWindowSizeBytes, '\0');
      }
    }
    uint64_t zeroed = 0;
    for (size_t i = 0; i < dictionary.size(); ++i) {
      zeroed += expected[i] == dictionary[i] ? 0 : 1;
    }
    const auto adder = [&random](const Texts& texts) {
      return [&](TextSink& sink) {
        AddInPieces(texts, random, sink);
        return absl::OkStatus();
      };
    };
    const auto add_kept = [&](std::span<TextSink* const> sinks) {
      for (const std::string& text : kept) {
        AddInPieces({text}, random, *sinks[random() % sinks.size()]);
      }
      return absl::OkStatus();
    };
    for (const size_t windows_per_pass : {size_t{1} << 20, size_t{7}}) {
      QUIRE_ASSERT_OK_AND_ASSIGN(
          const RedactedDictionary result,
          RedactDictionary(AsBytes(dictionary), adder(removed), add_kept,
                           windows_per_pass, 1 + random() % 3));
      EXPECT_EQ(result.text, expected);
      EXPECT_EQ(result.window_count, window_count);
      EXPECT_EQ(result.zeroed_size_bytes, zeroed);
    }
  }
}

TEST(RedactDictionaryTest, ReturnsErrorsOfTexts) {
  const std::string dictionary(100, 'x');
  const auto fails = [](TextSink&) { return absl::DataLossError("damaged"); };
  const auto adds = [&](TextSink& sink) {
    sink.Add(AsBytes(dictionary));
    return absl::OkStatus();
  };
  const auto fails_with_parts = [&](std::span<TextSink* const> sinks) {
    return fails(*sinks[0]);
  };
  EXPECT_THAT(RedactDictionary(AsBytes(dictionary), fails, fails_with_parts),
              HasCode(absl::StatusCode::kDataLoss));
  EXPECT_THAT(RedactDictionary(AsBytes(dictionary), adds, fails_with_parts),
              HasCode(absl::StatusCode::kDataLoss));
}

}  // namespace
}  // namespace quire
