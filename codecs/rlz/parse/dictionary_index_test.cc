// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/parse/dictionary_index.h"

#include <algorithm>
#include <array>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/rlz/dictionary_builder.h"
#include "testing/base/status_matchers.h"
#include "testing/codecs/codec_test_inputs.h"
#include "testing/codecs/threaded_work.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<const DictionaryIndex> Build(const std::string& dictionary) {
  auto index = DictionaryIndex::Build(AsBytes(dictionary));
  EXPECT_THAT(index, IsOk());
  return std::move(index).value_or(nullptr);
}

bool HasShort(const DictionaryIndex& index, const uint8_t* key,
              uint32_t place) {
  std::array<uint32_t, DictionaryIndex::kWays> places = {};
  const size_t count =
      index.FindShort(DictionaryIndex::HashShort(key), places.data());
  return std::count(places.begin(), places.begin() + count, place) > 0;
}

bool HasLong(const DictionaryIndex& index, const uint8_t* key, uint32_t place) {
  std::array<uint32_t, DictionaryIndex::kWays> places = {};
  const size_t count =
      index.FindLong(DictionaryIndex::HashLong(key), places.data());
  return std::count(places.begin(), places.begin() + count, place) > 0;
}

bool HasLongest(const DictionaryIndex& index, const uint8_t* key,
                uint32_t place) {
  std::array<uint32_t, DictionaryIndex::kWays> places = {};
  const size_t count =
      index.FindLongest(DictionaryIndex::HashLongest(key), places.data());
  return std::count(places.begin(), places.begin() + count, place) > 0;
}

TEST(DictionaryIndexTest, FindsMostOfWhatOccursOnce) {
  TestRandom random(1);
  const std::string dictionary = RandomBytes(random, 1 << 20);
  const auto index = Build(dictionary);
  const uint8_t* const text = AsBytes(dictionary).data();
  size_t found_short = 0;
  size_t found_long = 0;
  size_t count = 0;
  for (uint32_t place = 0;
       place + DictionaryIndex::kLongKeySize <= dictionary.size(); place += 2) {
    found_short += HasShort(*index, text + place, place) ? 1 : 0;
    found_long += HasLong(*index, text + place, place) ? 1 : 0;
    ++count;
  }
  size_t found_longest = 0;
  for (uint32_t place = 0;
       place + DictionaryIndex::kLongestKeySize <= dictionary.size();
       place += 4) {
    found_longest += HasLongest(*index, text + place, place) ? 1 : 0;
  }
  // A bucket keeps four offsets. At four a bucket on average, a fifth is lost.
  EXPECT_GT(found_short, count * 7 / 10);
  EXPECT_GT(found_long, count * 7 / 10);
  EXPECT_GT(found_longest, count / 2 * 7 / 10);
}

// A fine index has all offsets, odd ones too, of the shortest key; if there are
// too many, the last ones.
TEST(DictionaryIndexTest, FineFindsShortestAndMiddleKeys) {
  TestRandom random(1);
  const std::string dictionary = RandomBytes(random, 1 << 18);
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto index, DictionaryIndex::Build(AsBytes(dictionary),
                                               DictionaryIndex::Detail::kFine));
  EXPECT_TRUE(index->is_fine());
  EXPECT_FALSE(Build(dictionary)->is_fine());
  EXPECT_EQ(index->MemoryBytes(), dictionary.size() * 9);
  const uint8_t* const text = AsBytes(dictionary).data();
  size_t found_shortest = 0;
  size_t found_middle = 0;
  const auto begin = static_cast<uint32_t>(dictionary.size() * 3 / 4);
  const auto end = static_cast<uint32_t>(dictionary.size() -
                                         DictionaryIndex::kMiddleKeySize + 1);
  for (uint32_t place = begin; place < end; ++place) {
    std::array<uint32_t, DictionaryIndex::kWays> places = {};
    const auto has = [&](size_t count) {
      return std::count(places.begin(), places.begin() + count, place);
    };
    found_shortest += static_cast<size_t>(has(index->FindShortest(
        DictionaryIndex::HashShortest(text + place), places.data())));
    found_middle += static_cast<size_t>(has(index->FindMiddle(
        DictionaryIndex::HashMiddle(text + place), places.data())));
  }
  EXPECT_GT(found_shortest, (end - begin) * 9 / 10);
  EXPECT_GT(found_middle, (end - begin) / 2 * 7 / 10);
}

TEST(DictionaryIndexTest, FindsTheLastOfManyPlaces) {
  std::string dictionary;
  for (int i = 0; i < 100; ++i) {
    dictionary += "the same twenty-four one";
  }
  const auto index = Build(dictionary);
  const uint8_t* const text = AsBytes(dictionary).data();
  for (const uint32_t place : {uint32_t{99 * 24}, uint32_t{98 * 24}}) {
    EXPECT_TRUE(HasShort(*index, text, place)) << place;
    EXPECT_TRUE(HasLong(*index, text, place)) << place;
  }
}

TEST(DictionaryIndexTest, FindsTheLastPlaceOfAll) {
  TestRandom random(1);
  for (const size_t size : {size_t{24}, size_t{1000}, size_t{65538}}) {
    const std::string dictionary = RandomBytes(random, size);
    const auto index = Build(dictionary);
    const uint8_t* const end = AsBytes(dictionary).data() + size;
    EXPECT_TRUE(HasShort(*index, end - 8, static_cast<uint32_t>(size - 8)));
    EXPECT_TRUE(HasLong(*index, end - 24, static_cast<uint32_t>(size - 24)));
  }
}

TEST(DictionaryIndexTest, TakesSmallDictionaries) {
  TestRandom random(1);
  const std::string keys = RandomBytes(random, 4096);
  for (size_t size = 0; size < 40; ++size) {
    const std::string dictionary = RandomBytes(random, size);
    const auto index = Build(dictionary);
    std::array<uint32_t, DictionaryIndex::kWays> places = {};
    for (size_t i = 0; i + 24 <= keys.size(); ++i) {
      const uint8_t* const key = AsBytes(keys).data() + i;
      const size_t short_count =
          index->FindShort(DictionaryIndex::HashShort(key), places.data());
      for (size_t k = 0; k < short_count; ++k) {
        EXPECT_LE(places[k] + DictionaryIndex::kShortKeySize, size);
      }
      const size_t long_count =
          index->FindLong(DictionaryIndex::HashLong(key), places.data());
      for (size_t k = 0; k < long_count; ++k) {
        EXPECT_LE(places[k] + DictionaryIndex::kLongKeySize, size);
      }
    }
  }
}

// Many offsets have the same 24 bytes, more than a bucket can hold; the
// following bytes differ.
TEST(DictionaryIndexTest, FindsTheOneOfManyThatGoesOn) {
  TestRandom random(2);
  std::string dictionary;
  for (int i = 0; i < 100; ++i) {
    dictionary += "forty bytes that are the same everywhere";
    dictionary += RandomBytes(random, 60);
  }
  const auto index = Build(dictionary);
  const uint8_t* const text = AsBytes(dictionary).data();
  size_t found_long = 0;
  size_t found_longest = 0;
  for (uint32_t place = 0; place < dictionary.size(); place += 100) {
    found_long += HasLong(*index, text + place, place) ? 1 : 0;
    found_longest += HasLongest(*index, text + place, place) ? 1 : 0;
  }
  EXPECT_EQ(found_long, DictionaryIndex::kWays);
  EXPECT_GT(found_longest, 70u);
}

TEST(DictionaryIndexTest, TakesSixBytesPerByteWithTheDictionary) {
  const std::string dictionary(3'000'000, 'x');
  const auto index = Build(dictionary);
  EXPECT_LE(index->MemoryBytes() + dictionary.size(), dictionary.size() * 6);
}

// Also if several threads fill it.
TEST(DictionaryIndexTest, GrownIsEqualToBuilt) {
  TestRandom random(1);
  const std::string dictionary = RandomText(random, 300'000);
  const uint8_t* const text = AsBytes(dictionary).data();
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto built, DictionaryIndex::Build(AsBytes(dictionary),
                                               DictionaryIndex::Detail::kFine,
                                               ThreadedWork(3).run));
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto grown,
      DictionaryIndex::MakeEmpty(AsBytes(dictionary),
                                 DictionaryIndex::Detail::kFine));
  for (const size_t end : {size_t{3}, size_t{100'001}, dictionary.size()}) {
    grown->EnterUpTo(end);
  }
  for (size_t at = 0;
       at + DictionaryIndex::kLongestKeySize <= dictionary.size(); at += 7) {
    const auto found = [&](const DictionaryIndex& index) {
      std::array<uint32_t, 5 * DictionaryIndex::kWays> places = {};
      uint32_t* next = places.data();
      const uint8_t* const key = text + at;
      next += index.FindShort(DictionaryIndex::HashShort(key), next);
      next += index.FindLong(DictionaryIndex::HashLong(key), next);
      next += index.FindLongest(DictionaryIndex::HashLongest(key), next);
      next += index.FindShortest(DictionaryIndex::HashShortest(key), next);
      next += index.FindMiddle(DictionaryIndex::HashMiddle(key), next);
      // Find() may have written behind what it counted.
      std::fill(next, places.data() + places.size(), 0);
      return places;
    };
    ASSERT_EQ(found(*built), found(*grown)) << at;
  }
}

TEST(DictionaryIndexTest, RefusesWhatIsTooLarge) {
  const std::string dictionary = "x";
  // Never read: the size is rejected first.
  const ByteView large(AsBytes(dictionary).data(), kDictionarySizeBytesMax + 1);
  EXPECT_THAT(
      DictionaryIndex::Build(large),
      FailsWith(absl::StatusCode::kInvalidArgument, HasSubstr("the limit is")));
}

}  // namespace
}  // namespace quire
