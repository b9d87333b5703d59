// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/index/id_coding.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

#include "codecs/base/bytes.h"
#include "codecs/fsst/encode/fsst_encoder.h"
#include "codecs/fsst/training/symbol_trainer.h"

namespace quire {
namespace {

using namespace std::string_literals;  // NOLINT(google-build-using-namespace)

int Sign(int value) {
  return value < 0 ? -1 : value > 0 ? 1 : 0;
}

IdOrder Expected(const std::string& text, const std::string& key) {
  const size_t size = std::min(text.size(), key.size());
  const auto parted = std::mismatch(
      text.begin(), text.begin() + static_cast<ptrdiff_t>(size), key.begin());
  return {Sign(text.compare(key)),
          static_cast<size_t>(parted.first - text.begin())};
}

// Short and long, with and without symbols, with zeros after the ends of keys.
std::vector<std::string> Texts() {
  std::vector<std::string> texts = {"", "\0"s, "\0\0"s, "\xFF"s, "a", "a\0"s};
  for (const std::string& word :
       {"http://example.org/"s, "http://example.com/index.html"s,
        "http://ex\0mple"s, "http:"s, "\0\0\0\0\0\0\0\0\0"s, "\x80\x81z"s,
        std::string(700, 'e')}) {
    for (const size_t cut : {size_t{0}, size_t{1}, size_t{7}, size_t{8}}) {
      texts.push_back(word.substr(std::min(cut, word.size())));
      texts.push_back(word.substr(0, word.size() - std::min(cut, word.size())));
      texts.push_back(word + std::string(cut, '\0'));
    }
  }
  return texts;
}

class IdCodingTest : public ::testing::Test {
 protected:
  IdCodingTest() {
    for (const std::string& text : texts_) {
      views_.push_back(AsBytes(text));
    }
    const SymbolTable table = TrainSymbolTable(views_);
    coding_.emplace_back(table);
    const FsstEncoder encoder(table);
    for (const std::string& text : texts_) {
      auto& codes = codes_.emplace_back(FsstEncoder::CodesSizeMax(text.size()));
      codes.resize(encoder.Encode(AsBytes(text), codes) + kIdCodesPadding);
      // The bytes after the codes must not matter.
      std::fill(codes.end() - kIdCodesPadding, codes.end(), kFsstEscape);
    }
  }

  ByteView Codes(size_t i) const {
    return ByteView(codes_[i]).first(codes_[i].size() - kIdCodesPadding);
  }

  const std::vector<std::string> texts_ = Texts();
  std::vector<ByteView> views_;
  std::vector<IdCoding> coding_;
  std::vector<std::vector<uint8_t>> codes_;
};

TEST_F(IdCodingTest, ComparesAsTextsDo) {
  for (size_t i = 0; i < texts_.size(); ++i) {
    for (const std::string& key : texts_) {
      const IdOrder expected = Expected(texts_[i], key);
      IdPlace place;
      for (const IdOrder& found : {coding_[0].Compare(Codes(i), key, place),
                                   ComparePlainId(views_[i], key)}) {
        EXPECT_EQ(Sign(found.order), expected.order);
        EXPECT_EQ(found.shared_size_bytes, expected.shared_size_bytes);
      }
    }
  }
}

// From the place of one text, compares all that share as much with the key.
TEST_F(IdCodingTest, GoesOnWhereTextsPart) {
  size_t skipped_count = 0;
  for (size_t i = 0; i < texts_.size(); ++i) {
    for (const std::string& key : texts_) {
      IdPlace reached;
      const size_t shared =
          coding_[0].Compare(Codes(i), key, reached).shared_size_bytes;
      for (size_t other = 0; other < texts_.size(); ++other) {
        const IdOrder expected = Expected(texts_[other], key);
        if (expected.shared_size_bytes < shared) {
          continue;
        }
        IdPlace place = reached;
        const IdOrder found = coding_[0].Compare(Codes(other), key, place);
        EXPECT_EQ(Sign(found.order), expected.order);
        EXPECT_EQ(found.shared_size_bytes, expected.shared_size_bytes);
        EXPECT_GE(place.key_offset, reached.key_offset);
        skipped_count += reached.key_offset > 0 ? 1 : 0;
      }
    }
  }
  EXPECT_GT(skipped_count, 1000U);
}

TEST_F(IdCodingTest, DecodesAllOrTheFront) {
  for (size_t i = 0; i < texts_.size(); ++i) {
    std::vector<char> text(IdCoding::DecodedSizeMax(Codes(i).size()));
    const char* const end = coding_[0].Decode(Codes(i), text.data());
    EXPECT_EQ(std::string(std::as_const(text).data(), end), texts_[i]);
    for (size_t size = 0; size <= std::min<size_t>(texts_[i].size(), 40);
         ++size) {
      std::string front(size, 'x');
      coding_[0].DecodeFront(Codes(i), AsMutableBytes(front));
      EXPECT_EQ(front, texts_[i].substr(0, size));
    }
  }
}

}  // namespace
}  // namespace quire
