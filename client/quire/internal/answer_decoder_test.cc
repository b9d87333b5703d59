// SPDX-License-Identifier: Apache-2.0
#include "client/quire/internal/answer_decoder.h"

#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "client/quire/testing/client_fixture.h"
#include "client/quire/testing/fake_encodings.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

// Returns the given bytes for every request.
class OneTableSource : public TableSource {
 public:
  absl::StatusOr<std::string> FetchSymbolTable(absl::string_view, uint64_t,
                                               size_t) override {
    return symbol_table;
  }

  absl::StatusOr<std::string> FetchDictionary(absl::string_view, uint64_t,
                                              size_t) override {
    return dictionary;
  }

  std::string symbol_table;
  std::string dictionary;
};

// An answer as a server would send it; tests then change it.
struct Sent {
  v1::WireEncoding encoding;
  v1::EncodingDetails details;
  std::string data;
  uint64_t size_bytes;
};

class AnswerDecoderTest : public ::testing::Test {
 protected:
  AnswerDecoderTest() {
    archive_.dictionary = WordyText(5, 3000);
    archive_.has_symbol_table = true;
    archive_.codec = "rlz";
    encodings_ = std::make_unique<FakeEncodings>(archive_, text_, description_);
    source_.symbol_table = encodings_->symbol_table();
    source_.dictionary = archive_.dictionary;
  }

  Sent Encode(v1::WireEncoding encoding, uint64_t offset, uint64_t size_bytes) {
    Sent sent{encoding, {}, {}, size_bytes};
    v1::ByteRange range;
    range.set_offset(offset);
    range.set_size_bytes(size_bytes);
    sent.data = encoding == v1::WIRE_ENCODING_IDENTITY
                    ? text_.substr(offset, size_bytes)
                    : encodings_->Encode(encoding, range, sent.details);
    return sent;
  }

  // Sets the checksum of the data.
  absl::StatusOr<std::string> Decode(const Sent& sent) {
    // Sized exactly, so that AddressSanitizer detects reads beyond it.
    const std::vector<char> data(sent.data.begin(), sent.data.end());
    const SentBytes bytes{.encoding = sent.encoding,
                          .details = &sent.details,
                          .checksum = HashOf(sent.data),
                          .data = {data.data(), data.size()},
                          .size_bytes = sent.size_bytes};
    std::string buffer;
    const auto asked = sent.encoding == v1::WIRE_ENCODING_FSST
                           ? AnswerEncoding::kFsst
                           : AnswerEncoding::kStored;
    const auto answer = decoder_.Decode(bytes, asked, size_bytes_max_, buffer);
    if (!answer.ok()) {
      return answer.status();
    }
    return std::string(answer->text);
  }

  using Lie = std::function<void(Sent&)>;

  void ExpectDataLoss(v1::WireEncoding encoding, const Lie& lie,
                      const char* message) {
    Sent sent = Encode(encoding, 1234, 2345);
    ASSERT_TRUE(Decode(sent).ok());
    lie(sent);
    EXPECT_THAT(Decode(sent),
                FailsWith(absl::StatusCode::kDataLoss, HasSubstr(message)))
        << message;
  }

  const std::string text_ = WordyText(3, 9000) + Noise(3000, 4);
  FakeArchive archive_;
  v1::ArchiveDescription description_;
  std::unique_ptr<FakeEncodings> encodings_;
  OneTableSource source_;
  TableStore tables_{{}, &source_};
  const AnswerDecoder decoder_{&tables_};
  uint64_t size_bytes_max_ = ~uint64_t{0};
};

TEST_F(AnswerDecoderTest, KnowsTheChecksumOfNothing) {
  // XXH3_64bits("") from its specification.
  SentBytes sent{.encoding = v1::WIRE_ENCODING_IDENTITY,
                 .checksum = 0x2D06800538D394C2};
  std::string buffer;
  QUIRE_EXPECT_OK(decoder_.Decode(sent, AnswerEncoding::kIdentity, 0, buffer));
  sent.checksum = 0;
  EXPECT_THAT(decoder_.Decode(sent, AnswerEncoding::kIdentity, 0, buffer),
              HasCode(absl::StatusCode::kDataLoss));
}

TEST_F(AnswerDecoderTest, DecodesRangesOfAllPlaces) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 300; ++i) {
    const uint64_t offset = random() % text_.size();
    const uint64_t size =
        std::min<uint64_t>(random() % 3000, text_.size() - offset);
    for (const auto encoding :
         {v1::WIRE_ENCODING_IDENTITY, v1::WIRE_ENCODING_FSST,
          v1::WIRE_ENCODING_STORED}) {
      QUIRE_ASSERT_OK_AND_ASSIGN(const std::string text,
                                 Decode(Encode(encoding, offset, size)));
      ASSERT_EQ(text, text_.substr(offset, size)) << encoding;
    }
  }
}

TEST_F(AnswerDecoderTest, RefusesEncodingsThatWereNotAskedFor) {
  const Sent sent = Encode(v1::WIRE_ENCODING_FSST, 0, 100);
  std::string buffer;
  for (const auto encoding :
       {v1::WIRE_ENCODING_UNSPECIFIED, v1::WIRE_ENCODING_FSST,
        static_cast<v1::WireEncoding>(9)}) {
    EXPECT_THAT(decoder_.Decode({.encoding = encoding,
                                 .details = &sent.details,
                                 .checksum = HashOf(sent.data),
                                 .data = sent.data,
                                 .size_bytes = 100},
                                AnswerEncoding::kStored, 100, buffer),
                FailsWith(absl::StatusCode::kInternal, HasSubstr("not asked")));
  }
  EXPECT_THAT(decoder_.Decode({.encoding = v1::WIRE_ENCODING_FSST,
                               .checksum = HashOf(sent.data),
                               .data = sent.data,
                               .size_bytes = 100},
                              AnswerEncoding::kFsst, 100, buffer),
              FailsWith(absl::StatusCode::kDataLoss, HasSubstr("details")));
}

// A few bytes that claim to decode to a terabyte are rejected before any
// allocation.
TEST_F(AnswerDecoderTest, BoundsWhatAnswersClaimToStandFor) {
  for (const auto encoding :
       {v1::WIRE_ENCODING_FSST, v1::WIRE_ENCODING_STORED}) {
    Sent sent = Encode(encoding, 1234, 2345);
    size_bytes_max_ = 2345;
    QUIRE_EXPECT_OK(Decode(sent));
    size_bytes_max_ = 2344;
    EXPECT_THAT(Decode(sent), FailsWith(absl::StatusCode::kDataLoss,
                                        HasSubstr("over its limit")));
  }
  Sent sent{v1::WIRE_ENCODING_STORED, {}, std::string(1 << 20, 'x'), 0};
  sent.details.set_codec("zstd");
  for (size_t i = 0; i < sent.data.size(); ++i) {
    v1::StoredBlock& block = *sent.details.add_blocks();
    block.set_stored_size_bytes(1);
    block.set_size_bytes(1 << 20);
    sent.size_bytes += block.size_bytes();
  }
  std::string buffer;
  EXPECT_THAT(decoder_.Decode({.encoding = sent.encoding,
                               .details = &sent.details,
                               .checksum = HashOf(sent.data),
                               .data = sent.data,
                               .size_bytes = sent.size_bytes},
                              AnswerEncoding::kStored, 8 << 20, buffer),
              FailsWith(absl::StatusCode::kDataLoss,
                        HasSubstr("for 1099511627776 bytes")));
  EXPECT_LT(buffer.capacity(), 1000u);
}

TEST_F(AnswerDecoderTest, FindsLiesAboutFsst) {
  const std::map<const char*, Lie> lies = {
      {"cuts off 511",
       [](Sent& s) { s.details.set_front_cut_size_bytes(511); }},
      {"and 4294967295 bytes",
       [](Sent& s) { s.details.set_back_cut_size_bytes(~uint32_t{0}); }},
      {"more than it can hold", [](Sent& s) { s.size_bytes = 1u << 30; }},
      {"more than it can hold ", [](Sent& s) { s.size_bytes = ~0ull - 800; }},
      // Including the cut that changes nothing.
      {"more than it can hold  ",
       [](Sent& s) {
         s.data.clear();
         s.details.set_front_cut_size_bytes(1);
         s.details.set_back_cut_size_bytes(0);
         s.size_bytes = ~0ull;
       }},
      {"without the hash", [](Sent& s) { s.details.clear_table_hash(); }},
      {"does not decode",
       [](Sent& s) {
         s.details.set_front_cut_size_bytes(s.details.front_cut_size_bytes() +
                                            1);
       }},
      {"does not decode: ", [](Sent& s) { s.data.pop_back(); }},
      {"not decode", [](Sent& s) { s.data.push_back('\xFF'); }},
      {"not decode: ", [](Sent& s) { s.data[0] = '\xFE'; }},
      {"other bytes as symbol table",
       [](Sent& s) { s.details.set_table_hash(12345); }},
  };
  for (const auto& [message, lie] : lies) {
    std::string shown = message;
    shown.erase(shown.find_last_not_of(' ') + 1);
    ExpectDataLoss(v1::WIRE_ENCODING_FSST, lie, shown.c_str());
  }
}

TEST_F(AnswerDecoderTest, FindsLiesAboutStoredBlocks) {
  const auto first = [](Sent& s) { return s.details.mutable_blocks(0); };
  const std::vector<std::pair<const char*, Lie>> lies = {
      {"of a codec", [](Sent& s) { s.details.set_codec("magic"); }},
      {"of a codec", [](Sent& s) { s.details.clear_codec(); }},
      {"without a dictionary", [](Sent& s) { s.details.clear_table_hash(); }},
      {"with a dictionary", [](Sent& s) { s.details.set_codec("zlib"); }},
      {"other bytes as dictionary",
       [](Sent& s) { s.details.set_table_hash(1); }},
      {"a block of 0 bytes", [&](Sent& s) { first(s)->set_size_bytes(0); }},
      {"a block of 1048577 bytes",
       [&](Sent& s) { first(s)->set_size_bytes((1 << 20) + 1); }},
      {"a block of 4294967295 bytes",
       [&](Sent& s) { first(s)->set_size_bytes(~uint32_t{0}); }},
      {"with blocks of",
       [&](Sent& s) { first(s)->set_stored_size_bytes(~uint32_t{0}); }},
      {"with blocks of", [](Sent& s) { s.data.pop_back(); }},
      {"with blocks of", [](Sent& s) { s.details.clear_blocks(); }},
      {"an uncoded block", [&](Sent& s) { first(s)->set_is_uncoded(true); }},
      {"not cuts of", [](Sent& s) { s.size_bytes = ~0ull; }},
      {"not cuts of", [](Sent& s) { s.size_bytes -= 1; }},
      {"not cuts of",
       [](Sent& s) {
         s.data.clear();
         s.details.clear_blocks();
         s.details.set_front_cut_size_bytes(1);
         s.details.set_back_cut_size_bytes(0);
         s.size_bytes = ~0ull;
       }},
      {"not cuts of",
       [](Sent& s) { s.details.set_front_cut_size_bytes(~uint32_t{0}); }},
      {"a block or more",
       [](Sent& s) {
         s.size_bytes -= 700 - s.details.front_cut_size_bytes();
         s.details.set_front_cut_size_bytes(700);
       }},
      {"a block or more",
       [](Sent& s) {
         s.size_bytes -= 700 - s.details.back_cut_size_bytes();
         s.details.set_back_cut_size_bytes(700);
       }},
      {"not decode",
       [](Sent& s) {
         for (char& c : s.data) {
           c = '\0';
         }
       }},
      // Moves bytes from one block to the next.
      {"not decode",
       [&](Sent& s) {
         s.details.mutable_blocks(0)->set_stored_size_bytes(
             s.details.blocks(0).stored_size_bytes() - 1);
         s.details.mutable_blocks(1)->set_stored_size_bytes(
             s.details.blocks(1).stored_size_bytes() + 1);
       }},
  };
  for (const auto& [message, lie] : lies) {
    ExpectDataLoss(v1::WIRE_ENCODING_STORED, lie, message);
  }
}

// Any change results in an answer of the requested size, or in a status;
// AddressSanitizer reports nothing.
TEST_F(AnswerDecoderTest, SurvivesRandomLies) {
  std::mt19937_64 random(20261121);
  size_t refused_count = 0;
  for (int i = 0; i < 4000; ++i) {
    const auto encoding =
        i % 2 == 0 ? v1::WIRE_ENCODING_FSST : v1::WIRE_ENCODING_STORED;
    const uint64_t offset = random() % 11000;
    Sent sent = Encode(encoding, offset, 1 + random() % 1000);
    for (uint64_t lies = 1 + random() % 3; lies > 0; --lies) {
      const auto number =
          static_cast<uint32_t>(random() % 2 == 0 ? random() % 2000 : random());
      v1::StoredBlock* block =
          sent.details.blocks().empty()
              ? nullptr
              : sent.details.mutable_blocks(static_cast<int>(
                    random() %
                    static_cast<size_t>(sent.details.blocks_size())));
      switch (random() % 8) {
        case 0:
          sent.details.set_front_cut_size_bytes(number);
          break;
        case 1:
          sent.details.set_back_cut_size_bytes(number);
          break;
        case 2:
          sent.size_bytes = number;
          break;
        case 3:
          sent.data.resize(random() % (sent.data.size() + 3));
          break;
        case 4:
          if (block != nullptr) {
            block->set_size_bytes(number);
          }
          break;
        case 5:
          if (block != nullptr) {
            block->set_stored_size_bytes(number);
          }
          break;
        case 6:
          if (block != nullptr) {
            block->set_is_uncoded(!block->is_uncoded());
          }
          break;
        default:
          if (!sent.data.empty()) {
            sent.data[random() % sent.data.size()] =
                static_cast<char>(random());
          }
      }
    }
    const absl::StatusOr<std::string> text = Decode(sent);
    if (text.ok()) {
      EXPECT_EQ(text->size(), sent.size_bytes);
    } else {
      EXPECT_THAT(text, HasCode(absl::StatusCode::kDataLoss));
      ++refused_count;
    }
  }
  EXPECT_GT(refused_count, 2000u);
}

}  // namespace
}  // namespace quire
