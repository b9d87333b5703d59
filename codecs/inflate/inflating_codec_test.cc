// SPDX-License-Identifier: Apache-2.0
//
// What all codecs do is in block_codec_test.cc; here, what becomes of
// compressed members.
#include "codecs/inflate/inflating_codec.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/base/status_matchers.h"
#include "codecs/base/varint.h"
#include "codecs/codec_test_inputs.h"
#include "codecs/deflate/deflate_test_streams.h"
#include "codecs/inflate/inflated_block.h"
#include "codecs/inflate/inflated_count.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kSeed = 11;

MATCHER_P(HoldsText, text, "has the text") {
  return arg.ok() && *arg == text;
}

// Words that are no use to each other: what only a dictionary helps.
std::string Words(TestRandom& random, size_t size) {
  return RandomText(random, size, 2000);
}

class InflatingCodecTest : public ::testing::Test {
 protected:
  InflatingCodecTest()
      : context_(MakeTestContext(256 << 10)),
        codec_(*MakeBlockCodec({.id = CodecId::kRlzInflate, .level = 2},
                               context_, CodecUse::kEncodeAndDecode)),
        text_codec_(*MakeBlockCodec({.id = CodecId::kRlz, .level = 2}, context_,
                                    CodecUse::kEncodeAndDecode)),
        scratch_(codec_->NewScratch()) {}

  std::string Encode(const std::string& block) {
    std::string stored(codec_->StoredSizeMax(block.size()), '?');
    const auto size =
        codec_->Encode(AsBytes(block), AsMutableBytes(stored), *scratch_);
    EXPECT_THAT(size, IsOk());
    stored.resize(size.value_or(0));
    return stored;
  }

  size_t SizeWithoutInflating(const std::string& block) {
    const auto scratch = text_codec_->NewScratch();
    std::vector<uint8_t> stored(text_codec_->StoredSizeMax(block.size()));
    return text_codec_->Encode(AsBytes(block), stored, *scratch).value();
  }

  absl::StatusOr<std::string> Decode(const std::string& stored, size_t size) {
    std::string block(size, '?');
    const absl::Status status =
        codec_->Decode(AsBytes(stored), AsMutableBytes(block), *scratch_);
    if (!status.ok()) {
      return status;
    }
    return block;
  }

  // Of the dictionary, so that it takes next to nothing once it is inflated.
  std::string KnownText(size_t offset, size_t size) const {
    return context_->dictionary.substr(offset, size);
  }

  const std::shared_ptr<const CodecContext> context_;
  const std::unique_ptr<BlockCodec> codec_;
  const std::unique_ptr<BlockCodec> text_codec_;
  const std::unique_ptr<BlockCodec::Scratch> scratch_;
};

TEST_F(InflatingCodecTest, StoresMembersAsTheirText) {
  TestRandom random(kSeed);
  const std::vector<std::string> streams = {
      ZlibStream({.level = 6}, KnownText(1000, 30000), DeflateContainer::kZlib),
      ZlibStream({.level = 9}, KnownText(50000, 20000),
                 DeflateContainer::kGzip),
      GzipProgramStream(9, KnownText(90000, 40000))};
  std::string all;
  for (const std::string& stream : streams) {
    std::string block = Words(random, 500);
    block += stream;
    block += Words(random, 300);
    const std::string stored = Encode(block);
    EXPECT_LT(stored.size(), SizeWithoutInflating(block) / 4);
    EXPECT_THAT(Decode(stored, block.size()), HoldsText(block));
    all += block;
  }
  const std::string stored = Encode(all);
  EXPECT_EQ(stored[0], static_cast<char>(streams.size()));
  EXPECT_THAT(Decode(stored, all.size()), HoldsText(all));
}

TEST_F(InflatingCodecTest, DecodesRangesOfMembersAndBetweenThem) {
  TestRandom random(kSeed);
  const std::string block =
      Words(random, 700) + GzipProgramStream(6, KnownText(7000, 30000)) +
      Words(random, 900) +
      ZlibStream({.level = 9}, KnownText(60000, 9000), DeflateContainer::kZlib);
  const std::string stored = Encode(block);
  ASSERT_EQ(stored[0], 2);
  for (size_t offset = 0; offset < block.size(); offset += 211) {
    const size_t size = std::min<size_t>(block.size() - offset, 600);
    std::string range(size, '?');
    QUIRE_ASSERT_OK(codec_->DecodeRange(AsBytes(stored), block.size(), offset,
                                        AsMutableBytes(range), *scratch_));
    EXPECT_EQ(range, block.substr(offset, size)) << offset;
  }
}

TEST_F(InflatingCodecTest, LeavesWhatDoesNotPayOrCannotBeMadeAgain) {
  TestRandom random(kSeed);
  const std::string stream =
      ZlibStream({.level = 6}, KnownText(3000, 30000), DeflateContainer::kZlib);
  std::string damaged = stream;
  damaged[damaged.size() / 2] ^= 1;
  const std::vector<std::string> blocks = {
      Words(random, 5000), stream.substr(0, stream.size() - 1), damaged,
      // One that no dictionary helps: its text takes more than the stream.
      ZlibStream({.level = 9}, MixedText(random, 3000),
                 DeflateContainer::kZlib)};
  for (const std::string& block : blocks) {
    const std::string stored = Encode(block);
    EXPECT_LE(stored.size(), SizeWithoutInflating(block) + 1);
    EXPECT_THAT(Decode(stored, block.size()), HoldsText(block));
  }
  EXPECT_EQ(Encode(blocks[1])[0], 0);
  EXPECT_EQ(Encode(blocks[2])[0], 0);
}

TEST_F(InflatingCodecTest, EncodesALargeTextInParts) {
  TestRandom random(kSeed);
  // With 100 bytes before it and a header of 10, the block's text has three
  // parts, and exactly two.
  for (const size_t size : {(size_t{2} << 20) + 1, (size_t{2} << 20) - 110}) {
    std::string text;
    while (text.size() < size) {
      text += KnownText(RandomBelow(random, 200 << 10), 5000);
      text += Words(random, 60);
    }
    text.resize(size);
    const std::string head = Words(random, 100);
    const std::string block = head + GzipProgramStream(9, text);
    ASSERT_LT(block.size(), kBlockSizeBytesMax);
    BlockInflater inflater(kInflatedLargeSizeMax);
    ASSERT_TRUE(inflater.Inflate(AsBytes(block)));
    ASSERT_EQ(inflater.text().size(), size + 110);
    const std::string plain = Encode(block);
    EXPECT_EQ(plain[0], 0);  // By default members have at most 1 MiB of text.
    const auto codec = MakeInflatingCodec(
        codec_->info(),
        *MakeBlockCodec({.id = CodecId::kRlz, .level = 2}, context_,
                        CodecUse::kEncodeAndDecode),
        CodecUse::kEncodeAndDecode, kInflatedLargeSizeMax);
    const auto scratch = codec->NewScratch();
    std::string stored(codec->StoredSizeMax(block.size()), '?');
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const size_t stored_size,
        codec->Encode(AsBytes(block), AsMutableBytes(stored), *scratch));
    stored.resize(stored_size);
    ASSERT_EQ(stored[0], 1);
    EXPECT_LT(stored.size(), plain.size() / 2);
    EXPECT_THAT(Decode(stored, block.size()), HoldsText(block));
    // The size of the first part, which follows the head.
    for (size_t i = 0; i < 60; ++i) {
      for (const char flip : {'\x01', '\x40', '\x80'}) {
        stored[i] ^= flip;
        // Where a flip changes nothing of the text, as in zstd's unused bits.
        const auto decoded = Decode(stored, block.size());
        EXPECT_TRUE(decoded.ok() ? *decoded == block
                                 : absl::IsDataLoss(decoded.status()))
            << i;
        stored[i] ^= flip;
      }
    }
    for (const size_t left :
         {stored.size() - 1, stored.size() / 2, size_t{30}}) {
      EXPECT_THAT(Decode(stored.substr(0, left), block.size()),
                  HasCode(absl::StatusCode::kDataLoss));
    }
  }
}

// A member that is longer than its text by more than an eighth.
TEST_F(InflatingCodecTest, StoresMembersThatAreLongerThanTheirText) {
  TestRandom random(kSeed);
  std::string text;
  for (size_t i = 0; i < 90000; ++i) {
    text += static_cast<char>(i < 511 ? RandomBelow(random, 144)
                                      : 144 + RandomBelow(random, 112));
  }
  const std::string block = ZlibStream({.memory_level = 3,
                                        .window_bits = 9,
                                        .strategy = DeflateStrategy::kFixed},
                                       text, DeflateContainer::kZlib);
  ASSERT_GT(block.size(), text.size() + text.size() / 8 + 64);
  const std::string stored = Encode(block);
  EXPECT_EQ(stored[0], 1);
  EXPECT_THAT(Decode(stored, block.size()), HoldsText(block));
}

TEST_F(InflatingCodecTest, IsCounted) {
  TestRandom random(kSeed);
  const std::string zlib =
      ZlibStream({.level = 6}, KnownText(1000, 30000), DeflateContainer::kZlib);
  const std::string gzip = GzipProgramStream(9, KnownText(50000, 20000));
  const std::string with = Encode(zlib + gzip + zlib + Words(random, 300));
  const std::string without = Encode(Words(random, 3000));
  ASSERT_EQ(with[0], 3);
  InflatedCount count;
  count.Add(AsBytes(with));
  count.Add(AsBytes(without));
  const InflatedMembers& of_zlib = count.of(DeflateContainer::kZlib);
  const InflatedMembers& of_gzip = count.of(DeflateContainer::kGzip);
  EXPECT_EQ(of_zlib.count, 2u);
  EXPECT_EQ(of_zlib.size_bytes, 2 * (zlib.size() - 2));
  EXPECT_EQ(of_gzip.count, 1u);
  EXPECT_EQ(of_gzip.size_bytes, gzip.size() - 10);
  EXPECT_EQ(count.of(DeflateContainer::kRaw), InflatedMembers());
  // Each takes its part of the payload; the words have some.
  EXPECT_NEAR(static_cast<double>(of_zlib.stored_size_bytes),
              3.0 * static_cast<double>(of_gzip.stored_size_bytes), 6);
  EXPECT_LT(of_zlib.stored_size_bytes + of_gzip.stored_size_bytes, with.size());
  // What is damaged does no harm, and both add up.
  InflatedCount sum;
  sum.Add(count);
  sum.Add(count);
  EXPECT_EQ(sum.of(DeflateContainer::kZlib).count, 4u);
  for (size_t size = 0; size < std::min<size_t>(with.size(), 60); ++size) {
    sum.Add(AsBytes(with).first(size));
  }
}

TEST_F(InflatingCodecTest, BoundsWhatABlockBecomes) {
  // Each is a bomb of 300 KiB in some 300 bytes.
  const std::string bomb = ZlibStream({.level = 9}, std::string(300 << 10, 'x'),
                                      DeflateContainer::kZlib);
  std::string block;
  while (block.size() < 8000) {
    block += bomb;
  }
  BlockInflater inflater(kInflatedLargeSizeMax);
  if (inflater.Inflate(AsBytes(block))) {
    EXPECT_LE(inflater.text().size(), kInflatedBlockSizeMax);
  }
  EXPECT_THAT(Decode(Encode(block), block.size()), HoldsText(block));
}

TEST_F(InflatingCodecTest, DeliversNothingThatDiffers) {
  const std::string block = GzipProgramStream(9, KnownText(5000, 20000));
  std::string stored = Encode(block);
  ASSERT_EQ(stored[0], 1);
  uint64_t refused = 0;
  for (size_t i = 0; i < stored.size(); ++i) {
    for (const char flip : {'\x01', '\x10', '\x80'}) {
      stored[i] ^= flip;
      const auto decoded = Decode(stored, block.size());
      // Where a flip changes nothing of the text, as in zstd's unused bits.
      if (decoded.ok()) {
        EXPECT_EQ(*decoded, block);
      } else {
        ++refused;
        EXPECT_THAT(decoded, HasCode(absl::StatusCode::kDataLoss));
      }
      stored[i] ^= flip;
    }
  }
  EXPECT_GT(refused, stored.size() * 2);
}

InflatedHead SomeHead() {
  InflatedHead head;
  InflatedMember member;
  member.offset = 100;
  member.recipe.container = DeflateContainer::kZlib;
  member.recipe.member_size = 200;
  member.recipe.text_size = 1000;
  head.members = {member, member};
  head.members[1].offset = 300;
  head.text_size_bytes = 100 + 2000 + 500;
  head.checksum = 0x123456789ABCDEF0;
  return head;
}

absl::Status Take(const InflatedHead& head, size_t raw_size) {
  std::string bytes;
  AppendInflatedHead(head, bytes);
  ByteView stored = AsBytes(bytes).subspan(1);
  InflatedHead back;
  return TakeInflatedHead(stored, static_cast<uint8_t>(bytes[0]), raw_size,
                          back);
}

TEST(InflatedHeadTest, RefusesWhatCannotBe) {
  QUIRE_EXPECT_OK(Take(SomeHead(), 1000));
  const auto expect = [](const InflatedHead& head, size_t raw_size,
                         const char* message) {
    EXPECT_THAT(Take(head, raw_size),
                FailsWith(absl::StatusCode::kDataLoss, HasSubstr(message)));
  };
  expect(SomeHead(), 1001, "behind the last member");
  expect(SomeHead(), 100, "compressed members");
  expect(SomeHead(), 450, "size of a member is 200");
  InflatedHead head = SomeHead();
  head.text_size_bytes = kInflatedBlockSizeMax + 1;
  expect(head, 1000, "size of the inflated text");
  // One member may have more.
  head = SomeHead();
  head.members.pop_back();
  head.members[0].recipe.member_size = 60000;
  head.members[0].recipe.text_size = kInflatedLargeSizeMax - 100;
  head.text_size_bytes = kInflatedLargeSizeMax;
  QUIRE_EXPECT_OK(Take(head, 60100));
  ++head.text_size_bytes;
  expect(head, 60101, "size of the inflated text");
  head = SomeHead();
  head.text_size_bytes = 2000;
  expect(head, 1000, "size of a member's text");
  head = SomeHead();
  head.members[0].recipe.member_size = 63;
  head.members[0].offset = 237;
  expect(head, 1000, "at least 64");
  head = SomeHead();
  head.members[0].recipe.text_size = 100;
  expect(head, 1000, "cannot have a text of");
}

TEST(InflatedHeadTest, BoundsTheWorkOfABlock) {
  InflatedHead head;
  InflatedMember member;
  member.recipe.container = DeflateContainer::kZlib;
  member.recipe.member_size = 64;
  member.recipe.text_size = 100;
  const size_t count =
      static_cast<size_t>(kInflatedBlockWorkMax / DeflateWorkMax(100));
  for (size_t i = 0; i < count; ++i) {
    member.offset = 64 * i;
    head.members.push_back(member);
  }
  head.text_size_bytes = 100 * count;
  std::string bytes;
  const auto take = [&] {
    bytes.clear();
    AppendInflatedHead(head, bytes);
    ByteView stored = AsBytes(bytes);
    InflatedHead back;
    const auto found = TakeVarint(stored);
    return TakeInflatedHead(stored, found.value(), 64 * head.members.size(),
                            back);
  };
  QUIRE_EXPECT_OK(take());
  member.offset = 64 * count;
  head.members.push_back(member);
  head.text_size_bytes += 100;
  EXPECT_THAT(take(), FailsWith(absl::StatusCode::kDataLoss,
                                HasSubstr("no more work")));
}

TEST(InflatedHeadTest, RefusesEveryTruncation) {
  std::string bytes;
  AppendInflatedHead(SomeHead(), bytes);
  for (size_t size = 1; size < bytes.size(); ++size) {
    ByteView stored = AsBytes(bytes).subspan(1, size - 1);
    InflatedHead back;
    EXPECT_THAT(TakeInflatedHead(stored, 2, 1000, back),
                HasCode(absl::StatusCode::kDataLoss))
        << size;
  }
}

}  // namespace
}  // namespace quire
